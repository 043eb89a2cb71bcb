import CStrataSQLite
import Foundation
import StrataLocks
import Synchronization

/// Waits for locks on the file that a connection outside of this pool holds: jittered back-off up to a deadline.
///
/// SQLite has no queue between processes. Pauses double from 50 µs up to 5 ms, and each is shortened by a random share
/// of up to a half, so that two waiters do not keep arriving at the same moments. A writer that has waited for some
/// milliseconds asks the others to let it go first (``WaitSign``), and looks more often as long as they do. Confined like its
/// connection.
final class BusyWait {
    /// How long to keep trying.
    var timeout: Double
    /// Ends the wait early.
    var cancellation: Cancellation?
    /// The connection to interrupt if the wait fails, so that it does not go on without the lock.
    var interrupted: OpaquePointer?
    /// Of a connection that writes: asks other processes to let this one go first.
    var sign: WaitSign?
    /// How long the wait at hand has taken, or the last one took.
    private(set) var waited: Double = 0

    /// Whether a wait is under way; for any thread.
    var isWaiting: Bool { waiting.load(ordering: .relaxed) }

    private var start: UInt64 = 0
    private let waiting = Atomic(false)

    private static let shortestPause = 50e-6
    private static let longestPause = 5e-3
    private static let longestPauseWithSign = 5e-4

    init(timeout: Double) {
        self.timeout = timeout
    }

    /// Pauses, and tells whether to try again.
    ///
    /// - Parameter attempt: How often the lock was asked for in vain before this, from 0.
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
        let jittered = min(pause * Double.random(in: 0.5...1), timeout - waited)
        waiting.store(true, ordering: .relaxed)
        usleep(UInt32(max(jittered * 1e6, 1)))
        waiting.store(false, ordering: .relaxed)
        return true
    }

    /// The time of the last wait, forgotten by asking.
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
