import CoreData

/// One program of batches and contexts, which begins with an empty store.
///
/// Two contexts merge only on request. The third one follows by itself.
final class BatchProgram: SteppedProgram {
    static let follower = 2

    let run: Run
    let stack: NSPersistentStoreCoordinator
    let contexts: [NSManagedObjectContext]
    var oracle = BatchOracle(contexts: 3)
    /// The objects that each context has loaded.
    var held: [[Int64: Parcel]] = [[:], [:], [:]]
    /// The IDs of the oracle's rows, including rows that have gone.
    var ids: [Int64: NSManagedObjectID] = [:]
    var keys: [NSManagedObjectID: Int64] = [:]
    var crateIDs: [Int64: NSManagedObjectID] = [:]
    /// The rows and the key of the last batch result with IDs.
    var lastResult: (key: String, ids: [NSManagedObjectID], keys: Set<Int64>)?
    /// The fault point at which the next batch fails the first time; `nil` for none.
    var fault: String?
    private(set) var script: [String] = []
    private(set) var places: [Int] = []
    private(set) var branches: [String: Int] = [:]
    let isOver = false

    init(_ run: Run, _ stack: NSPersistentStoreCoordinator, _ stream: inout SeededStream) throws {
        self.run = run
        self.stack = stack
        try Self.clear(stack)
        contexts = (0..<3).map { _ in stack.context() }
        let follower = contexts[Self.follower]
        follower.performAndWait {
            follower.automaticallyMergesChangesFromParent = !run.isSabotaged("unmerged")
        }
        let maker = stack.context()
        let count = Int64(1 + stream.below(4))
        crateIDs = try maker.performAndWait {
            let crates = (1...count).map { number in
                let crate = Crate(context: maker)
                crate.number = number
                return crate
            }
            try maker.save()
            return Dictionary(uniqueKeysWithValues: crates.map { ($0.number, $0.objectID) })
        }
        for number in crateIDs.keys { oracle.addCrate(number) }
    }

    /// Deletes the rows of an earlier program, without a batch.
    static func clear(_ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context()
        try context.performAndWait {
            for parcel in try context.fetch(NSFetchRequest<Parcel>(entityName: "Parcel")) { context.delete(parcel) }
            for crate in try context.fetch(NSFetchRequest<Crate>(entityName: "Crate")) { context.delete(crate) }
            try context.save()
        }
    }

    /// Executes a batch, perhaps after it has failed halfway once.
    ///
    /// The failure must have no effect.
    func execute<R: NSPersistentStoreResult>(_ request: NSPersistentStoreRequest, _ place: Int) throws -> R? {
        let context = contexts[place]
        guard let fault, FaultPoints.areBuiltIn else {
            return try context.performAndWait { try context.execute(request) as? R }
        }
        self.fault = nil
        FaultPoints.fail(at: fault, with: CocoaError(.fileWriteVolumeReadOnly))
        defer { FaultPoints.clear() }
        do {
            // The batch may never reach the point: an insert without rows, for example, does not reach that for rows.
            return try context.performAndWait { try context.execute(request) as? R }
        } catch let error as CocoaError where error.code == .fileWriteVolumeReadOnly {
            count("failed-at-point")
            return try context.performAndWait { try context.execute(request) as? R }
        }
    }

    func note(_ line: String) { script.append(line) }

    func count(_ name: String, _ number: Int = 1) { branches[name, default: 0] += number }

    func call(_ stream: inout SeededStream) throws -> String? {
        let place = stream.below(contexts.count)
        places.append(place)
        let started = script.count
        let faults = ["batch.began", "batch.row", "batch.written"]
        fault = stream.chance(0.2) ? stream.pick(faults) : nil
        let trouble = try take(stream.below(16), place, &stream)
        if script.count == started { note("nothing") }
        script[started] = "context \(place): " + script[started]
        if let trouble { return trouble }
        if let trouble = try checkStore() { return trouble }
        return try checkContexts()
    }

    private func take(_ choice: Int, _ place: Int, _ stream: inout SeededStream) throws -> String? {
        switch choice {
        case 0, 1: return try insert(place, &stream)
        case 2, 3, 4: return try update(place, &stream)
        case 5: return try delete(place, &stream)
        case 6: return try deleteCrates(place, &stream)
        case 7, 8: return try load(place, &stream)
        case 9, 10: change(place, &stream)
        case 11, 12: return try save(place)
        case 13, 14: merge(place)
        default: return try lookAtGhost(&stream)
        }
        return nil
    }

