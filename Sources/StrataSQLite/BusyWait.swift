import CStrataSQLite
import Foundation
import StrataLocks
import Synchronization

/// Waits for locks on the file that a connection outside of this pool holds: jittered back-off up to a deadline.
///
/// SQLite has no queue between processes. Pauses double from 50 µs up to 5 ms. Each is shortened by a random part of up
/// to a half, so that two waiters do not try at the same moments again and again. A writer that has waited for some
/// milliseconds asks the others to let it go first (``WaitSign``), and retries more often while they do. A waiter
/// belongs to one connection, and is confined like it.
final class BusyWait {
    /// The longest time to retry, in seconds.
    var timeout: Double
    /// Ends the wait early.
    var cancellation: Cancellation?
    /// The connection to interrupt if the wait fails, so that its operation does not continue without the lock.
    var interrupted: OpaquePointer?
    /// Asks other processes to let this connection go first; `nil` for one that does not write.
    var sign: WaitSign?
    /// The duration of the present wait, or of the last one.
    private(set) var waited: Double = 0

    /// Whether a wait is in progress.
    ///
    /// Any thread may read it.
    var isWaiting: Bool { waiting.load(ordering: .relaxed) }

    private var start: UInt64 = 0
    private let waiting = AtomicCell(false)

    private static let shortestPause = 50e-6
    private static let longestPause = 5e-3
    private static let longestPauseWithSign = 5e-4

    init(timeout: Double) {
        self.timeout = timeout
    }

    /// Pauses, and returns whether to retry.
    ///
    /// - Parameter attempt: The number of failed attempts before this, from 0.
    /// - Returns: Whether there is time left.
    func shouldRetry(attempt: Int32) -> Bool {
        if attempt == 0 {
            start = Self.now()
            waited = 0
        } else {
            waited = Double(Self.now() &- start) / 1e9
        }
        guard waited < timeout, cancellation?.isCancelled != true else {
            if let interrupted { sqlite3_interrupt(interrupted) }
            return false
        }
        if let sign, waited >= WaitSign.threshold { sign.putUp() }
        let longest = sign?.isUp == true ? Self.longestPauseWithSign : Self.longestPause
        let pause = min(longest, Self.shortestPause * Double(1 << min(attempt, 10)))
        let jittered = min(pause * Self.jitter(), timeout - waited)
        waiting.store(true, ordering: .relaxed)
        if !Schedule.pause() { usleep(UInt32(max(jittered * 1e6, 1))) }
        waiting.store(false, ordering: .relaxed)
        return true
    }

    /// A factor between a half and 1, from the lowest bits of the clock: a random number would cost a call of the kernel.
    private static func jitter() -> Double { 0.5 + Double(now() & 1023) / 2046 }

    /// Returns the duration of the last wait, and resets it.
    func takeWaited() -> Double {
        defer { waited = 0 }
        return waited
    }

    static func now() -> UInt64 {
        DispatchTime.now().uptimeNanoseconds
    }

    /// Makes SQLite call `shouldRetry`.
    ///
    /// The connection keeps `self` alive until it is closed.
    func install(on handle: OpaquePointer) {
        sqlite3_busy_handler(
            handle,
            { context, attempt in
                guard let context else { return 0 }
                return Unmanaged<BusyWait>.fromOpaque(context).takeUnretainedValue().shouldRetry(attempt: attempt)
                    ? 1 : 0
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }
}
