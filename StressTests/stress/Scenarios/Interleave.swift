import CoreData

/// Random programs over several contexts, one call at a time: after each, the framework shows what an oracle says.
enum Interleave: Scenario {
    static let name = "interleave"
    static let summary = "random programs over several contexts, call by call, against an oracle"
    static let work = (figure: "calls", floor: 500)
    static let programs = Knob("programs", 0, "programs to end after; 0 to go on until the time is over")
    static let length = Knob("calls", 60, "calls of a program")
    static let knobs = [programs, length]
    static let sabotages = [Sabotage("wrong-policy", "save")]

    static func run(_ run: Run) throws {
        let stack = try run.open()
        let steps = SteppedPrograms(run, length: run.knob(length)) { stream in
            try InterleaveProgram(stack, &stream, run.isSabotaged("wrong-policy"))
        }
        try steps.run(run.knob(programs), until: run.end)
        run.watchdog.leave(0)
        try run.close(stack)
        try run.audit()
    }
}

/// One program, with the contexts that it runs on.
final class InterleaveProgram: SteppedProgram {
    private let contexts: [NSManagedObjectContext]
    private var oracle: InterleaveOracle
    /// By context, the objects that the oracle has realised.
    private var held: [[Int64: Node]]
    private var ids: [Int64: NSManagedObjectID] = [:]
    private var notifications: [Notification?]
    private var lastSerial: Int64 = 0
    private var lastValue: Int64 = 0
    private(set) var script: [String] = []
    private(set) var places: [Int] = []
    private(set) var isOver = false
    private(set) var branches: [String: Int] = [:]
    private let weights: [Int]
    /// What was wrong with an object that a call was to use.
    private var mishap: String?

    init(_ stack: NSPersistentStoreCoordinator, _ stream: inout SeededStream, _ isSabotaged: Bool) throws {
        let policies = (0..<(2 + stream.below(3))).map { _ in stream.pick(InterleaveOracle.Policy.allCases) }
        oracle = InterleaveOracle(policies)
        contexts = policies.map { policy in
            switch policy {
            case .error: stack.context(isSabotaged ? .overwrite : .error)
            case .storeTrump: stack.context(.mergeByPropertyStoreTrump)
            case .objectTrump: stack.context(.mergeByPropertyObjectTrump)
            case .overwrite: stack.context(.overwrite)
            case .rollback: stack.context(.rollback)
            }
        }
        held = policies.map { _ in [:] }
        notifications = policies.map { _ in nil }
        // Some programs are all saves, others all merges.
        weights = (0..<11).map { _ in 1 + stream.below(6) }
        try clear(stack)
    }

    /// Deletes what the program before has saved.
    private func clear(_ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context()
        try context.performAndWait {
            for node in try context.fetch(NSFetchRequest<Node>(entityName: "Node")) { context.delete(node) }
            try context.save()
        }
    }

    func call(_ stream: inout SeededStream) -> String? {
        let place = stream.below(contexts.count)
        var choice = stream.below(weights.reduce(0, +))
        var call = 0
        while choice >= weights[call] {
            choice -= weights[call]
            call += 1
        }
        places.append(place)
        script.append("context \(place), \(oracle.policies[place]): nothing")
        let context = contexts[place]
        return context.performAndWait {
            let trouble = take(call, place, context, &stream)
            if isOver { return nil }
            // What the oracle has forgotten, rolled back insertions and deleted objects among it, is no longer the context's.
            held[place] = held[place].filter { oracle.entries[place][$0.key] != nil }
            return trouble ?? mishap ?? check(place, context)
        }
    }

    /// Says what the call is, and of which object.
    private func note(_ place: Int, _ what: String, _ serial: Int64) {
        script[script.count - 1] = "context \(place), \(oracle.policies[place]): \(what) \(serial)"
    }

    /// Ends the program, as nothing is promised for what comes next.
    private func end() -> String? {
        isOver = true
        return nil
    }

    private func value() -> Int64 {
        lastValue += 1
        return lastValue
    }