    // MARK: - Contexts

    /// Loads some rows into a context.
    private func load(_ place: Int, _ stream: inout SeededStream) throws -> String? {
        var chosen: [Int64] = []
        for key in oracle.rows.keys.sorted() where stream.chance(0.4) { chosen.append(key) }
        note("loads \(chosen)")
        return try load(chosen, place)
    }

    func load(_ chosen: [Int64], _ place: Int) throws -> String? {
        let context = contexts[place]
        return try context.performAndWait {
            for key in chosen where held[place][key] == nil {
                guard let id = ids[key], oracle.load(key, in: place) else { continue }
                guard let parcel = try context.existingObject(with: id) as? Parcel else {
                    throw StressError("a parcel is of another class")
                }
                held[place][key] = parcel
            }
            return nil
        }
    }

    /// Changes loaded objects of a context that merges only on request.
    private func change(_ place: Int, _ stream: inout SeededStream) {
        guard place != Self.follower else { return }
        var chosen: [Int64] = []
        contexts[place].performAndWait {
            for key in oracle.entries[place].keys.sorted() where stream.chance(0.3) {
                let value = oracle.freshValue()
                held[place][key]?.value = value
                oracle.entries[place][key]?.change = value
                chosen.append(key)
            }
        }
        note("changes \(chosen)")
    }

    /// Saves a context, and resets it if the save conflicts.
    private func save(_ place: Int) throws -> String? {
        let context = contexts[place]
        let expected = oracle.conflicts(of: place)
        note("saves")
        return try context.performAndWait {
            if run.isSabotaged("silent-version") { context.mergePolicy = NSMergePolicy.overwrite }
            do {
                try context.save()
                count("saves")
                guard expected.isEmpty else {
                    return "a save succeeds, though batches or saves have changed \(expected.sorted())"
                }
                oracle.save(place)
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                let conflicts = (error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSObject] ?? [])
                    .compactMap { $0 as? NSMergeConflict }
                let told = Set(conflicts.compactMap { keys[$0.sourceObject.objectID] })
                guard told == expected else {
                    return "a save conflicts over \(told.sorted()), expected was \(expected.sorted())"
                }
                count("conflicts")
                context.reset()
                held[place] = [:]
                oracle.entries[place] = [:]
            }
            return nil
        }
    }

    /// Merges the last batch result into a context.
    private func merge(_ place: Int) {
        guard place != Self.follower, let lastResult else { return }
        note("merges \(lastResult.key) \(lastResult.keys.sorted())")
        let context = contexts[place]
        context.performAndWait {
            for key in lastResult.keys where oracle.rows[key] == nil {
                // This is not about unsaved changes of deleted rows, so they are dropped.
                guard oracle.entries[place][key]?.change != nil, let parcel = held[place][key] else { continue }
                context.refresh(parcel, mergeChanges: false)
            }
        }
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: [lastResult.key: lastResult.ids],
            into: [context]
        )
        oracle.merge(lastResult.keys, into: place)
        held[place] = held[place].filter { oracle.entries[place][$0.key] != nil }
        count("merges")
    }

    /// Looks for a row that has gone, with an object and through a fault.
    private func lookAtGhost(_ stream: inout SeededStream) throws -> String? {
        let gone = ids.keys.filter { oracle.rows[$0] == nil }.sorted()
        guard !gone.isEmpty else { return nil }
        let key = stream.pick(gone)
        guard let id = ids[key] else { return nil }
        note("looks at \(key), which has gone")
        let context = stack.context()
        return context.performAndWait {
            count("ghosts")
            do {
                _ = try context.existingObject(with: id)
                return "row \(key), which has gone, is found"
            } catch let error as CocoaError where error.code == .managedObjectReferentialIntegrity {
            } catch { return "looking for row \(key), which has gone, gave \(describe(error))" }
            guard let fault = context.object(with: id) as? Parcel else { return "an object is of another class" }
            let shown = fault.value
            return shown == 0 ? nil : "a fault whose row \(key) has gone shows \(shown)"
        }
    }
}
