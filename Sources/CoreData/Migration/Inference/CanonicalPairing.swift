/// Pairs what two versions of a model have, by canonical names.
struct CanonicalPairing<Element> {
    /// Something with a name.
    struct Item {
        let element: Element
        let name: String
        /// The renaming identifier, if one was set.
        let identifier: String?

        var canonicalName: String { identifier ?? name }
    }

    /// The position of the source's counterpart, for each of the destination's; `nil` for one that is added.
    private(set) var sources: [Int?]
    /// The positions of those pairs that rest on the name alone: the destination's identifier is what the source is called now, and
    /// not what it was called first.
    private(set) var byPresentName: Set<Int> = []
    /// Canonical names that several of the destination have, or several of the source: what becomes what cannot be told.
    private(set) var ambiguous: [(name: String, items: [String], isInSource: Bool)] = []

    /// Pairs them.
    ///
    /// The source's identifier counts, and not its present name. What remains is paired where the destination's identifier is the
    /// present name of something in the source that has no counterpart.
    init(_ source: [Item], _ destination: [Item]) {
        sources = Array(repeating: nil, count: destination.count)
        var taken: Set<Int> = []
        // What has kept both names is itself, even where another one shares the identifier.
        let unchanged = Dictionary(source.indices.map { ([source[$0].name, source[$0].canonicalName], $0) }) {
            first,
            _ in
            first
        }
        for (position, item) in destination.enumerated() {
            guard let found = unchanged[[item.name, item.canonicalName]], taken.insert(found).inserted else { continue }
            sources[position] = found
        }
        let pairedSources = taken
        let open = destination.indices.filter { sources[$0] == nil }
        let sourcesByName = Dictionary(
            grouping: source.indices.filter { !pairedSources.contains($0) },
            by: { source[$0].canonicalName }
        )
        let destinationsByName = Dictionary(grouping: open, by: { destination[$0].canonicalName })
        for (name, positions) in destinationsByName.sorted(by: { $0.key < $1.key }) {
            guard let found = sourcesByName[name] else { continue }
            if positions.count > 1 {
                ambiguous.append((name, positions.map { destination[$0].name }.sorted(), false))
            } else if found.count > 1 {
                ambiguous.append((name, found.map { source[$0].name }.sorted(), true))
            }
            sources[positions[0]] = found[0]
            taken.insert(found[0])
        }
        let names = Dictionary(source.indices.map { (source[$0].name, $0) }) { first, _ in first }
        for (position, item) in destination.enumerated() where sources[position] == nil {
            guard let identifier = item.identifier, let found = names[identifier], taken.insert(found).inserted else {
                continue
            }
            sources[position] = found
            byPresentName.insert(position)
        }
    }
}
