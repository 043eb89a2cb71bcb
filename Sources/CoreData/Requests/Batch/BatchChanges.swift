/// What a batch changes in one store: complete before its transaction commits.
struct BatchChanges {
    /// New rows.
    var inserted: [BatchRows] = []
    /// Rows that the request itself has changed, by an update or instead of an insertion.
    var changed: [BatchRows] = []
    /// Rows that changed on account of others, with a new version: relationships that a deletion has cleared, owners of
    /// ordered relationships.
    var followed: [BatchRows] = []
    /// Rows of which only to-many relationships or derived attributes changed; their versions are as before.
    var related: [BatchRows] = []
    /// Rows that are gone, those that delete rules have added included.
    var deleted: [BatchRows] = []
    /// How many rows the result speaks of.
    var count = 0
    /// The root entities of rows that were changed or deleted but are not listed above, as nobody has asked for them.
    var unlistedRoots: Set<Int> = []
}

/// Rows of one entity with which the same has happened.
struct BatchRows {
    let layout: EntityLayout
    var keys: [Int64]
    /// The names of the properties that changed; empty for new and deleted rows.
    var properties: [String] = []
}

extension [BatchRows] {
    /// Adds a row, to the last group if it is of the same entity.
    ///
    /// Rows mostly come in runs.
    mutating func add(_ key: Int64, _ layout: EntityLayout, properties: [String] = []) {
        if let last = indices.last, self[last].layout === layout, self[last].properties == properties {
            self[last].keys.append(key)
        } else {
            append(BatchRows(layout: layout, keys: [key], properties: properties))
        }
    }
}

/// A batch as one store has carried it out.
struct StoreBatch {
    let store: OpenStore
    let changes: BatchChanges
    /// The row cache's count of removals when the batch had been committed.
    let removals: UInt64
}

extension [StoreBatch] {
    /// How many rows the result speaks of.
    var count: Int { reduce(0) { $0 + $1.changes.count } }

    /// The IDs of some of the rows.
    func ids(_ kinds: [KeyPath<BatchChanges, [BatchRows]>]) -> [NSManagedObjectID] {
        flatMap { batch in
            kinds.flatMap { batch.changes[keyPath: $0] }.flatMap { rows in
                rows.keys.map { batch.store.ids.id(key: $0, layout: rows.layout, store: batch.store) }
            }
        }
    }
}
