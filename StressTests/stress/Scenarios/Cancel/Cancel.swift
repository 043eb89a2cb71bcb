import CStrataSQLite
import CoreData
import StrataLocks

/// Fetches and saves are cancelled or abandoned at any moment, or outlive their context.
///
/// Each must end once, with everything or with nothing, and leave no read open.
enum Cancel: Scenario {
    static let name = "cancel"
    static let summary = "cancels and abandons fetches and saves: each ends once, with all or nothing, no read open"
    static let runsOnPostgreSQL = true
    static let work = (figure: "started", floor: 40)
    static let rows = Knob("rows", 1_500, "the rows that a fetch finds")
    static let knobs = [rows]
    static let sabotages =
        [
            Sabotage("open-reader", "checkpoint"), Sabotage("twice", "completed 2 times"),
            Sabotage("partial", "a cancelled fetch found"), Sabotage("half-save", "is stored by half"),
            Sabotage("open-reader", "is still busy", store: .postgresql),
        ] + Sabotage.ofGuard("no-cancel-settling", "57014", store: .postgresql)

    static func run(_ run: Run) throws {
        let stack = try run.open()
        let size = max(run.knob(rows), 1)
        let maker = stack.context()
        try maker.performAndWait {
            for serial in 0..<size { Node(context: maker).serial = Int64(serial) }
            try maker.save()
        }
        let pairs = try CancelledSaves.forge(stack, run.options.contexts)
        let boxes = Locked<[Completions]>([])
        run.race(run.options.contexts + 1) { worker in
            if worker.number == 0 { return try write(worker, stack) }
            let saves = CancelledSaves(worker, stack, pairs[worker.number - 1])
            let mine = try fetch(worker, stack, size, saves)
            boxes.withLock { $0 += mine }
        }
        // A faulty second completion may come late.
        usleep(200_000)
        for box in boxes.withLock({ $0 }) where box.calls != 1 { run.find("\(box.name) completed \(box.calls) times") }
        if run.kind == .sqlite { try checkpoint(run) }
        if run.kind == .postgresql { try awaitIdleSessions(run) }
        try run.close(stack)
        try run.audit()
    }

    /// Changes rows all the time, but never so that a fetch would find another number of rows.
    private static func write(_ worker: Worker, _ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context()
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.fetchLimit = 20
        while !worker.isOver {
            worker.beat("a save beside fetches")
            try worker.time("save") {
                try context.performAndWait {
                    for node in try context.fetch(request) { node.first += 1 }
                    try context.save()
                }
            }
            usleep(2_000)
        }
    }

    /// Starts one fetch or save after the other.
    ///
    /// - Returns: How each has ended, so that it can be checked once more at the end.
    private static func fetch(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _ size: Int,
        _ saves: CancelledSaves
    ) throws -> [Completions] {
        var boxes: [Completions] = []
        while !worker.isOver {
            worker.beat("an asynchronous fetch, or a save that is awaited")
            worker.tally.count("started")
            switch worker.stream.below(4) {
            case 0: boxes.append(try execute(worker, stack.context(), size))
            case 1: boxes.append(awaitOne(worker, stack.context(), size))
            case 2: boxes.append(walk(worker, stack.context(), size))
            default: boxes.append(try saves.run())
            }
        }
        return boxes
    }

    private static func request() -> NSFetchRequest<Node> { NSFetchRequest<Node>(entityName: "Node") }

    /// Makes a fetch with a completion block, whose context may be dropped at once.
    private static func execute(
        _ worker: Worker,
        _ made: NSManagedObjectContext,
        _ size: Int
    ) throws -> Completions {
        let done = DispatchSemaphore(value: 0)
        let delay = UInt32(worker.stream.below(3) == 0 ? 0 : worker.stream.below(6_000))
        let cancels = worker.stream.chance(0.6)
        let isTwice = worker.run.isSabotaged("twice")
        let box = Completions("a fetch")
        let failure = Locked<String?>(nil)
        let asynchronous = NSAsynchronousFetchRequest(fetchRequest: request()) { result in
            if let error = result.operationError { failure.withLock { $0 = describe(error) } }
            // The block runs inside the context's scope; otherwise the program would stop here.
            _ = result.finalResult?.last?.serial
            let count = result.finalResult?.count
            box.note(count)
            if isTwice { DispatchQueue.global().asyncAfter(deadline: .now() + 0.05) { box.note(count) } }
            done.signal()
        }
        let result = try made.performAndWait { try made.execute(asynchronous) as? NSPersistentStoreAsynchronousResult }
        if cancels {
            usleep(delay)
            result?.cancel()
            // A second cancellation must not matter.
            if delay % 2 == 1 { result?.cancel() }
            worker.tally.count("cancelled")
        }
        guard done.wait(timeout: .now() + worker.run.options.stall) == .success else {
            worker.tally.find("a completion block was not called")
            return box
        }
        let count = box.count ?? -1
        if count != size, !(cancels && count == 0) {
            worker.tally.find("a fetch found \(count) of \(size) rows: \(failure.withLock { $0 } ?? "no error")")
        }
        return box
    }

