import CoreData

/// One program in its own tree: contexts edit, delete, save, forget and die.
///
/// Now and then a context outside the tree saves, and the root merges that. After each call every context, and the
/// store, must agree with the oracle.
final class TreeProgram: SteppedProgram {
    private let stack: NSPersistentStoreCoordinator
    private var contexts: [NSManagedObjectContext] = []
    private var oracle: TreeOracle
    private var ids: [Int64: NSManagedObjectID] = [:]
    private var last: Int64 = 0
    private let isEager: Bool
    private let weights: [Int]
    private(set) var script: [String] = []
    private(set) var places: [Int] = []
    private(set) var branches: [String: Int] = [:]
    let isOver = false

    /// Draws a tree, and empties the store.
    ///
    /// - Parameters:
    ///   - stack: The coordinator of the root.
    ///   - stream: The source of the draw.
    ///   - isEager: A sabotage: whether a save goes up to the store, which it must not.
    /// - Throws: If the store cannot be emptied.
    init(_ stack: NSPersistentStoreCoordinator, _ stream: inout SeededStream, isEager: Bool) throws {
        (self.stack, self.isEager) = (stack, isEager)
        var parents = [0]
        var depths = [0]
        for place in 1..<(3 + stream.below(5)) {
            let parent = stream.pick((0..<place).filter { depths[$0] < 3 })
            parents.append(parent)
            depths.append(depths[parent] + 1)
        }
        oracle = TreeOracle(parents)
        weights = (0..<7).map { _ in 1 + stream.below(6) }
        try stack.deleteNodes()
        contexts.append(stack.context())
        for place in parents.indices.dropFirst() { contexts.append(child(of: parents[place])) }
    }

    private func child(of parent: Int) -> NSManagedObjectContext {
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = contexts[parent]
        return child
    }

    // MARK: - Calls

    func call(_ stream: inout SeededStream) throws -> String? {
        let place = stream.below(contexts.count)
        let call = stream.index(weights)
        places.append(place)
        script.append("context \(place): nothing")
        let unclear = oracle.unclear(place)
        let known = oracle.view(place).keys.filter { !unclear.contains($0) }.sorted()
        switch call {
        case 0: try insert(place)
        case 1: try change(place, known, &stream)
        case 2: try delete(place, known, &stream)
        case 3, 4: try save(place)
        case 5: try forget(place, &stream)
        default: try storeFromOutside(&stream)
        }
        if let trouble = try compareStore() ?? compare() { return trouble }
        guard !known.isEmpty else { return nil }
        return find(stream.pick(known), place)
    }

    private func did(_ what: String, _ text: String) {
        branches[what, default: 0] += 1
        script[script.count - 1] = text
    }

    private func insert(_ place: Int) throws {
        last += 1
        let (context, serial) = (contexts[place], last)
        ids[serial] = context.performAndWait {
            let node = Node(context: context)
            node.serial = serial
            node.first = serial
            return node.objectID
        }
        oracle.insert(serial, serial, in: place)
        did("tree-inserts", "context \(place): inserts \(serial)")
    }

    private func change(_ place: Int, _ known: [Int64], _ stream: inout SeededStream) throws {
        guard !known.isEmpty else { return }
        let serial = stream.pick(known)
        last += 1
        let value = last
        try with(serial, place) { $0.first = value }
        oracle.change(serial, to: value, in: place)
        did("tree-changes", "context \(place): changes \(serial) to \(value)")
    }

    private func delete(_ place: Int, _ known: [Int64], _ stream: inout SeededStream) throws {
        guard !known.isEmpty else { return }
        let serial = stream.pick(known)
        let context = contexts[place]
        try with(serial, place) { context.delete($0) }
        oracle.delete(serial, in: place)
        did("tree-deletes", "context \(place): deletes \(serial)")
    }

    private func with(_ serial: Int64, _ place: Int, _ body: (Node) -> Void) throws {
        let context = contexts[place]
        try context.performAndWait {
            guard let id = ids[serial], let node = try context.existingObject(with: id) as? Node else {
                throw StressError("node \(serial) is not in context \(place)")
            }
            body(node)
            context.processPendingChanges()
        }
    }

    private func save(_ place: Int) throws {
        for level in isEager ? oracle.way(place) : [place] {
            let context = contexts[level]
            try context.performAndWait { try context.save() }
        }
        oracle.save(place)
        did("tree-saves", "context \(place): saves")
    }

