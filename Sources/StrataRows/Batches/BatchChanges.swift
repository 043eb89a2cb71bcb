/// What a batch changes in one store: complete before its transaction commits.
package struct BatchChanges {
    /// New rows.
    package var inserted: [BatchRows] = []
    /// Rows that the request itself has changed, by an update or instead of an insertion.
    package var changed: [BatchRows] = []
    /// Rows that changed on account of others, with a new version: relationships that a deletion has cleared, owners of
    /// ordered relationships.
    package var followed: [BatchRows] = []
    /// Rows of which only to-many relationships or derived attributes changed; their versions are as before.
    package var related: [BatchRows] = []
    /// Rows that are gone, those that delete rules have added included.
    package var deleted: [BatchRows] = []
    /// How many rows the result speaks of.
    package var count = 0
    /// The root entities of rows that were changed or deleted but are not listed above, as nobody has asked for them.
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

/// Rows of one entity with which the same has happened.
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
    /// Adds a row, to the last group if it is of the same entity.
    ///
    /// Rows mostly come in runs.
    package mutating func add(_ key: Int64, _ layout: EntityLayout, properties: [String] = []) {
        if let last = indices.last, self[last].layout === layout, self[last].properties == properties {
            self[last].keys.append(key)
        } else {
            append(BatchRows(layout: layout, keys: [key], properties: properties))
        }
    }
}
