import CoreData
import StrataLocks

/// Several come to give numbers to the same transactions of a history, and one of these is older than another one that has its number already.
enum NumberingRace {
    /// - Parameters:
    ///   - run: What finds.
    ///   - stack: A coordinator with a history.
    ///   - others: How many others give numbers.
    /// - Throws: What has nothing to do with it.
    static func run(_ run: Run, _ stack: NSPersistentStoreCoordinator, others: Int) throws {
        let held = FaultPoints.hold(at: "history.numbered")
        defer { FaultPoints.clear() }
        let start = stack.currentPersistentHistoryToken(fromStores: nil)
        // It comes first, and commits last.
        let old = try DatabasePlace.openTransaction(
            "INSERT INTO strata_transaction (id, time) VALUES (pg_catalog.gen_random_uuid(), 0)",
            at: run.storeURL
        )
        let writer = stack.context()
        try writer.performAndWait {
            Mark(context: writer).serial = 1
            try writer.save()
        }
        // Somebody has numbered the new one, and has not committed.
        guard held.waitForArrival(run.options.stall) else { throw StressError("nobody numbers a transaction") }
        try old?.commit()
        let done = DispatchSemaphore(value: 0)
        let failure = Locked<(any Error)?>(nil)
        Thread.detachNewThread {
            let reader = stack.context()
            do {
                try reader.performAndWait {
                    _ = try reader.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: start))
                }
            } catch {
                failure.withLock { $0 = error }
            }
            done.signal()
        }
        // All others have come, one of them the reader, and wait for the first.
        let end = ContinuousClock.now + .seconds(min(run.options.stall, 10))
        while ContinuousClock.now < end, try DatabasePlace.waitingSessions() < others { usleep(5_000) }
        held.release()
        guard done.wait(timeout: .now() + run.options.stall) == .success else {
            throw StressError("the history is not numbered")
        }
        if let error = failure.withLock({ $0 }) { run.find("a history cannot be numbered: \(describe(error))") }
    }
}
