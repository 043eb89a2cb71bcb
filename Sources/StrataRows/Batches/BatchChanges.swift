/// The changes of a batch in one store, complete before its transaction commits.
package struct BatchChanges {
    /// New rows.
    package var inserted: [BatchRows] = []
    /// Rows that the request itself has changed, by an update or in place of an insertion.
    package var changed: [BatchRows] = []
    /// Rows that got a new version because other rows changed.
    ///
    /// They are rows whose relationships a deletion has cleared, and owners of ordered relationships.
    package var followed: [BatchRows] = []
    /// Rows of which only to-many relationships or derived attributes changed.
    ///
    /// Their versions stay as they were.
    package var related: [BatchRows] = []
    /// Rows that were deleted, including those that delete rules have added.
    package var deleted: [BatchRows] = []
    /// The number of rows that the result reports.
    package var count = 0
    /// The root entities of rows that were changed or deleted but are not listed above.
    ///
    /// They are not listed if the caller did not ask for them.
    package var unlistedRoots: Set<Int> = []

    package init(
        inserted: [BatchRows] = [],
        changed: [BatchRows] = [],
        followed: [BatchRows] = [],
        related: [BatchRows] = [],
        deleted: [BatchRows] = [],
        count: Int = 0,
        unlistedRoots: Set<Int> = []
    ) {
        self.inserted = inserted
        self.changed = changed
        self.followed = followed
        self.related = related
        self.deleted = deleted
        self.count = count
        self.unlistedRoots = unlistedRoots
    }
}

/// Rows of one entity to which the same has happened.
package struct BatchRows {
    package let layout: EntityLayout
    package var keys: [Int64]
    /// The names of the properties that changed; empty for new and deleted rows.
    package var properties: [String] = []

    package init(layout: EntityLayout, keys: [Int64], properties: [String] = []) {
        self.layout = layout
        self.keys = keys
        self.properties = properties
    }
}

extension [BatchRows] {
    /// Adds a row, to the last group if that is of the same entity.
    ///
    /// Rows mostly come in runs of one entity.
    package mutating func add(_ key: Int64, _ layout: EntityLayout, properties: [String] = []) {
        if let last = indices.last, self[last].layout === layout, self[last].properties == properties {
            self[last].keys.append(key)
        } else {
            append(BatchRows(layout: layout, keys: [key], properties: properties))
        }
    }
}
