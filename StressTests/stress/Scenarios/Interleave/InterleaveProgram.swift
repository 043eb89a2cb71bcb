import CoreData

/// One program, with the contexts that it runs on.
final class InterleaveProgram: SteppedProgram {
    let run: Run
    /// The store's file, if it has one.
    let file: NodeFile?
    let contexts: [NSManagedObjectContext]
    /// Fetches the stored rows.
    let reader: NSManagedObjectContext
    var oracle: InterleaveOracle
    /// The objects of each context that the oracle has realised.
    var held: [[Int64: Node]]
    /// The objects of each context that were held since its steps began, as they may come back.
    var made: [[Int64: Node]]
    var ids: [Int64: NSManagedObjectID] = [:]
    private(set) var serials: [NSManagedObjectID: Int64] = [:]
    /// The versions of each object in the oracle and in the file when they were compared last.
    var versions: [Int64: (wanted: Int, stored: Int64)] = [:]
    var notifications: [Notification?]
    private var lastSerial: Int64 = 0
    private(set) var lastValue: Int64 = 0
    private(set) var script: [String] = []
    private(set) var places: [Int] = []
    private(set) var isOver = false
    var branches: [String: Int] = [:]
    private let weights: [Int]
    /// The calls of `take` that change objects.
    ///
    /// Each of them is a step of undo.
    private static let edits: Set = [0, 1, 2, 4, 10, 11]
    /// The calls that read or write the store's rows.
    ///
    /// Steps end before them.
    private static let exchanges: Set = [5, 7, 8, 9]
    /// The fault of an object that a call was about to use.
    private var mishap: String?

    init(_ run: Run, _ stack: NSPersistentStoreCoordinator, _ file: NodeFile?, _ stream: inout SeededStream) throws {
        (self.run, self.file, reader) = (run, file, stack.context())
        let isSabotaged = run.isSabotaged("wrong-policy")
        let choice = run.options.policy.map { [$0] } ?? InterleaveOracle.Policy.allCases
        let policies = (0..<(2 + stream.below(3))).map { _ in stream.pick(choice) }
        let undoes = policies.map { _ in stream.chance(0.5) }
        oracle = InterleaveOracle(policies, undoes: undoes)
        contexts = policies.map { policy in
            switch policy {
            case .error: stack.context(isSabotaged ? .overwrite : .error)
            case .storeTrump: stack.context(.mergeByPropertyStoreTrump)
            case .objectTrump: stack.context(.mergeByPropertyObjectTrump)
            case .overwrite: stack.context(.overwrite)
            case .rollback: stack.context(.rollback)
            }
        }
        for (context, undoes) in zip(contexts, undoes) where undoes { context.undoManager = UndoManager() }
        (held, made) = (policies.map { _ in [:] }, policies.map { _ in [:] })
        notifications = policies.map { _ in nil }
        // The weights differ, so that some programs mostly save and others mostly merge; all need objects.
        weights = (0..<15).map { ($0 == 0 ? 6 : 1) + stream.below(6) }
        try stack.deleteNodes()
    }

    func call(_ stream: inout SeededStream) throws -> String? {
        let place = stream.below(contexts.count)
        let call = stream.index(weights)
        places.append(place)
        script.append("context \(place), \(oracle.policies[place]): nothing")
        let context = contexts[place]
        return try context.performAndWait {
            let before = oracle.entries[place]
            if Self.exchanges.contains(call) { endSteps(place, context) }
            let trouble = try take(call, place, context, &stream)
            if isOver { return nil }
            if Self.edits.contains(call) { oracle.noteStep(from: before, in: place) }
            if oracle.steps[place] != nil { made[place].merge(held[place]) { $1 } }
            // Objects that the oracle has forgotten, such as undone insertions and deleted objects, no longer belong
            // to the context.
            held[place] = held[place].filter { oracle.entries[place][$0.key] != nil }
            return trouble ?? mishap ?? check(place, context)
        }
    }

    /// Records the call, and its object.
    func note(_ place: Int, _ what: String, _ serial: Int64) {
        script[script.count - 1] = "context \(place), \(oracle.policies[place]): \(what) \(serial)"
    }

    /// Learns the numbers of the objects by their current IDs.
    func learnIDs() { serials = Dictionary(uniqueKeysWithValues: ids.map { ($1, $0) }) }

    /// Ends the program, as nothing is promised for further calls.
    func end() -> String? {
        isOver = true
        return nil
    }

    private func value() -> Int64 {
        lastValue += 1
        return lastValue
    }

    /// An object that the context can use, realised.
    func node(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) -> (Int64, Node)? {
        let usable = oracle.usable(in: place)
        guard !usable.isEmpty else { return nil }
        let serial = stream.pick(usable)
        return node(serial, place, context).map { (serial, $0) }
    }

