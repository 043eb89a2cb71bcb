import Dispatch
import Synchronization

/// Lets any thread stop an operation that runs, or waits, on another one.
///
/// ``cancel()`` ends a wait for a connection or a turn at once. The code of the operation polls the flag. The flag
/// stays set, so that later parts of the same operation stop too.
package final class Cancellation: Sendable {
    private let flag = Atomic(false)
    // The sleeper to wake, if the operation is waiting for a connection.
    private let sleeper = Locked<DispatchSemaphore?>(nil)

    private let isOver: (@Sendable () -> Bool)?

    /// Makes a cancellation that `cancel()` or `isOver` triggers.
    ///
    /// - Parameter isOver: Called every thousand instructions, on the thread that runs the statement.
    package init(orWhen isOver: (@Sendable () -> Bool)? = nil) {
        self.isOver = isOver
    }

    package var isCancelled: Bool {
        flag.load(ordering: .acquiring)
    }

    /// Whether the operation has to stop: it was cancelled, or `isOver` says so.
    package var endsStatement: Bool { isCancelled || isOver?() ?? false }

    /// Asks the operation to stop.
    ///
    /// Any thread may call it; the second call does nothing.
    package func cancel() {
        flag.store(true, ordering: .releasing)
        sleeper.withLock { sleeper in
            _ = sleeper?.signal()
        }
    }

    /// Makes `cancel()` signal `semaphore`, at once if it has been called already.
    func wake(_ semaphore: DispatchSemaphore) {
        sleeper.withLock { $0 = semaphore }
        if isCancelled { semaphore.signal() }
    }

    func stopWaking() {
        sleeper.withLock { $0 = nil }
    }
}
