import CStrataSQLite
import Dispatch
import Synchronization

/// Lets any thread stop an operation that runs, or waits, on another one.
///
/// Given to `reader`, `read`, `writer` or `write` of the pool. ``cancel()`` ends a wait for a connection at once and stops a running
/// statement within about a thousand of SQLite's instructions, some microseconds; the operation then throws an error with
/// the code `interrupt`. The flag stays up, so statements that follow in the same operation stop too.
///
/// Why not `sqlite3_interrupt`: SQLite forgets an interrupt that falls between two statements, and one that comes late hits
/// whoever has the connection next. A flag which the connection polls while the operation owns it has neither problem.
package final class Cancellation: Sendable {
    private let flag = Atomic(false)
    // The sleeper to wake, if the operation is waiting for a connection.
    private let sleeper = Mutex<DispatchSemaphore?>(nil)

    private let isOver: (@Sendable () -> Bool)?

    /// Makes a cancellation that `cancel()` triggers, and `isOver`, which is asked every thousand instructions, on the thread that
    /// runs the statement.
    package init(orWhen isOver: (@Sendable () -> Bool)? = nil) {
        self.isOver = isOver
    }

    package var isCancelled: Bool {
        flag.load(ordering: .acquiring)
    }

    private var endsStatement: Bool { isCancelled || isOver?() ?? false }

    /// Asks the operation to stop.
    ///
    /// Any thread; the second call does nothing.
    package func cancel() {
        flag.store(true, ordering: .releasing)
        sleeper.withLock { sleeper in
            _ = sleeper?.signal()
        }
    }

    /// Arranges that `cancel()` signals `semaphore`, now if it has been called already.
    func wake(_ semaphore: DispatchSemaphore) {
        sleeper.withLock { $0 = semaphore }
        if isCancelled { semaphore.signal() }
    }

    func stopWaking() {
        sleeper.withLock { $0 = nil }
    }

    /// Makes the connection poll the flag.
    ///
    /// The connection keeps `self` alive until `uninstall`.
    func install(on handle: OpaquePointer) {
        sqlite3_progress_handler(
            handle,
            1000,
            { context in
                guard let context else { return 0 }
                return Unmanaged<Cancellation>.fromOpaque(context).takeUnretainedValue().endsStatement ? 1 : 0
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    static func uninstall(from handle: OpaquePointer) {
        sqlite3_progress_handler(handle, 0, nil, nil)
    }
}