    /// An object, realised, if the context can use it.
    func node(_ serial: Int64, _ place: Int, _ context: NSManagedObjectContext) -> Node? {
        // An object that the framework has realised for itself, and that a notification holds, may be old.
        if oracle.entries[place][serial] == nil,
            let object = ids[serial].flatMap({ context.registeredObject(for: $0) }),
            !object.isFault, !object.hasChanges
        {
            context.refresh(object, mergeChanges: false)
        }
        guard oracle.realise(serial, in: place) else { return nil }
        if let node = held[place][serial], !node.isFault {
            if node.managedObjectContext != nil { return node }
            mishap = "object \(serial), which is in use, has left its context"
            return nil
        }
        do {
            guard let id = ids[serial], let node = try context.existingObject(with: id) as? Node else { return nil }
            held[place][serial] = node
            return node
        } catch {
            mishap = "object \(serial), which is stored, gave \(describe(error))"
            return nil
        }
    }

    private func take(
        _ call: Int,
        _ place: Int,
        _ context: NSManagedObjectContext,
        _ stream: inout SeededStream
    ) throws -> String? {
        switch call {
        case 0:
            lastSerial += 1
            let node = Node(context: context)
            node.serial = lastSerial
            (node.first, node.second) = (value(), value())
            ids[lastSerial] = node.objectID
            held[place][lastSerial] = node
            serials[node.objectID] = lastSerial
            oracle.insert(lastSerial, [node.first, node.second, 0], in: place)
            note(place, "insert", lastSerial)
        case 1, 2:
            guard let (serial, node) = node(place, context, &stream) else { return nil }
            let slot = stream.below(2)
            let new = value()
            if slot == 0 { node.first = new } else { node.second = new }
            oracle.entries[place][serial]?.changes[slot] = new
            note(place, slot == 0 ? "set first" : "set second", serial)
        case 3: if let (serial, _) = node(place, context, &stream) { note(place, "read", serial) }
        case 4: return delete(place, context, &stream)
        case 5: return refresh(place, context, &stream)
        case 6: return fetch(place, context, &stream)
        case 7, 8: return try save(place, context, &stream)
        case 9: return merge(place, context, &stream)
        case 10, 11: relate(place, context, &stream)
        case 13, 14:
            let canRedo = oracle.steps[place]?.toRedo.isEmpty == false
            stepBack(place, context, again: canRedo && stream.chance(0.5))
        default:
            if stream.chance(0.5) {
                context.rollback()
                oracle.rollback(place)
                adoptFaults(place)
                note(place, "rollback", 0)
            } else {
                context.reset()
                oracle.reset(place)
                note(place, "reset", 0)
            }
        }
        return nil
    }

    /// Forgets unchanged objects that the framework has turned into faults.
    ///
    /// They will be read anew, which it may do.
    func adoptFaults(_ place: Int) {
        for (serial, entry) in oracle.entries[place]
        where entry.changes.isEmpty && !entry.isInserted && !entry.isDeleted {
            if held[place][serial]?.isFault ?? true { oracle.entries[place][serial] = nil }
        }
    }

    // MARK: - Checking

    /// Compares everything that a context shows with the oracle.
    private func check(_ place: Int, _ context: NSManagedObjectContext) -> String? {
        context.processPendingChanges()
        let entries = oracle.entries[place]
        for (serial, entry) in entries where !entry.isDeleted {
            guard let node = held[place][serial] else { continue }
            let shown = [node.first, node.second, serialNumber(node.parent?.objectID)]
            if shown != entry.values { return "object \(serial) shows \(shown), expected \(entry.values)" }
        }
        func serials(_ objects: Set<NSManagedObject>) -> Set<Int64> { Set(objects.map { serialNumber($0.objectID) }) }
        let inserted = Set(entries.filter(\.value.isInserted).keys)
        let deleted = Set(entries.filter(\.value.isDeleted).keys)
        let updated = Set(entries.filter { !$1.isInserted && !$1.isDeleted && !$1.changes.isEmpty }.keys)
        // Owners of children that have come or gone may count as changed.
        let owners = oracle.touched[place]
        for (name, shown, wanted) in [
            ("inserted", serials(context.insertedObjects), inserted),
            ("deleted", serials(context.deletedObjects), deleted),
            ("updated", serials(context.updatedObjects).subtracting(owners), updated.subtracting(owners)),
        ] where shown != wanted {
            return "\(name) objects are \(shown.sorted()), expected \(wanted.sorted())"
        }
        return checkSteps(place, context)
    }
}
