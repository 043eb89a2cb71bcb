import CoreData

/// The changes of nodes that a context has announced in objects-did-change notifications.
///
/// Each node may come and go at most once, and no change may be left out.
struct Announcements {
    /// The nodes that exist according to the announcements.
    private var known: Set<URL> = []
    private var inserted: Set<URL> = []
    private var deleted: Set<URL> = []
    /// The counter `first` of each node at its last announcement.
    ///
    /// Writers only add to the stored value, so it never falls.
    private var counters: [URL: Int64] = [:]
    /// The number of announcements since this was last set to 0.
    var count = 0

    /// Begins with the nodes that exist.
    mutating func begin(with nodes: [Node]) {
        for node in nodes { note(node) }
        known = Set(counters.keys)
    }

    private mutating func note(_ node: Node) { counters[node.objectID.uriRepresentation()] = node.first }

    /// Leaves an announcement out.
    mutating func skip() { count += 1 }

    /// Takes an announcement.
    ///
    /// - Returns: The faults in it.
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
            // To fill the fault would read a newer value, or none.
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

    /// The nodes that a notification announces as new.
    func news(_ notification: Notification) -> [Node] {
        (notification.userInfo?[NSInsertedObjectsKey] as? Set<NSManagedObject> ?? []).compactMap { $0 as? Node }
    }

    /// How the announcements differ from what is stored, once all of them have come.
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
