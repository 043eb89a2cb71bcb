import CoreDataEssentials
import StrataRows

/// The part of a batch that one store has carried out.
package struct StoreBatch {
    let store: OpenStore
    let changes: BatchChanges
    /// The row cache's count of removals when the batch had been committed.
    let removals: UInt64
}

extension [StoreBatch] {
    /// The number of rows that the result counts.
    var count: Int { reduce(0) { $0 + $1.changes.count } }

    /// The IDs of some of the rows.
    package func ids(_ kinds: [KeyPath<BatchChanges, [BatchRows]>]) -> [NSManagedObjectID] {
        flatMap { batch in
            kinds.flatMap { batch.changes[keyPath: $0] }.flatMap { rows in
                rows.keys.map { batch.store.ids.id(key: $0, layout: rows.layout, store: batch.store) }
            }
        }
    }
}
