import Foundation
import StrataRows

extension NSManagedObjectContext {
    /// Runs `block` inside the context's scope and saves; if others have changed the same rows meanwhile, drops all that
    /// the block has changed, brings the context up to date, and runs the block anew.
    ///
    /// See <doc:Saving>.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// try await worker.perform(retrying: 5) { (try worker.existingObject(with: id) as? Venue)?.price -= 1 }
    /// ```
    ///
    /// So two who take 10 from 100 leave 80, whoever is first. The block has to read what it decides by, and should do
    /// nothing that cannot be repeated: it may run several times. Objects that it uses may come from outside of it, if they are
    /// of this context. A `save()` inside of the block counts as part of it, and what it has stored is not taken back.
    ///
    /// For contexts whose ``mergePolicy`` (of a child: ``parentConflictPolicy``) throws conflicts; another policy resolves
    /// them, and nothing is run anew. Each run is a turn of its own on the queue, so that others get theirs, and one user
    /// event, as with ``perform(schedule:_:)``. If the task is cancelled, no further run begins. Nobody waits between two
    /// runs: a conflict means that somebody else has succeeded.
    ///
    /// An addition to Apple's API. May be called on any thread.
    ///
    /// - Parameters:
    ///   - limit: How often to run the block again, at most; 0 for never.
    ///   - block: What to do. The context is saved when it returns.
    /// - Returns: What the block returned the last time.
    /// - Throws: What the block throws, and as ``save()``; the conflict (133020 or 133021) of the last run; `CancellationError`
    ///   if the task was cancelled; `persistentStoreOperation` (134070) if the context had unsaved changes before, which a
    ///   conflict would drop. In all other cases the context has no changes then, and the undo stack is empty.
    nonisolated(nonsending) public func perform<T>(
        retrying limit: Int,
        _ block: sending @escaping () throws -> sending T
    ) async throws -> sending T {
        // Sent to the context for good: its runs are turns of the context's queue, one after the other.
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

    /// As ``perform(retrying:_:)``, for callers that are not asynchronous: runs the block inside the context's scope and waits.
    ///
    /// Inline if the caller is in the scope already. Each run ends with a save, so that the events of others are not mixed into
    /// it. A task that is cancelled is not noticed.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// try worker.performAndWait(retrying: 5) { (try worker.existingObject(with: id) as? Venue)?.price -= 1 }
    /// ```
    ///
    /// - Parameters:
    ///   - limit: How often to run the block again, at most; 0 for never.
    ///   - block: What to do. The context is saved when it returns.
    /// - Returns: What the block returned the last time.
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
    /// - Returns: What has come of it; `nil` if it is to be tried again.
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
            // The block decides by what it reads, so nothing that was read before the conflict may count.
            advanceGeneration()
            refreshAllObjects()
            tellInstrument(.retry, error)
            return nil
        }
    }
}
