import StrataLocks
import Synchronization

/// Whether the process has opened a store with a history.
package enum HistoryUse {
    private static let begun = AtomicCell(false)

    package static var hasBegun: Bool { begun.load(ordering: .relaxed) }

    static func begin() { begun.store(true, ordering: .relaxed) }
}