    /// Makes a fetch that is awaited, in a task that may be cancelled.
    private static func awaitOne(_ worker: Worker, _ context: NSManagedObjectContext, _ size: Int) -> Completions {
        let isPartial = worker.run.isSabotaged("partial")
        let (box, isCancelled) = AwaitedWork.run(worker, "an awaited fetch", cancels: worker.stream.chance(0.6)) {
            // The results are IDs, which any thread may use.
            let request = NSFetchRequest<NSManagedObjectID>(entityName: "Node")
            request.resultType = .managedObjectIDResultType
            let count = try await context.fetch(request, progress: nil).count
            return isPartial ? count / 2 : count
        }
        // The result must be all rows, or a `CancellationError`, which only a cancelled task may throw.
        if let count = box.count, count != size {
            worker.tally.find("\(isCancelled ? "a cancelled" : "an awaited") fetch found \(count) of \(size) rows")
        }
        if box.count == nil, !isCancelled, box.error == nil { worker.tally.find("a fetch says that it was cancelled") }
        return box
    }

    /// Loops over rows without objects.
    ///
    /// The loop may take only a few of them, and its task may be cancelled meanwhile.
    private static func walk(_ worker: Worker, _ context: NSManagedObjectContext, _ size: Int) -> Completions {
        let limit = worker.stream.chance(0.5) ? worker.stream.below(size) : size
        let last = worker.stream.chance(0.2) ? worker.stream.below(size) : size
        let (box, isCancelled) = AwaitedWork.run(worker, "a loop over rows", cancels: worker.stream.chance(0.3)) {
            var count = 0
            for try await rows in context.rows(for: Self.request(), batchSize: 200) {
                count += rows.count
                if last < size, count >= last { withUnsafeCurrentTask { $0?.cancel() } }
                if limit < size, count >= limit { break }
            }
            return count
        }
        guard let count = box.count else { return box }
        // A cancelled loop may just end.
        let least = isCancelled || last < size ? 0 : limit
        if count < least || count > size { worker.tally.find("a loop found \(count) of \(least) to \(size) rows") }
        return box
    }

    /// If no read is open, then no session of the server is busy or has an open transaction.
    private static func awaitIdleSessions(_ run: Run) throws {
        let reader = run.isSabotaged("open-reader") ? try DatabasePlace.openRead() : nil
        defer { withExtendedLifetime(reader) {} }
        // Work that was just cancelled may take a moment to end.
        let end = ContinuousClock.now + .seconds(run.options.stall)
        var busy = try DatabasePlace.busySessions()
        while !busy.isEmpty, ContinuousClock.now < end {
            usleep(20_000)
            busy = try DatabasePlace.busySessions()
        }
        for state in busy { run.find("a session of the server is still busy: \(state)") }
    }

    /// If no read is open, then a checkpoint reaches the end of the log and empties it.
    private static func checkpoint(_ run: Run) throws {
        var reader: OpaquePointer?
        if run.isSabotaged("open-reader") {
            sqlite3_open(run.storeURL.path, &reader)
            sqlite3_exec(reader, "BEGIN; SELECT COUNT(*) FROM ZNODE", nil, nil, nil)
            let stack = try run.open()
            let context = stack.context()
            try context.performAndWait {
                _ = Node(context: context)
                try context.save()
            }
            try run.close(stack)
        }
        defer { sqlite3_close_v2(reader) }
        var connection: OpaquePointer?
        guard sqlite3_open(run.storeURL.path, &connection) == SQLITE_OK else {
            throw StressError("no second connection")
        }
        defer { sqlite3_close_v2(connection) }
        // Before it has read the file, SQLite does not know that there is a log, and has nothing to do. Work that was
        // just cancelled may take a moment to end.
        sqlite3_busy_timeout(connection, 2_000)
        guard sqlite3_exec(connection, "SELECT COUNT(*) FROM ZNODE", nil, nil, nil) == SQLITE_OK else {
            throw StressError("the second connection cannot read")
        }
        var (log, done): (Int32, Int32) = (0, 0)
        let code = sqlite3_wal_checkpoint_v2(connection, nil, SQLITE_CHECKPOINT_TRUNCATE, &log, &done)
        if log < 0 { run.find("a checkpoint finds no log") }
        if code != SQLITE_OK { run.find("a checkpoint is kept from ending (\(code)): somebody still reads") }
    }
}
