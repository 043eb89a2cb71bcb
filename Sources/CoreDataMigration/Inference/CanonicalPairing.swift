import CoreDataEssentials

/// Pairs elements of two versions of a model by canonical names.
struct CanonicalPairing<Element> {
    /// Something with a name.
    struct Item {
        let element: Element
        let name: String
        /// The renaming identifier, if one was set.
        let identifier: String?

        var canonicalName: String { identifier ?? name }
    }

    /// The position of the source's counterpart, for each element of the destination; `nil` for an added element.
    private(set) var sources: [Int?]
    /// The positions of the pairs by name alone.
    ///
    /// In such a pair, the destination's identifier is the present name of the source element, and not its first name.
    private(set) var byPresentName: Set<Int> = []
    /// Canonical names that several elements of the same version have, so that their pairs cannot be determined.
    private(set) var ambiguous: [(name: String, items: [String], isInSource: Bool)] = []

    /// Pairs the elements.
    ///
    /// First the source's identifiers are used, and not its present names. Then a remaining element of the destination
    /// is paired if its identifier is the present name of a source element that has no counterpart.
    init(_ source: [Item], _ destination: [Item]) {
        sources = Array(repeating: nil, count: destination.count)
        var taken: Set<Int> = []
        // An element that has kept both names is paired with itself, even if another one has the same identifier.
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
