import Dispatch
import StrataRows

extension NSManagedObjectContext {
    /// Makes sure that an event that has just begun in a context of the main queue ends by itself.
    ///
    /// Such a context is used without blocks, and nothing reports that the code on the main queue has finished. So a
    /// block is submitted to that queue: once for each of its turns, and only if something has changed. Run loops,
    /// `dispatchMain()` and Swift's main actor all serve that queue.
    // The function is never inlined: only the first change of an event calls it. The other changes only look whether
    // they are the first.
    @inline(never)
    final func scheduleEndOfEvent() {
        guard concurrencyType == .mainQueueConcurrencyType, !changeTracker.isEndScheduled else { return }
        changeTracker.isEndScheduled = true
        // The block does not keep the context alive: a context that no code holds any more has nothing to report.
        DispatchQueue.main.async { [weak self] in self?.endScheduledEvent() }
    }

    private func endScheduledEvent() {
        changeTracker.isEndScheduled = false
        // A block of `perform`, a fetch or a save has already ended the event.
        guard !changeTracker.eventObjects.isEmpty else { return }
        // A hook of a save may serve the queue. Then the save ends the event.
        if !saving.isSaving { ConfinementScope.enter(self) { endOfEvent() } }
        if !changeTracker.eventObjects.isEmpty { scheduleEndOfEvent() }
    }
}
