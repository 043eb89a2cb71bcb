import CStrataSQLite
import CoreData

/// Small saves beside readers: how long each takes, and that none takes out of all proportion.
///
/// In turn with them the same saves are made to a store that nobody else has, while the readers go on with the other one: what
/// the machine does to a thread shows there too, and is not the framework's.
enum Mixed: Scenario {
    static let name = "mixed"
    static let summary = "small saves beside readers: the slowest in a hundred takes less than 20 times the usual"
    static let work = (figure: "saves", floor: 200)
    static let readers = Knob("readers", 4, "readers beside the one that saves")
    static let rows = Knob("mixed-rows", 500, "the rows that are read and written")
    static let rest = Knob("rest", 5, "milliseconds that a reader rests between two reads; 0 keeps all cores busy")
    static let limit = Knob("cliff", 20, "how many times the usual time of a save the slowest in a hundred may take")
    static let knobs = [readers, rows, rest, limit]
    static let sabotages = [Sabotage("stall", "a cliff")]

    /// How many times as long as in a store without readers the slowest in a hundred takes where they are to blame.
    private static let blame = 3.0

    /// A store with rows in it.
    private struct Place {
        let stack: NSPersistentStoreCoordinator
        let ids: [NSManagedObjectID]

        init(_ stack: NSPersistentStoreCoordinator, _ size: Int) throws {
            self.stack = stack
            let maker = stack.context()
            ids = try maker.performAndWait {
                let nodes = (0..<size).map { serial in
                    let node = Node(context: maker)
                    node.serial = Int64(serial)
                    node.label = "node \(serial)"
                    return node
                }
                try maker.save()
                return nodes.map(\.objectID)
            }
        }
    }

    static func run(_ run: Run) throws {
        let size = max(run.knob(rows), 100)
        let folder = run.folder.appendingPathComponent("alone")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let shared = try Place(try run.open(), size)
        let alone = try Place(try run.open(at: folder.appendingPathComponent("store.sqlite")), size)
        run.race(run.knob(readers) + (run.isSabotaged("stall") ? 2 : 1)) { worker in
            switch worker.number {
            case 0: try save(worker, shared, alone)
            case run.knob(readers) + 1: try stall(worker)
            default: try read(worker, shared.stack, shared.ids)
            }
        }
        for place in [shared, alone] { try run.close(place.stack) }
        try run.audit()
    }

    /// Saves for half a second beside the readers, then as long where nobody reads, and compares the times.
    ///
    /// In spells of their own, so that a pause of the machine spoils one and not all.
    private static func save(_ worker: Worker, _ shared: Place, _ alone: Place) throws {
        let contexts = [shared, alone].map { $0.stack.context() }
        var ratios: [Double] = []
        // Of few spells no single one may decide, so these are compared as wholes.
        var (all, allAlone) = (Latencies(), Latencies())
        while !worker.isOver {
            let beside = try spell(worker, "save", contexts[0], shared.ids)
            let without = try spell(worker, "save-alone", contexts[1], alone.ids)
            guard beside.count >= 50, without.count >= 50 else { continue }
            ratios.append(beside.milliseconds(0.99) / beside.milliseconds(0.5))
            all.add(beside)
            allAlone.add(without)
        }
        guard !ratios.isEmpty else { return }
        let usual = ratios.sorted()[ratios.count / 2]
        let share = all.milliseconds(0.99) / allAlone.milliseconds(0.99)
        worker.tally.count("p99-by-p50", Int(usual.rounded()))
        worker.tally.count("p99-by-p99-alone-percent", Int((share * 100).rounded()))
        let limit = worker.run.knob(limit)
        if usual >= Double(limit), share >= blame {
            worker.tally.find(
                """
                a cliff: the slowest of 100 small saves takes \(Int(usual)) times the usual, not \(limit), and \
                \(Int(share)) times as long as where nobody reads
                """
            )
        }
    }

    /// Loads a row, changes it and saves it, for half a second.
    private static func spell(
        _ worker: Worker,
        _ name: String,
        _ context: NSManagedObjectContext,
        _ ids: [NSManagedObjectID]
    ) throws -> Latencies {
        var times = Latencies()
        let end = min(worker.run.end, .now + .seconds(0.5))
        while .now < end {
            worker.beat("a small save")
            let id = worker.stream.pick(ids)
            let start = ContinuousClock.now
            try context.performAndWait {
                (try context.existingObject(with: id) as? Node)?.first += 1
                try context.save()
            }
            let took = ContinuousClock.now - start
            times.add(took)
            worker.tally.time(name, took)
            worker.tally.count("saves")
        }
        return times
    }

    /// Fetches a page of rows, or one row, always from the store.
    private static func read(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _ ids: [NSManagedObjectID]
    ) throws {
        let context = stack.context()
        context.stalenessInterval = 0
        while !worker.isOver {
            worker.beat("a fetch beside saves")
            if worker.stream.chance(0.5) {
                let first = Int64(worker.stream.below(ids.count - 20))
                let request = NSFetchRequest<Node>(entityName: "Node")
                request.predicate = NSPredicate(format: "serial >= %@ AND serial < %@", first, first + 20)
                let count = try worker.time("fetch") {
                    try context.performAndWait {
                        try context.fetch(request).reduce(0) { $0 + ($1.label == nil ? 0 : 1) }
                    }
                }
                if count != 20 { worker.tally.find("a fetch of 20 rows finds \(count)") }
            } else {
                let id = worker.stream.pick(ids)
                try worker.time("read") {
                    try context.performAndWait { _ = (try context.existingObject(with: id) as? Node)?.first }
                }
            }
            worker.tally.count("reads")
            let rest = worker.run.knob(rest)
            // Never in step with the others.
            if rest > 0 { usleep(UInt32(500 * rest + worker.stream.below(1_000 * rest))) }
        }
    }

    /// Takes the lock of the file now and then, as another process might.
    private static func stall(_ worker: Worker) throws {
        var connection: OpaquePointer?
        sqlite3_open(worker.run.storeURL.path, &connection)
        defer { sqlite3_close_v2(connection) }
        sqlite3_busy_timeout(connection, 5_000)
        while !worker.isOver {
            worker.beat("a stall")
            sqlite3_exec(connection, "BEGIN IMMEDIATE", nil, nil, nil)
            usleep(10_000)
            sqlite3_exec(connection, "COMMIT", nil, nil, nil)
            usleep(3_000)
        }
    }
}