    /// A context resets or rolls back; or it dies, if it is one of the lowest.
    private func forget(_ place: Int, _ stream: inout SeededStream) throws {
        let way = stream.below(oracle.isLeaf(place) ? 3 : 2)
        // If an unsaved object goes, then nothing is promised for changes of it in contexts below.
        let loose = oracle.pending[place].filter { if case .changed = $0.value { false } else { true } }
        guard !oracle.areChanged(loose.keys, below: place) else { return }
        let context = contexts[place]
        switch way {
        case 0: context.performAndWait { context.reset() }
        case 1: context.performAndWait { context.rollback() }
        default: contexts[place] = child(of: oracle.parents[place])
        }
        oracle.drop(place)
        did("tree-losses", "context \(place): \(["resets", "rolls back", "dies"][way])")
    }

    /// A context outside the tree saves, and the root merges that.
    private func storeFromOutside(_ stream: inout SeededStream) throws {
        let stranger = stack.context()
        let deletes = stream.chance(0.3)
        // If the tree has changed the object that is deleted here, or has deleted it, there would be a conflict.
        let serials = oracle.stored.keys.sorted().filter { serial in
            oracle.pending.allSatisfy { changes in
                guard let change = changes[serial] else { return true }
                return !deletes && change != .deleted
            }
        }
        guard !serials.isEmpty else { return }
        let serial = stream.pick(serials)
        last += 1
        let value = last
        let letter = Letter()
        let token = NotificationCenter.default.addObserver(
            forName: NSManagedObjectContext.didSaveObjectsNotification,
            object: stranger,
            queue: nil
        ) { letter.content = $0 }
        defer { NotificationCenter.default.removeObserver(token) }
        try stranger.performAndWait {
            guard let id = ids[serial], let node = try stranger.existingObject(with: id) as? Node else {
                throw StressError("node \(serial) is not in the store")
            }
            if deletes { stranger.delete(node) } else { node.first = value }
            try stranger.save()
        }
        let root = contexts[0]
        if let content = letter.content { root.performAndWait { root.mergeChanges(fromContextDidSave: content) } }
        oracle.store(deletes ? nil : value, for: serial)
        did("tree-merges", "the root merges a \(deletes ? "deletion" : "change") of \(serial) from outside, \(value)")
    }

    /// Carries the notification of a save from outside.
    private final class Letter: @unchecked Sendable {
        // @unchecked Sendable: it is written and read by the one thread that runs the program.
        var content: Notification?
    }

    // MARK: - Comparing

    private func compare() throws -> String? {
        for (place, context) in contexts.enumerated() {
            let unclear = oracle.unclear(place)
            let (shown, hasChanges) = try context.performAndWait {
                let nodes = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
                return (nodes.map { [$0.serial, $0.first] }, context.hasChanges)
            }
            let wanted = oracle.view(place).filter { !unclear.contains($0.key) }.map { [$0.key, $0.value] }
            let clear = shown.filter { !unclear.contains($0[0]) }
            if Set(clear) != Set(wanted) || clear.count != wanted.count {
                return "context \(place) shows \(Self.text(clear)), not \(Self.text(wanted))"
            }
            if unclear.isEmpty, !oracle.hasUndone[place], hasChanges == oracle.pending[place].isEmpty {
                return "context \(place) has \(hasChanges ? "changes that it should not have" : "lost its changes")"
            }
        }
        return nil
    }

    private func compareStore() throws -> String? {
        let stranger = stack.context()
        let request = NSFetchRequest<NSDictionary>(entityName: "Node")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = ["serial", "first"]
        let rows = try stranger.performAndWait { try stranger.fetch(request) }
        let stored = rows.map { [$0["serial"] as? Int64 ?? -1, $0["first"] as? Int64 ?? -1] }
        let wanted = oracle.stored.map { [$0.key, $0.value] }
        guard Set(stored) != Set(wanted) || stored.count != wanted.count else { return nil }
        return "the store has \(Self.text(stored)), not \(Self.text(wanted))"
    }

    /// Looks for an object by the ID that it had when it was made, whatever level it has reached by now.
    private func find(_ serial: Int64, _ place: Int) -> String? {
        guard let id = ids[serial], oracle.view(place)[serial] != nil, !oracle.unclear(place).contains(serial) else {
            return nil
        }
        guard id.isTemporaryID else {
            return "the ID of \(serial), which was captured before a save, has changed"
        }
        if id.latest.isTemporaryID == (oracle.stored[serial] != nil) {
            return
                "the ID of \(serial) is \(id.latest.isTemporaryID ? "still temporary" : "permanent before it is stored")"
        }
        let context = contexts[place]
        let found = context.performAndWait { ((try? context.existingObject(with: id)) as? Node)?.serial }
        return found == serial ? nil : "the ID of \(serial) does not find it in context \(place)"
    }

    private static func text(_ rows: [[Int64]]) -> String {
        rows.sorted { $0[0] < $1[0] }.map { "\($0[0]): \($0[1])" }.joined(separator: ", ")
    }
}
