import CoreData
import StrataLocks

/// Several sessions want to number the same transactions of a history.
///
/// One of the transactions is older than another one that already has a number.
enum NumberingRace {
    /// Runs the race.
    ///
    /// - Parameters:
    ///   - run: Collects the findings.
    ///   - stack: A coordinator with a history.
    ///   - others: The number of other sessions that give numbers.
    /// - Throws: Errors that have nothing to do with the race.
    static func run(_ run: Run, _ stack: NSPersistentStoreCoordinator, others: Int) throws {
        let held = FaultPoints.hold(at: "history.numbered")
        defer { FaultPoints.clear() }
        let start = stack.currentPersistentHistoryToken(fromStores: nil)
        // This transaction begins first, and commits last.
        let old = try DatabasePlace.openTransaction(
            "INSERT INTO strata_transaction (id, time) VALUES (pg_catalog.gen_random_uuid(), 0)",
            at: run.storeURL
        )
        let writer = stack.context()
        try writer.performAndWait {
            Mark(context: writer).serial = 1
            try writer.save()
        }
        // One session has numbered the new transaction, and has not committed.
        guard held.waitForArrival(run.options.stall) else { throw StressError("no session numbers a transaction") }
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
        // Wait until all other sessions, including that of the reader, wait for the first one.
        let end = ContinuousClock.now + .seconds(min(run.options.stall, 10))
        while ContinuousClock.now < end, try DatabasePlace.waitingSessions() < others { usleep(5_000) }
        held.release()
        guard done.wait(timeout: .now() + run.options.stall) == .success else {
            throw StressError("the history is not numbered")
        }
        if let error = failure.withLock({ $0 }) { run.find("a history cannot be numbered: \(describe(error))") }
    }
}
