import CStrataSQLite
import CoreData
import LoadFigures

/// Small saves beside readers.
///
/// The scenario measures how long each takes, and no save may take out of all proportion.
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

    static func run(_ run: Run) throws {
        let stack = try run.open()
        let size = max(run.knob(rows), 100)
        let maker = stack.context()
        let ids = try maker.performAndWait {
            let nodes = (0..<size).map { serial in
                let node = Node(context: maker)
                node.serial = Int64(serial)
                node.label = "node \(serial)"
                return node
            }
            try maker.save()
            return nodes.map(\.objectID)
        }
        run.race(run.knob(readers) + (run.isSabotaged("stall") ? 2 : 1)) { worker in
            switch worker.number {
            case 0: try save(worker, stack, ids)
            case run.knob(readers) + 1: try stall(worker)
            default: try read(worker, stack, ids)
            }
        }
        try run.close(stack)
        try run.audit()
    }

    /// Loads a row, changes it and saves it, again and again, and compares the times.
    ///
    /// The time in which the thread waited for a processor is left out: the framework does not control which threads
    /// have a processor, or what else the machine does. Waits for a lock, a queue or the disk count.
    private static func save(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _ ids: [NSManagedObjectID]
    ) throws {
        let context = stack.context()
        var (times, all) = (Latencies(), Latencies())
        let wait = ProcessorWait()
        defer { wait.end() }
        while !worker.isOver {
            worker.beat("a small save")
            let id = worker.stream.pick(ids)
            let (before, start) = (wait.sum, ContinuousClock.now)
            try worker.time("save") {
                try context.performAndWait {
                    (try context.existingObject(with: id) as? Node)?.first += 1
                    try context.save()
                }
            }
            let took = ContinuousClock.now - start
            all.add(took)
            times.add(took - (wait.sum - before))
            worker.tally.count("saves")
        }
        func cliff(_ times: Latencies) -> Double { times.milliseconds(0.99) / times.milliseconds(0.5) }
        let ratio = cliff(times)
        worker.tally.count("p99-by-p50", Int(ratio.rounded()))
        worker.tally.count("p99-by-p50-with-processor-waits", Int(cliff(all).rounded()))
        let limit = worker.run.knob(limit)
        guard ratio >= Double(limit) else { return }
        worker.tally.find("a cliff: the slowest of 100 small saves takes \(Int(ratio)) times the usual, not \(limit)")
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
                request.fetchBatchSize = worker.run.options.batchSize ?? 0
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
            // The pause is random, so that readers do not run in step.
            if rest > 0 { usleep(UInt32(500 * rest + worker.stream.below(1_000 * rest))) }
        }
    }

    /// Takes the lock of the file now and then, as another process might.
    ///
    /// It does so often that more than one save in a hundred has to wait for it, even where saves are fast.
    private static func stall(_ worker: Worker) throws {
        var connection: OpaquePointer?
        sqlite3_open(worker.run.storeURL.path, &connection)
        defer { sqlite3_close_v2(connection) }
        sqlite3_busy_timeout(connection, 5_000)
        while !worker.isOver {
            worker.beat("a stall")
            sqlite3_exec(connection, "BEGIN IMMEDIATE", nil, nil, nil)
            usleep(150_000)
            sqlite3_exec(connection, "COMMIT", nil, nil, nil)
            usleep(3_000)
        }
    }
}
