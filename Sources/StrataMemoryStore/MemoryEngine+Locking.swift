import Foundation
import StrataKeys
import StrataLocks
import StrataRows

extension MemoryEngine: LockingStore {
    package func beginLocking(
        _ conduct: RowLocking.Conduct,
        _ time: LockingTime,
        holder: AnyObject & Sendable
    ) throws -> (any LockingTransaction)? {
        if try beginTurn(for: holder, timeout: time.wait(conduct), cancellation: time.cancellation) {
            return LockingMemoryTransaction(self)
        }
        try time.cancellation.check()
        guard conduct == .wait else { return nil }
        throw CocoaError.described(
            .persistentStoreTimeout,
            userInfo: [NSLocalizedDescriptionKey: "Others were writing to the store, or had its rows locked."]
        ).marked(.deadline)
    }
}

/// The turn to write to a store in memory: as long as a block has it, no row changes.
final class LockingMemoryTransaction: LockingTransaction {
    private let engine: MemoryEngine
    private let hasEnded = Locked(false)

    init(_ engine: MemoryEngine) { self.engine = engine }

    var isOver: Bool { hasEnded.withLock { $0 } }

    func rows(for plan: FetchPlan, _ locking: RowLocking) throws -> [Row] { try engine.rows(for: plan) }

    func save(_ changes: StoreChanges, willCommit: (StoreSaveResult) -> Void, didCommit: (StoreSaveResult) -> Void)
        throws -> [StoreConflict]
    {
        let conflicts = engine.saveInTurn(changes, didCommit: didCommit)
        if conflicts.isEmpty { rollBack() }
        return conflicts
    }

    func rollBack() {
        let isFirst = hasEnded.withLock { ended in
            defer { ended = true }
            return !ended
        }
        if isFirst { engine.endTurn() }
    }
}