    /// An object that the context can use, realised.
    private func node(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) -> (Int64, Node)? {
        guard lastSerial > 0 else { return nil }
        let serial = 1 + Int64(stream.below(Int(lastSerial)))
        guard oracle.realise(serial, in: place) else { return nil }
        if let node = held[place][serial], !node.isFault { return (serial, node) }
        do {
            guard let id = ids[serial], let node = try context.existingObject(with: id) as? Node else { return nil }
            held[place][serial] = node
            return (serial, node)
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
    ) -> String? {
        switch call {
        case 0:
            lastSerial += 1
            let node = Node(context: context)
            node.serial = lastSerial
            (node.first, node.second) = (value(), value())
            ids[lastSerial] = node.objectID
            held[place][lastSerial] = node
            oracle.insert(lastSerial, [node.first, node.second], in: place)
            note(place, "insert", lastSerial)
        case 1, 2:
            guard let (serial, node) = node(place, context, &stream) else { return nil }
            let slot = stream.below(2)
            let new = value()
            if slot == 0 { node.first = new } else { node.second = new }
            oracle.entries[place][serial]?.changes[slot] = new
            note(place, slot == 0 ? "set first" : "set second", serial)
        case 3: if let (serial, _) = node(place, context, &stream) { note(place, "read", serial) }
        case 4:
            guard stream.chance(0.5), let (serial, node) = node(place, context, &stream) else { return nil }
            context.delete(node)
            oracle.delete(serial, in: place)
            note(place, "delete", serial)
        case 5: return refresh(place, context, &stream)
        case 6: return fetch(place, context, &stream)
        case 7, 8: return save(place, context)
        case 9: return merge(place, context, &stream)
        default:
            if stream.chance(0.5) {
                context.rollback()
                oracle.rollback(place)
                adoptFaults(place)
                note(place, "rollback", 0)
            } else {
                context.reset()
                oracle.entries[place] = [:]
                note(place, "reset", 0)
            }
        }
        return nil
    }

    /// What the framework has turned into faults will be read anew, which is its right for what is unchanged.
    private func adoptFaults(_ place: Int) {
        for (serial, entry) in oracle.entries[place]
        where entry.changes.isEmpty && !entry.isInserted && !entry.isDeleted {
            if held[place][serial]?.isFault ?? true { oracle.entries[place][serial] = nil }
        }
    }

    private func refresh(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) -> String? {
        guard let (serial, node) = node(place, context, &stream), let entry = oracle.entries[place][serial],
            !entry.isInserted, let row = oracle.stored[serial]
        else { return nil }
        let merges = stream.chance(0.5)
        note(place, merges ? "refresh, merging" : "refresh", serial)
        context.refresh(node, mergeChanges: merges)
        if merges {
            oracle.entries[place][serial]?.base = row
            adoptFaults(place)
        } else {
            oracle.entries[place][serial] = nil
            if !node.isFault { return "refresh without merging leaves \(serial) realised" }
        }
        branches["refreshes", default: 0] += 1
        return nil
    }

    private func fetch(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) -> String? {
        let limit = Int64(stream.below(Int(lastValue) + 1))
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.predicate = NSPredicate(format: "first >= %@", limit)
        let (certain, open) = oracle.matching(limit, in: place)
        note(place, "fetch first >=", limit)
        branches["fetches", default: 0] += 1
        do {
            let byID = Dictionary(uniqueKeysWithValues: ids.map { ($1, $0) })
            let found = Set(try context.fetch(request).compactMap { byID[$0.objectID] })
            guard found.subtracting(open) != certain else { return nil }
            return "a fetch finds \(found.sorted()), expected \(certain.sorted())"
        } catch { return "a fetch gave \(describe(error))" }
    }

    private func save(_ place: Int, _ context: NSManagedObjectContext) -> String? {
        let outcome = oracle.save(place)
        note(place, "save", 0)
        if outcome == .undefined { return end() }
        let box = NotificationBox()
        let token = NotificationCenter.default.addObserver(
            forName: NSManagedObjectContext.didSaveObjectsNotification,
            object: context,
            queue: nil
        ) { box.notification = $0 }
        defer { NotificationCenter.default.removeObserver(token) }
        do {
            try context.save()
            guard case .saved(let isChange) = outcome else { return "a save succeeds, expected was \(outcome)" }
            branches["saves", default: 0] += 1
            guard isChange else { return nil }
            if box.notification == nil { return "a save that changes the store posts no notification" }
            notifications[place] = box.notification
        } catch let error as CocoaError where error.code == .managedObjectMerge {
            let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
            let told = Set(conflicts.compactMap { ($0.sourceObject as? Node)?.serial })
            guard outcome == .refused(told) else { return "a save conflicts over \(told), expected was \(outcome)" }
            branches["conflicts", default: 0] += 1
        } catch { return "a save gave \(describe(error))" }
        return nil
    }

    private func merge(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) -> String? {
        let source = stream.below(contexts.count)
        guard source != place, let notification = notifications[source] else { return nil }
        guard oracle.merge(from: source, into: place) else { return end() }
        note(place, "merge from", Int64(source))
        context.mergeChanges(fromContextDidSave: notification)
        adoptFaults(place)
        branches["merges", default: 0] += 1
        return nil
    }

    // MARK: - Checking

    /// Compares all that a context shows with what the oracle says.
    private func check(_ place: Int, _ context: NSManagedObjectContext) -> String? {
        context.processPendingChanges()
        let entries = oracle.entries[place]
        for (serial, entry) in entries where !entry.isDeleted {
            guard let node = held[place][serial] else { continue }
            let shown = [node.first, node.second]
            if shown != entry.values { return "object \(serial) shows \(shown), expected \(entry.values)" }
        }
        let byObject = Dictionary(held[place].map { (ObjectIdentifier($1), $0) }, uniquingKeysWith: { one, _ in one })
        func serials(_ objects: Set<NSManagedObject>) -> Set<Int64> {
            Set(objects.map { byObject[ObjectIdentifier($0)] ?? -1 })
        }
        let inserted = Set(entries.filter(\.value.isInserted).keys)
        let deleted = Set(entries.filter(\.value.isDeleted).keys)
        let updated = Set(entries.filter { !$1.isInserted && !$1.isDeleted && !$1.changes.isEmpty }.keys)
        for (name, shown, wanted) in [
            ("inserted", serials(context.insertedObjects), inserted),
            ("deleted", serials(context.deletedObjects), deleted),
            ("updated", serials(context.updatedObjects), updated),
        ] where shown != wanted {
            return "\(name) objects are \(shown.sorted()), expected \(wanted.sorted())"
        }
        return nil
    }
}

/// Carries a notification out of its handler.
private final class NotificationBox: @unchecked Sendable {
    // @unchecked Sendable: a save calls the handler on its own thread, before it returns.
    var notification: Notification?
}
