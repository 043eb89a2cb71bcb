import CoreData

/// What a context has announced of nodes, in objects-did-change: each that came and each that went at most once, and no
/// change left out.
struct Announcements {
    /// What is there, going by what was told.
    private var known: Set<URL> = []
    private var inserted: Set<URL> = []
    private var deleted: Set<URL> = []
    /// By node, the counter `first` when the node was last told of; writers only add to it, each upon what is stored.
    private var counters: [URL: Int64] = [:]
    /// How many announcements there were since somebody set it to 0.
    var count = 0

    /// Begins with what there is.
    mutating func begin(with nodes: [Node]) {
        for node in nodes { note(node) }
        known = Set(counters.keys)
    }

    private mutating func note(_ node: Node) { counters[node.objectID.uriRepresentation()] = node.first }

    /// Leaves one out.
    mutating func skip() { count += 1 }

    /// Takes one.
    ///
    /// - Returns: What is wrong with it.
    mutating func take(_ notification: Notification) -> [String] {
        count += 1
        let keys = [NSInsertedObjectsKey, NSUpdatedObjectsKey, NSDeletedObjectsKey, NSRefreshedObjectsKey]
        let sets = keys.map { notification.userInfo?[$0] as? Set<NSManagedObject> ?? [] }
        var troubles: [String] = []
        for (one, other) in [(0, 1), (0, 2), (1, 2)] where !sets[one].isDisjoint(with: sets[other]) {
            troubles.append("told of one object in two sets of a notification")
        }
        for node in sets[0] where node is Node {
            let uri = node.objectID.uriRepresentation()
            if !inserted.insert(uri).inserted { troubles.append("told of \(uri.lastPathComponent) as inserted twice") }
            known.insert(uri)
        }
        for node in sets[2] where node is Node {
            let uri = node.objectID.uriRepresentation()
            if !deleted.insert(uri).inserted { troubles.append("told of \(uri.lastPathComponent) as deleted twice") }
            known.remove(uri)
            counters[uri] = nil
        }
        for case let node as Node in sets[0].union(sets[1]).union(sets[3]).subtracting(sets[2]) {
            let uri = node.objectID.uriRepresentation()
            known.insert(uri)
            // To fill a fault would be to read something newer, or nothing.
            guard !node.isFault else {
                counters[uri] = nil
                continue
            }
            if let before = counters[uri], node.first < before {
                troubles.append("told of \(uri.lastPathComponent) at \(node.first), after it had been at \(before)")
            }
            counters[uri] = node.first
        }
        return troubles
    }

    /// The nodes that a notification tells are new.
    func news(_ notification: Notification) -> [Node] {
        (notification.userInfo?[NSInsertedObjectsKey] as? Set<NSManagedObject> ?? []).compactMap { $0 as? Node }
    }

    /// How what was told differs from what is stored, once all was told.
    func difference(from stored: GraphPicture) -> [String] {
        var troubles: [String] = []
        let there = Set(stored.nodes.keys)
        if known != there {
            let (more, less) = (known.subtracting(there).count, there.subtracting(known).count)
            troubles.append("was told of \(more) nodes that are not stored, and not of \(less) that are")
        }
        for (uri, counter) in counters {
            guard let entry = stored.nodes[uri], entry.values[1] != counter else { continue }
            troubles.append("was told of \(uri.lastPathComponent) at \(counter), and not at \(entry.values[1])")
        }
        return troubles
    }
}
