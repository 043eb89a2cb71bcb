import CStrataSQLite
import CoreData
import Synchronization

/// Fetches that are started, cancelled, abandoned or outlive their context, at any moment: each ends once, with all or with
/// nothing, and leaves no read open.
enum Cancel: Scenario {
    static let name = "cancel"
    static let summary = "cancels and abandons asynchronous fetches: each completes once, and no read stays open"
    static let work = (figure: "started", floor: 40)
    static let rows = Knob("rows", 1_500, "the rows that a fetch finds")
    static let knobs = [rows]
    static let sabotages = [Sabotage("open-reader", "checkpoint"), Sabotage("twice", "completed 2 times")]

    static func run(_ run: Run) throws {
        let stack = try run.open()
        let size = max(run.knob(rows), 1)
        let maker = stack.context()
        try maker.performAndWait {
            for serial in 0..<size { Node(context: maker).serial = Int64(serial) }
            try maker.save()
        }
        run.race(run.options.contexts + 1) { worker in
            if worker.number == 0 { try write(worker, stack) } else { try fetch(worker, stack, size) }
        }
        if run.kind == .sqlite { try checkpoint(run) }
        try run.close(stack)
        try run.audit()
    }

    /// Changes rows all the time, none of them so that a fetch would find another number.
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

    private static func fetch(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _ size: Int) throws {
        while !worker.isOver {
            worker.beat("an asynchronous fetch")
            worker.tally.count("started")
            switch worker.stream.below(3) {
            case 0: try execute(worker, stack.context(), size)
            case 1: awaitOne(worker, stack.context(), size)
            default: walk(worker, stack.context(), size)
            }
        }
    }

    private static func request() -> NSFetchRequest<Node> { NSFetchRequest<Node>(entityName: "Node") }

    /// The form with a completion block, whose context may be dropped at once.
    private static func execute(_ worker: Worker, _ made: NSManagedObjectContext, _ size: Int) throws {
        let done = DispatchSemaphore(value: 0)
        let delay = UInt32(worker.stream.below(3) == 0 ? 0 : worker.stream.below(6_000))
        let cancels = worker.stream.chance(0.6)
        let isTwice = worker.run.isSabotaged("twice")
        let box = Completions()
        let asynchronous = NSAsynchronousFetchRequest(fetchRequest: request()) { result in
            box.note(result.finalResult?.count, isTwice ? 2 : 1)
            done.signal()
        }
        let result = try made.performAndWait { try made.execute(asynchronous) as? NSPersistentStoreAsynchronousResult }
        if cancels {
            usleep(delay)
            result?.cancel()
            worker.tally.count("cancelled")
        }
        guard done.wait(timeout: .now() + worker.run.options.stall) == .success else {
            return worker.tally.find("a completion block was not called")
        }
        if box.calls != 1 { worker.tally.find("a fetch completed \(box.calls) times") }
        let count = box.count ?? -1
        if count != size, !(cancels && count == 0) { worker.tally.find("a fetch found \(count) of \(size) rows") }
    }

    /// The form that is awaited, in a task that is cancelled.
    private static func awaitOne(_ worker: Worker, _ context: NSManagedObjectContext, _ size: Int) {
        let cancels = worker.stream.chance(0.6)
        finish(worker, size, cancels) {
            // IDs, which any thread may have.
            let request = NSFetchRequest<NSManagedObjectID>(entityName: "Node")
            request.resultType = .managedObjectIDResultType
            return try await context.fetch(request, progress: nil).count
        }
    }

    /// Rows without objects, of which the loop may take only a few.
    private static func walk(_ worker: Worker, _ context: NSManagedObjectContext, _ size: Int) {
        let cancels = worker.stream.chance(0.4)
        let limit = worker.stream.chance(0.5) ? worker.stream.below(size) : size
        finish(worker, limit == size ? size : nil, cancels) {
            var count = 0
            for try await rows in context.rows(for: Self.request(), batchSize: 200) {
                count += rows.count
                if limit < size, count >= limit { break }
            }
            return count
        }
    }

    /// Runs a task, perhaps cancels it, and waits for its end.
    private static func finish(
        _ worker: Worker,
        _ wanted: Int?,
        _ cancels: Bool,
        _ body: @escaping @Sendable () async throws -> Int
    ) {
        let box = Completions()
        let done = DispatchSemaphore(value: 0)
        let task = Task {
            do { box.note(try await body(), 1) } catch is CancellationError { box.note(nil, 1) } catch {
                box.fail(describe(error))
            }
            done.signal()
        }
        if cancels {
            usleep(UInt32(worker.stream.below(6_000)))
            task.cancel()
            worker.tally.count("cancelled")
        }
        guard done.wait(timeout: .now() + worker.run.options.stall) == .success else {
            return worker.tally.find("an awaited fetch has not ended")
        }
        if let error = box.error { worker.tally.find("an awaited fetch gave \(error)") }
        // A loop over rows that is cancelled may just end.
        guard let wanted, !cancels, box.error == nil, box.count != wanted else { return }
        worker.tally.find("an awaited fetch found \(box.count ?? 0) of \(wanted) rows")
    }

    /// With no read open, a checkpoint reaches the end of the log and empties it.
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
        // Without having looked at the file SQLite does not know that there is a log, and has nothing to do. What was cancelled
        // a moment ago may take another one to end.
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

/// What came of a fetch, from whatever thread.
private final class Completions: Sendable {
    private struct State {
        var calls = 0
        var count: Int?
        var error: String?
    }

    private let state = Mutex(State())

    var calls: Int { state.withLock { $0.calls } }
    var count: Int? { state.withLock { $0.count } }
    var error: String? { state.withLock { $0.error } }

    func note(_ count: Int?, _ times: Int) {
        state.withLock { state in
            state.calls += times
            state.count = count
        }
    }

    func fail(_ text: String) { state.withLock { $0.error = text } }
}
