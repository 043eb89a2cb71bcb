import Dispatch
import StrataRows

extension NSManagedObjectContext {
    /// Sees to it that an event of a context of the main queue, which has just begun, ends by itself.
    ///
    /// Such a context is used without blocks, and nothing tells when the code that runs on the main queue has done its
    /// part. So a block is submitted to that queue: once for each of its turns, and only when something has changed. Run
    /// loops, `dispatchMain()` and Swift's main actor all serve that queue.
    // Never inlined: the first change of an event calls it, the others only look whether they are the first.
    @inline(never)
    final func scheduleEndOfEvent() {
        guard concurrencyType == .mainQueueConcurrencyType, !changeTracker.isEndScheduled else { return }
        changeTracker.isEndScheduled = true
        // Not kept alive: a context that nobody has any more tells nobody.
        DispatchQueue.main.async { [weak self] in self?.endScheduledEvent() }
    }

    private func endScheduledEvent() {
        changeTracker.isEndScheduled = false
        // A block of `perform`, a fetch or a save has ended it before.
        guard !changeTracker.eventObjects.isEmpty else { return }
        // A hook of a save may serve the queue. The save ends the event.
        if !saving.isSaving { ConfinementScope.enter(self) { endOfEvent() } }
        if !changeTracker.eventObjects.isEmpty { scheduleEndOfEvent() }
    }
}
