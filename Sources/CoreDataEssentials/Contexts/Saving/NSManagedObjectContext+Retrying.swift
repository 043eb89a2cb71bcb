import Foundation
import StrataRows

extension NSManagedObjectContext {
    /// Runs `block` inside the context's scope, saves, and runs the block again if another context or process has
    /// changed the same rows.
    ///
    /// Before it runs the block again, it drops all changes that the block has made, and brings the context up to date.
    ///
    /// See <doc:Saving>.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// try await worker.perform(retrying: 5) { (try worker.existingObject(with: id) as? Venue)?.price -= 1 }
    /// ```
    ///
    /// For example, if two callers each subtract 10 from 100 at the same time, the result is 80. The block has to read
    /// the values on which its decisions rest, and should do nothing that cannot be repeated, since it may run several
    /// times. It may use objects from outside of the block if they belong to this context. A `save()` inside the block
    /// counts as a part of it, but what that has stored is not undone.
    ///
    /// This method is meant for contexts whose ``mergePolicy`` (for a child: ``parentConflictPolicy``) throws
    /// conflicts. Any other policy resolves the conflicts, so the block runs only once. Each run waits for its own turn
    /// on the queue, so other blocks run in between. Each run is one user event, as with ``perform(schedule:_:)``. If
    /// the task is cancelled, no further run begins. There is no pause between two runs: a conflict means that another
    /// save has succeeded.
    ///
    /// An addition to Apple's API. May be called on any thread.
    ///
    /// - Parameters:
    ///   - limit: The greatest number of times to run the block again; 0 for never.
    ///   - block: The work to do. The context is saved when the block returns.
    /// - Returns: The value that the last run of the block returned.
    /// - Throws: The error that the block throws, and the errors of ``save()``; the conflict (133020 or 133021) of
    ///   the last run; `CancellationError` if the task was cancelled.
    ///   `persistentStoreOperation` (134070) means that the context had unsaved changes before the call, since a
    ///   conflict would drop them. In all other cases the context has no changes afterwards, and the undo stack is
    ///   empty.
    nonisolated(nonsending) public func perform<T>(
        retrying limit: Int,
        _ block: sending @escaping () throws -> sending T
    ) async throws -> sending T {
        // The block stays with the context: its runs are turns of the context's queue, one after the other.
        let block = UncheckedBox(block)
        var retries = 0
        while true {
            try Task.checkCancellation()
            let isLast = retries >= limit
            let outcome: Result<UncheckedBox<T>, any Error>? = await perform {
                self.attempt(isLast: isLast) { UncheckedBox(try block.value()) }
            }
            if let outcome { return try outcome.get().value }
            retries += 1
        }
    }

    /// Like ``perform(retrying:_:)``, for synchronous callers: runs the block inside the context's scope and waits.
    ///
    /// If the caller is inside the scope already, the block runs directly. Each run ends with a save, so the changes of
    /// other blocks do not get mixed into it. The method does not notice that a task was cancelled.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// try worker.performAndWait(retrying: 5) { (try worker.existingObject(with: id) as? Venue)?.price -= 1 }
    /// ```
    ///
    /// - Parameters:
    ///   - limit: The greatest number of times to run the block again; 0 for never.
    ///   - block: The work to do. The context is saved when the block returns.
    /// - Returns: The value that the last run of the block returned.
    /// - Throws: As ``perform(retrying:_:)``, without `CancellationError`.
    public func performAndWait<T>(retrying limit: Int, _ block: () throws -> T) throws -> T {
        var retries = 0
        while true {
            let isLast = retries >= limit
            if let outcome = performAndWait({ attempt(isLast: isLast, block) }) { return try outcome.get() }
            retries += 1
        }
    }

    /// Runs a block and saves.
    ///
    /// - Returns: The outcome; `nil` if the block should run again.
    private func attempt<T>(isLast: Bool, _ block: () throws -> T) -> Result<T, any Error>? {
        guard !hasChanges else {
            return .failure(
                FetchPlanner.refused(
                    """
                    \(describedName) has unsaved changes, which a conflict would drop; save or roll back before \
                    perform(retrying:_:).
                    """
                )
            )
        }
        do {
            let value = try failingWithReads(block)
            if hasChanges || changeTracker.checkedObjects.contains(where: { $0.context === self }) { try save() }
            return .success(value)
        } catch {
            rollback()
            guard !isLast, let error = error as? CocoaError,
                [.managedObjectMerge, .managedObjectConstraintMerge].contains(error.code)
            else { return .failure(error) }
            // The next run must not decide by data that was read before the conflict.
            advanceGeneration()
            refreshAllObjects()
            reportToInstrument(.retry, error)
            return nil
        }
    }
}
