import Foundation
import StrataKeys
import StrataRows
import Synchronization

#if FaultPoints
import StrataLocks
#endif

/// A store engine that keeps its rows in memory, with the same behaviour as a SQLite store towards contexts: versions, unique
/// constraints, all-or-nothing saves.
///
/// Any thread may use it.
package final class MemoryEngine: InMemoryRows {
    private let contents: Mutex<InMemoryContents>
    /// Whose turn it is to write or to reserve keys.
    ///
    /// No lock: who follows a batch is told amid it. What that works on is a copy, so that others can read meanwhile.
    private let turn: StoreTurn
    /// Whether another store has taken this one's place; set by whoever has the turn.
    private let isRetired = Atomic(false)

    package let place = "in memory"

    /// An empty store.
    ///
    /// - Parameters:
    ///   - schema: The model whose rows the store holds.
    ///   - timeout: For how many seconds a write waits for its turn.
    package init(_ schema: Schema, timeout: Double) {
        turn = StoreTurn(timeout: timeout)
        contents = Mutex(InMemoryContents(schema))
    }

    package func withContents<T: Sendable>(_ body: (InMemoryContents) -> T) -> T { contents.withLock { body($0) } }

    // MARK: - Writing

    package func reserveKeys(_ counts: [Int: Int]) throws -> [Int: [Range<Int64>]] {
        // Keys that were reserved beside a batch would be given once more when that replaces the contents.
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

    package func save(_ changes: StoreChanges, didCommit: (StoreSaveResult) -> Void) throws -> [StoreConflict] {
        try writing { contents in
            // The new contents are made beside the old ones, so a refused save leaves nothing behind.
            var next = contents
            let conflicts = next.findVersionConflicts(changes)
            let result = next.apply(changes)
            let broken = next.findConstraintConflicts(changes, result.insertedKeys)
            guard conflicts.isEmpty, broken.isEmpty else { return conflicts + broken }
            // The rows are the context's own until here; from now on nobody changes them.
            didCommit(result)
            contents = next
            return []
        }
    }

    package var takesBatches: Bool { true }

    package func execute(_ batch: Batch, didCommit: (BatchChanges) -> Void) throws {
        #if FaultPoints
        try FaultPoint.batchBegan.reach()
        #endif
        // Handlers are called before the contents are locked.
        let given = try InMemoryBatch.givenRows(of: batch)
        try turn.takeAlone {
            if isRetired.load(ordering: .relaxed) { throw closedError }
            var work = InMemoryBatch(batch, snapshot)
            // As in a save: what is refused leaves nothing behind.
            try work.run(given)
            #if FaultPoints
            try FaultPoint.batchWritten.reach()
            #endif
            contents.withLock { contents in
                didCommit(work.changes)
                contents = work.contents
            }
        }
    }

    package func retire(_ body: () throws -> Void) throws {
        try turn.takeAlone {
            // Readers, as `body` is one, do not wait for this.
            try body()
            isRetired.store(true, ordering: .relaxed)
        }
    }

    private func writing<R: Sendable>(_ body: (inout InMemoryContents) throws -> R) throws -> R {
        try turn.takeAlone {
            if isRetired.load(ordering: .relaxed) { throw closedError }
            return try contents.withLock { try body(&$0) }
        }
    }

    package func close() { contents.withLock { $0 = InMemoryContents(nil) } }
}
