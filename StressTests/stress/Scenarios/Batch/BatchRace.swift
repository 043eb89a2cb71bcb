import CoreData
import StrataLocks

/// Batches and saves race for the same rows, while waves of other rows come and go.
enum BatchRace {
    /// The acknowledged sum of each row, by its ID.
    private typealias Ledger = Locked<[NSManagedObjectID: Int64]>

    /// The regions of the rows that stay.
    private static let regions: Int64 = 5
    /// The waves have regions above this number.
    private static let firstWave: Int64 = 1_000

    static func run(_ run: Run, _ stack: NSPersistentStoreCoordinator) throws {
        let ids = try forge(stack, max(run.knob(Batch.parcels), 1))
        let followers = (0..<2).map { _ in BatchFollower(stack, run.isSabotaged("unmerged")) }
        for follower in followers { try follower.load(ids) }
        let machines = try Machine.start(run)
        // Contexts that follow also merge what the other processes commit.
        let changes = machines.isEmpty ? nil : try stack.followRemoteChanges()
        var acknowledged = race(run, stack, ids)
        for machine in machines {
            for (uri, sum) in try JSONDecoder().decode([URL: Int64].self, from: machine.join()) {
                guard let id = stack.managedObjectID(forURIRepresentation: uri) else {
                    throw StressError("\(uri) is unknown to another process")
                }
                acknowledged[id, default: 0] += sum
            }
        }
        if let changes {
            try changes.waitToCatchUp()
            changes.stop()
        }
        try settle(run, stack, acknowledged, followers)
    }

    /// Lets this process take part in the race of another process, with the rows that are there.
    ///
    /// - Returns: The acknowledged sum of each row.
    static func takePart(_ run: Run, _ stack: NSPersistentStoreCoordinator) throws -> [URL: Int64] {
        let context = stack.context()
        let request = NSFetchRequest<NSManagedObjectID>(entityName: "Parcel")
        request.resultType = .managedObjectIDResultType
        request.predicate = NSPredicate(format: "region <= %@", regions)
        let ids = try context.performAndWait { try context.fetch(request) }
        let sums = race(run, stack, ids).map { ($0.key.uriRepresentation(), $0.value) }
        return Dictionary(uniqueKeysWithValues: sums)
    }

    /// Lets batches and saves of this process race until the time is over.
    ///
    /// - Returns: The acknowledged sum of each row.
    private static func race(
        _ run: Run,
        _ stack: NSPersistentStoreCoordinator,
        _ ids: [NSManagedObjectID]
    ) -> [NSManagedObjectID: Int64] {
        let ledger = Ledger([:])
        let workers = max(run.options.contexts, 2)
        // If the library has fault points, then threads pause there, so that they meet more often.
        FaultPoints.jitter(run.options.seed, most: max(run.options.jitter, 3_000))
        defer { FaultPoints.clear() }
        run.race(workers + 3) { worker in
            switch worker.number {
            case workers: try makeWaves(worker, stack)
            case workers + 1: try watchWaves(worker, stack)
            case workers + 2: try readFresh(worker, stack, ids, ledger)
            case let number where number % 2 == 0: try save(worker, stack, ids, ledger)
            default: try update(worker, stack, ledger)
            }
        }
        return ledger.withLock { $0 }
    }

    private static func forge(_ stack: NSPersistentStoreCoordinator, _ count: Int) throws -> [NSManagedObjectID] {
        let context = stack.context()
        return try context.performAndWait {
            let request = NSBatchInsertRequest(
                entityName: "Parcel",
                objects: (0..<count).map { ["code": -1 - Int64($0), "region": 1 + Int64($0) % regions] }
            )
            request.resultType = .objectIDs
            return (try context.execute(request) as? NSBatchInsertResult)?.result as? [NSManagedObjectID] ?? []
        }
    }

    // MARK: - Workers

    /// Adds one to all rows of a region, with a batch.
    private static func update(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _ ledger: borrowing Ledger
    ) throws {
        let context = stack.context()
        while !worker.isOver {
            worker.beat("a batch update")
            let request = NSBatchUpdateRequest(entityName: "Parcel")
            let region = Int64(1 + worker.stream.below(Int(regions)))
            request.predicate = NSPredicate(format: "region == %@", region)
            // A database may compute sums in SQL. For divisions, the rows are read, computed in the process, and
            // written.
            let format = worker.stream.chance(0.5) ? "value + 1" : "(value * 2 + 2) / 2"
            request.propertiesToUpdate = ["value": NSExpression(format: format)]
            request.resultType = .updatedObjectIDsResultType
            let changed = try worker.time("batch") {
                try context.performAndWait {
                    (try context.execute(request) as? NSBatchUpdateResult)?.result as? [NSManagedObjectID] ?? []
                }
            }
            ledger.withLock { ledger in for id in changed { ledger[id, default: 0] += 1 } }
            worker.tally.count("rows", changed.count)
            worker.tally.count("batches")
        }
    }

    /// Adds one to a few rows, with a save of objects.
    private static func save(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _ ids: [NSManagedObjectID],
        _ ledger: borrowing Ledger
    ) throws {
        let context = stack.context(worker.run.isSabotaged("overwrite") ? .overwrite : .error)
        while !worker.isOver {
            worker.beat("a save beside batches")
            let chosen = Set((0..<2).map { _ in worker.stream.pick(ids) })
            do {
                try worker.time("save") {
                    try context.performAndWait {
                        // An object that was loaded before may be old, which the save notices.
                        for id in chosen { (try context.existingObject(with: id) as? Parcel)?.value += 1 }
                        try context.save()
                    }
                }
                ledger.withLock { ledger in for id in chosen { ledger[id, default: 0] += 1 } }
                worker.tally.count("race-saves")
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                worker.tally.count("race-conflicts")
                context.performAndWait { context.reset() }
            }
        }
    }

