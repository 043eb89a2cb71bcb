import StrataLocks
import StrataRows
import Synchronization

/// The changes of others that were found in a store, for users that have cached its rows.
///
/// Each finding has a number. A user that has seen one finding asks for the rows of the later ones. Any thread may use
/// it.
final class ChangesOfOthers: Sendable {
    private struct State {
        /// The findings by their numbers, which are consecutive.
        var findings: [(number: UInt64, rows: ChangedRows)] = []
        var keyCount = 0
        /// The number of the last finding whose rows are unknown, or were forgotten.
        var unknown: UInt64 = 0
    }

    /// The most keys that are remembered.
    ///
    /// To discard all cached rows costs less than to look for more.
    static let mostKeys = 100_000

    private let count = AtomicCell<UInt64>(0)
    private let state = Locked(State())

    /// The number of the last finding.
    var number: UInt64 { count.load(ordering: .acquiring) }

    /// Adds rows that others have changed; `nil` stands for any rows.
    func add(_ rows: ChangedRows?) {
        state.withLock { state in
            let number = count.load(ordering: .relaxed) + 1
            if let rows {
                state.findings.append((number, rows))
                state.keyCount += rows.count
            } else {
                state.findings = []
                state.keyCount = 0
                state.unknown = number
            }
            while state.keyCount > Self.mostKeys || state.findings.count > Self.mostFindings {
                let oldest = state.findings.removeFirst()
                state.keyCount -= oldest.rows.count
                state.unknown = oldest.number
            }
            count.store(number, ordering: .releasing)
        }
    }

    private static let mostFindings = 1000

    /// The rows of all findings after one; `nil` if they may be any.
    func rows(since number: UInt64) -> ChangedRows? {
        state.withLock { state in
            guard number >= state.unknown else { return nil }
            var rows = ChangedRows()
            for finding in state.findings.reversed() {
                guard finding.number > number else { break }
                rows.formUnion(finding.rows)
            }
            return rows
        }
    }
}
