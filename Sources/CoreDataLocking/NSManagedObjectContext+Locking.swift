import CoreDataEssentials
import StrataLocks

extension NSManagedObjectContext {
    /// Runs `block` inside the context's scope, where fetches may lock rows, in one transaction of the store.
    ///
    /// The first fetch with a ``NSFetchRequest/rowLock`` begins the transaction. The rows that it finds stay locked, so
    /// no other context or process changes them, until this context saves or the block ends:
    ///
    /// - **A save inside the block** writes its changes in that transaction, and commits it. For rows that were locked
    ///   before they were changed there can be no conflict. If the save fails, then its changes stay unsaved and the locks
    ///   stay, so the block may save again. After a save that has written changes, the block goes on without locks, and
    ///   cannot lock more rows.
    /// - **The end of the block without a save**, or an error that it throws, rolls the transaction back. Nothing was
    ///   written. The context keeps its unsaved changes, as after a save that has failed: a later save writes them if
    ///   no other save has changed the same rows since, and ``rollback()`` drops them.
    /// - **The end of the time** rolls the transaction back, at once and from another thread, so that others go on. Each
    ///   further fetch and save of the block throws 134090, and so does the end of the block. Unsaved changes are kept.
    ///
    /// Other reads of the block see the newest data of the store, and do not wait for locks. Each fetch that waits for
    /// rows does so until the time is over. If the task is cancelled, then waits for locks end with a
    /// `CancellationError`. A save is not cancelled.
    ///
    /// ```swift
    /// let jobs = NSFetchRequest<Job>(entityName: "Job")
    /// jobs.fetchLimit = 1
    /// jobs.rowLock = RowLock(.update, lockedRows: .skip)  // jobs that others are doing are left out
    /// try await context.perform(locking: .seconds(10)) {
    ///     guard let job = try context.fetch(jobs).first else { return }
    ///     context.delete(job)  // the work is done
    ///     try context.save()
    /// }
    /// ```
    ///
    /// On PostgreSQL single rows are locked. On SQLite and in memory the first fetch takes the turn to write to the whole
    /// store. So all others wait with their saves until the block ends, each with its own time-out, and all rows count as
    /// locked by others while another block has the turn. There, `.fail` and `.skip` wait for a tenth of a second, since
    /// each save has the turn for a moment.
    ///
    /// Reads of other contexts never wait for the block. If the block waits for work that waits for its locks, then only
    /// the end of its time ends that. So the block should not wait for saves of other contexts, for a user, or for a
    /// network. A batch request and `obtainPermanentIDs(for:)` are refused (134070) once rows of their store are locked.
    ///
    /// Contexts with a parent, pinned contexts, and a block inside such a block of the same context are refused. A child
    /// that saves inside the block saves into this context.
    ///
    /// An addition to Apple's API. May be called on any thread. See <doc:Concurrency>.
    ///
    /// - Parameters:
    ///   - limit: The time that the block has to end, from its begin on the queue. Choose a short one.
    ///   - block: The work to do. It is sent to the context, as with `perform(schedule:_:)`.
    /// - Returns: The result of the block.
    /// - Throws: The errors of the block. `persistentStoreTimeout` (134090) after the end of the time; its text and
    ///   `NSRowLockObjectIDsErrorKey` name the rows that were locked. `managedObjectContextLocking` (132000) if a fetch has
    ///   found locked rows and should fail then, or if the server has ended the transaction because blocks waited for
    ///   each other's rows. `persistentStoreOperation` (134070) for a context or a request that cannot lock rows, and for
    ///   a SQLite database in memory. `persistentStoreUnsupportedRequestType` (134091) for a custom store.
    ///   `CancellationError` if the task was cancelled.
    nonisolated(nonsending) public func perform<T>(
        locking limit: Duration,
        _ block: sending @escaping () throws -> sending T
    ) async throws -> sending T {
        let block = UncheckedBox(block)
        let cancellation = Cancellation()
        let result: UncheckedBox<T> = try await withTaskCancellationHandler {
            try await perform {
                try RowLockingBlock.run(in: self, for: limit, cancellation) { UncheckedBox(try block.value()) }
            }
        } onCancel: {
            cancellation.cancel()
        }
        return result.value
    }

    /// Like ``perform(locking:_:)``, for synchronous callers: runs the block inside the context's scope and waits.
    ///
    /// If the caller is inside the scope already, the block runs directly. The method does not notice that a task was
    /// cancelled.
    ///
    /// ```swift
    /// let venues = NSFetchRequest<Venue>(entityName: "Venue")
    /// venues.predicate = NSPredicate(format: "price > 100")
    /// venues.rowLock = RowLock(.update)
    /// let count = try context.performAndWait(locking: .seconds(2)) {
    ///     let found = try context.fetch(venues)
    ///     for venue in found { venue.price -= 10 }
    ///     try context.save()
    ///     return found.count
    /// }
    /// print(count)
    /// ```
    ///
    /// - Parameters:
    ///   - limit: The time that the block has to end, from its begin on.
    ///   - block: The work to do. It is not kept.
    /// - Returns: The result of the block.
    /// - Throws: As ``perform(locking:_:)``, without `CancellationError`.
    public func performAndWait<T>(locking limit: Duration, _ block: () throws -> T) throws -> T {
        try performAndWait { try RowLockingBlock.run(in: self, for: limit, Cancellation(), block) }
    }
}
