import Synchronization

/// Lets any thread stop an operation that runs, or waits, on another one.
///
/// All operations that can be stopped use it. Adapters at their edges connect it with what else can cancel or be
/// cancelled: SQLite's connections, PostgreSQL's server, a sleeping thread, a task, or Foundation's `Progress`.
///
/// ``cancel(throwing:)`` ends a wait for a connection or a turn, and a statement of a server, at once. Other code of
/// the operation asks. A cancellation stays, so that later parts of the same operation stop too.
package final class Cancellation: Sendable {
    private struct State {
        /// The error with which the operation ends.
        var reason: (any Error)?
        /// Ends what the operation does at this moment.
        var stop: (@Sendable () -> Void)?
    }

    private let flag = AtomicCell(false)
    private let state = Locked(State())
    /// The cancellation of the operation that this is a part of.
    private let whole: Cancellation?
    private let isOver: (@Sendable () -> Bool)?

    /// Makes a cancellation that `cancel(throwing:)` or `isOver` triggers.
    ///
    /// - Parameters:
    ///   - whole: The cancellation of an operation of which this one is a part; it stops the part too.
    ///   - isOver: Called every thousand instructions, on the thread that runs the statement.
    package init(partOf whole: Cancellation? = nil, orWhen isOver: (@Sendable () -> Bool)? = nil) {
        self.whole = whole
        self.isOver = isOver
    }

    // MARK: - Asking

    package var isCancelled: Bool { flag.load(ordering: .acquiring) || whole?.isCancelled ?? false }

    /// Whether the operation has to stop: it was cancelled, or `isOver` says so.
    package var endsStatement: Bool { isCancelled || isOver?() ?? false }

    /// Continues unless the operation was cancelled.
    ///
    /// - Throws: The error of ``cancel(throwing:)``, if that was called.
    package func check() throws {
        guard isCancelled else { return }
        if let reason = state.withLock({ $0.reason }) { throw reason }
        try whole?.check()
    }

    // MARK: - Signalling

    /// Asks the operation to stop.
    ///
    /// Any thread may call it; the second call does nothing.
    ///
    /// - Parameter reason: The error that ``check()`` throws from then on.
    package func cancel(throwing reason: any Error = CancellationError()) {
        state.withLock { state in
            guard state.reason == nil else { return }
            state.reason = reason
            flag.store(true, ordering: .releasing)
            // This runs under the lock, so that it does not stop another operation that starts there afterwards. It
            // returns at once.
            state.stop?()
        }
    }

    /// Runs `body`, which `stop` can end from another thread.
    ///
    /// A nested `body` has its own `stop` until it ends.
    ///
    /// - Parameters:
    ///   - stop: Called once if the operation is cancelled, and before `body` if that has happened already; twice if a
    ///     part and its whole are both cancelled. It may be called under a lock: it must return at once, and must not
    ///     use the cancellation.
    ///   - body: The operation that can be stopped.
    /// - Returns: The result of the body.
    /// - Throws: The error of the body.
    package func running<R>(stoppedBy stop: @escaping @Sendable () -> Void, _ body: () throws -> R) rethrows -> R {
        guard let whole else { return try runningPart(stoppedBy: stop, body) }
        return try whole.running(stoppedBy: stop) { try runningPart(stoppedBy: stop, body) }
    }

    private func runningPart<R>(stoppedBy stop: @escaping @Sendable () -> Void, _ body: () throws -> R) rethrows -> R {
        let (outer, wasCancelled) = state.withLock { state in
            defer { state.stop = stop }
            return (state.stop, state.reason != nil)
        }
        defer { state.withLock { $0.stop = outer } }
        if wasCancelled { stop() }
        return try body()
    }
}
