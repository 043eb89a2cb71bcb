/// The functions that a live query wants to be called when stores have changed.
///
/// The query owns this, and coordinators and contexts only refer to it. Any thread may call its members.
package final class CommitObserver: Sendable {
    /// Called after something was committed, with `nil` if it is unknown what.
    let committed: @Sendable (ChangeMessage?) -> Void
    /// Called at the end of the context.
    let contextEnded: @Sendable () -> Void

    package init(
        committed: @escaping @Sendable (ChangeMessage?) -> Void,
        contextEnded: @escaping @Sendable () -> Void
    ) {
        self.committed = committed
        self.contextEnded = contextEnded
    }
}
