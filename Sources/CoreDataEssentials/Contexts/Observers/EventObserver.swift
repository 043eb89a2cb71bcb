/// The functions that a list of fetched results wants to be called when its context changes.
///
/// The list owns this, and the context only refers to it. Confined to the context's queue.
package final class EventObserver {
    /// Called after an event of the context has ended.
    let eventEnded: (ContextEvent) -> Void
    /// Called after the context has forgotten all objects.
    let contextWasReset: () -> Void
    /// Called after the stores have changed if it is unknown in what.
    let storesMayHaveChanged: () -> Void

    package init(
        eventEnded: @escaping (ContextEvent) -> Void,
        contextWasReset: @escaping () -> Void,
        storesMayHaveChanged: @escaping () -> Void
    ) {
        self.eventEnded = eventEnded
        self.contextWasReset = contextWasReset
        self.storesMayHaveChanged = storesMayHaveChanged
    }
}
