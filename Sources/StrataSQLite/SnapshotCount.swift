import StrataLocks
import Synchronization

/// The number of pinned snapshots of a ``ConnectionPool``.
///
/// The pool and its ``LogCopier`` share it, as the copier does not keep the pool alive. Any thread may call any member.
final class SnapshotCount: Sendable {
    private let number = AtomicCell(0)

    var value: Int { number.load(ordering: .relaxed) }

    /// Counts another snapshot, if there are fewer than `limit`.
    ///
    /// - Returns: Whether it was counted.
    func increment(below limit: Int) -> Bool {
        var known = value
        while known < limit {
            let (exchanged, original) = number.compareExchange(expected: known, desired: known + 1, ordering: .relaxed)
            if exchanged { return true }
            known = original
        }
        return false
    }

    func decrement() { number.subtract(1, ordering: .relaxed) }
}
