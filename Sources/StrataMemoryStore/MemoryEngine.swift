import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import Synchronization

/// A store engine that keeps its rows in memory.
///
/// It behaves towards contexts as a SQLite store does: versions, unique constraints, all-or-nothing saves. Any thread
/// may use it.
package final class MemoryEngine: InMemoryRows {
    private let contents: Locked<InMemoryContents>
    /// The turn to write or to reserve keys.
    ///
    /// This is not a lock, because a batch reports its progress to user code while it runs. A batch works on a copy, so
    /// others can read meanwhile.
    private let turn: StoreTurn
    /// Whether another store has replaced this one; set by the thread that has the turn.
    private let isRetired = AtomicCell(false)

    package let place = "in memory"

    /// An empty store.
    ///
    /// - Parameters:
    ///   - schema: The model whose rows the store holds.
    ///   - timeout: How many seconds a write waits for its turn.
    package init(_ schema: Schema, timeout: Double) {
        turn = StoreTurn(timeout: timeout)
        contents = Locked(InMemoryContents(schema))
    }

    package func withContents<T: Sendable>(_ body: (InMemoryContents) -> T) -> T { contents.withLock { body($0) } }

    // MARK: - Writing

    package func reserveKeys(_ counts: [Int: Int]) throws -> [Int: [Range<Int64>]] {
        // If keys were reserved during a batch, they would be given out again when the batch replaces the contents.
        try writing { contents in
            var result: [Int: [Range<Int64>]] = [:]
            for (root, count) in counts { result[root] = [contents.reserve(count, root)] }
            return result
        }
    }

    package func lastKeys(_ roots: [Int]) throws -> [Int: Int64] {
        let contents = snapshot
        return Dictionary(uniqueKeysWithValues: roots.map { ($0, contents.lastKey($0)) })
    }

    package func save(
        _ changes: StoreChanges,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws -> [StoreConflict] {
        // A reader waits for the lock, and so until the rows are published.
        try writing { Self.save(changes, in: &$0, didCommit: didCommit) }
    }

    private static func save(
        _ changes: StoreChanges,
        in contents: inout InMemoryContents,
        didCommit: (StoreSaveResult) -> Void
    ) -> [StoreConflict] {
        // The new contents are made beside the old ones, so a refused save changes nothing.
        var next = contents
        let conflicts = next.findVersionConflicts(changes)
        let result = next.apply(changes)
        let broken = next.findConstraintConflicts(changes, result.insertedKeys)
        guard conflicts.isEmpty, broken.isEmpty else { return conflicts + broken }
        // Until here the rows belong to the context; from now on they are never changed.
        didCommit(result)
        contents = next
        return []
    }

    package var takesBatches: Bool { true }

    package func execute(_ batch: Batch, willCommit: (BatchChanges) -> Void, didCommit: (BatchChanges) -> Void) throws {
        try FaultPoint.batchBegan.reach()
        // Handlers are called before the turn is taken.
        let given = try BatchTransaction.givenRows(of: batch)
        try turn.takeAlone {
            if isRetired.load(ordering: .relaxed) { throw closedError }
            var work = BatchTransaction(batch, snapshot)
            // As in a save, a refused batch changes nothing.
            try work.run(given)
            try FaultPoint.batchWritten.reach()
            contents.withLock { contents in
                didCommit(work.changes)
                contents = work.contents
            }
        }
    }

    package func retire(_ body: () throws -> Void) throws {
        try turn.takeAlone {
            // `body` reads the store; readers do not wait for the turn.
            try body()
            isRetired.store(true, ordering: .relaxed)
        }
    }

    // MARK: - Locking rows

    /// Takes the turn to write for a block that locks rows.
    func beginTurn(for holder: AnyObject & Sendable, timeout: Double, cancellation: Cancellation) throws -> Bool {
        guard turn.take(for: holder, timeout: timeout, cancellation: cancellation) else { return false }
        guard isRetired.load(ordering: .relaxed) else { return true }
        turn.giveBack()
        throw closedError
    }

    /// Ends the turn of a block that locks rows.
    func endTurn() { turn.giveBack() }

    /// Saves in the turn of a block that locks rows.
    func saveInTurn(_ changes: StoreChanges, didCommit: (StoreSaveResult) -> Void) -> [StoreConflict] {
        contents.withLock { Self.save(changes, in: &$0, didCommit: didCommit) }
    }

    private func writing<R: Sendable>(_ body: (inout InMemoryContents) throws -> R) throws -> R {
        try turn.takeAlone {
            if isRetired.load(ordering: .relaxed) { throw closedError }
            return try contents.withLock { try body(&$0) }
        }
    }

    package func close() { contents.withLock { $0 = InMemoryContents(nil) } }
}