    private static func size(of wave: Int64) -> Int { 2 + Int(wave * 7 % 40) }

    /// Inserts rows with batches, and deletes them with batches.
    private static func makeWaves(_ worker: Worker, _ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context()
        // Each process has its own waves.
        var wave = firstWave + Int64(worker.run.machine) * 1_000_000
        func insert(_ places: Range<Int>) throws {
            let request = NSBatchInsertRequest(
                entityName: "Parcel",
                objects: places.map { ["code": wave * 100 + Int64($0), "region": wave] }
            )
            request.resultType = .count
            let count = (try context.execute(request) as? NSBatchInsertResult)?.result as? Int
            if count != places.count {
                worker.tally.find("an insert of \(places.count) rows tells \(count ?? -1)")
            }
        }
        while !worker.isOver {
            worker.beat("a wave of rows")
            wave += 1
            let size = size(of: wave)
            try worker.time("batch") {
                try context.performAndWait {
                    if worker.run.isSabotaged("halves") {
                        try insert(0..<size / 2)
                        try insert(size / 2..<size)
                    } else {
                        try insert(0..<size)
                    }
                }
            }
            let fetch = NSFetchRequest<Parcel>(entityName: "Parcel")
            fetch.predicate = NSPredicate(format: "region == %@", wave)
            let request = NSBatchDeleteRequest(fetchRequest: fetch)
            request.resultType = .resultTypeCount
            let count = try worker.time("batch") {
                try context.performAndWait { (try context.execute(request) as? NSBatchDeleteResult)?.result as? Int }
            }
            if count != size { worker.tally.find("a deletion of \(size) rows tells \(count ?? -1)") }
            worker.tally.count("rows", size * 2)
            worker.tally.count("batches", 2)
        }
    }

    /// Checks that no fetch ever returns half of a wave.
    private static func watchWaves(_ worker: Worker, _ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context()
        let request = NSFetchRequest<NSDictionary>(entityName: "Parcel")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = ["region"]
        request.predicate = NSPredicate(format: "region > %@", firstWave)
        while !worker.isOver {
            worker.beat("looking at waves")
            let rows = try worker.time("fetch") { try context.performAndWait { try context.fetch(request) } }
            let waves = Dictionary(grouping: rows.compactMap { $0["region"] as? Int64 }) { $0 }
            for (wave, members) in waves where members.count != size(of: wave) {
                worker.tally.find("a fetch sees half of a batch: \(members.count) of \(size(of: wave)) rows")
            }
            worker.tally.count("looks")
        }
    }

    /// Checks that a new context never sees a row older than what this process was acknowledged before.
    private static func readFresh(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _ ids: [NSManagedObjectID],
        _ ledger: borrowing Ledger
    ) throws {
        while !worker.isOver {
            worker.beat("reading a row")
            let id = worker.stream.pick(ids)
            let least = ledger.withLock { $0[id] ?? 0 }
            let context = stack.context()
            let value = try context.performAndWait { (try context.existingObject(with: id) as? Parcel)?.value }
            if (value ?? -1) < least, !worker.run.isSabotaged("overwrite") {
                worker.tally.find("a new context sees \(value ?? -1), acknowledged were \(least)")
            }
            worker.tally.count("reads")
        }
    }

    // MARK: - The end

    private static func settle(
        _ run: Run,
        _ stack: NSPersistentStoreCoordinator,
        _ ledger: [NSManagedObjectID: Int64],
        _ followers: [BatchFollower]
    ) throws {
        let context = stack.context()
        var stored: [NSManagedObjectID: Int64] = [:]
        try context.performAndWait {
            for parcel in try context.fetch(NSFetchRequest<Parcel>(entityName: "Parcel")) {
                stored[parcel.objectID] = parcel.value
                if parcel.region > firstWave { run.find("a row of wave \(parcel.region), which was deleted, is there") }
            }
        }
        for (id, value) in stored where value != ledger[id] ?? 0 {
            run.find("\(id.uriRepresentation().lastPathComponent) has \(value), acknowledged were \(ledger[id] ?? 0)")
        }
        for follower in followers { follower.check(stored, run) }
    }
}

/// A context that follows changes, and holds the objects that it has loaded.
private final class BatchFollower: @unchecked Sendable {
    // @unchecked Sendable: the objects are used on the context's queue only.

    private let context: NSManagedObjectContext
    private var held: [Parcel] = []

    init(_ stack: NSPersistentStoreCoordinator, _ isSabotaged: Bool) {
        context = stack.context()
        context.automaticallyMergesChangesFromParent = !isSabotaged
    }

    func load(_ ids: [NSManagedObjectID]) throws {
        try context.performAndWait {
            held = try ids.compactMap { try context.existingObject(with: $0) as? Parcel }
        }
    }

    /// Compares the objects with the stored values; merges that wait are done before.
    func check(_ stored: [NSManagedObjectID: Int64], _ run: Run) {
        context.performAndWait {
            for parcel in held where parcel.value != stored[parcel.objectID] {
                let wanted = stored[parcel.objectID].map { "\($0)" } ?? "nothing"
                run.find("a context that follows shows \(parcel.value), stored is \(wanted)")
            }
        }
    }
}
