/// The unsaved changes of one context in one store, without references to live objects.
package struct StoreChanges {
    /// New rows.
    ///
    /// For a negative key the store gives a permanent one. A positive key was reserved before.
    package var inserted: [Row] = []
    package var updated: [RowUpdate] = []
    package var deleted: [ExpectedRow] = []
    /// Rows that are not written but must not have changed, because of `detectConflicts(for:)`.
    package var locked: [ExpectedRow] = []
    /// Changes of to-many relationships that are not in the columns of changed rows.
    ///
    /// These are many-to-many memberships (only from the canonical side), relationships without an inverse, and the
    /// order of ordered relationships.
    package var toMany: [ToManyChange] = []
    /// Owners whose to-many relationships changed, even if their rows did not.
    ///
    /// They are for history only.
    package var touched: [TouchedOwner] = []
    /// The author of the save, for history.
    package var author: String?
    package var contextName: String?
    /// The highest keys that another store has given, by the number of the root entity.
    ///
    /// They are `nil` unless the new rows are copies of that store's rows.
    ///
    /// Copies of another store's rows keep their positive keys, and this store gives none of these to new rows. The
    /// copies keep their versions, too, if each is handed over with a version that is one lower: it is counted without
    /// a mark, see ``RowVersion``.
    package var keptKeys: [Int: Int64]?

    @inlinable
    package init(
        inserted: [Row] = [],
        updated: [RowUpdate] = [],
        deleted: [ExpectedRow] = [],
        locked: [ExpectedRow] = [],
        toMany: [ToManyChange] = [],
        touched: [TouchedOwner] = [],
        author: String? = nil,
        contextName: String? = nil,
        keptKeys: [Int: Int64]? = nil
    ) {
        self.inserted = inserted
        self.updated = updated
        self.deleted = deleted
        self.locked = locked
        self.toMany = toMany
        self.touched = touched
        self.author = author
        self.contextName = contextName
        self.keptKeys = keptKeys
    }

    /// Whether a new row is one that was stored before, and comes back under its key.
    ///
    /// The store gives that key to no other row, but another context may bring the same row back. That is a conflict:
    /// the row exists in a version that the save has not seen. If a key was reserved for a row that was never stored,
    /// no other row has it.
    package static func isRevived(_ row: Row) -> Bool { row.key > 0 && row.version > 0 }

    package var isEmpty: Bool {
        inserted.isEmpty && updated.isEmpty && deleted.isEmpty && locked.isEmpty && toMany.isEmpty
    }
}

/// A row that replaces the stored one of its key, if that still has the base version.
package struct RowUpdate {
    /// The values after the change.
    ///
    /// References may hold negative keys of rows inserted by the same save.
    package let row: Row
    /// The version that the change is based on.
    package let baseVersion: Int64
    /// The slots that differ from the base row; empty when only the version has to advance.
    package let changed: SlotSet

    @inlinable
    package init(row: Row, baseVersion: Int64, changed: SlotSet) {
        self.row = row
        self.baseVersion = baseVersion
        self.changed = changed
    }
}

/// A row that a save expects to have the base version, so that it may delete the row, or rely on it.
package struct ExpectedRow {
    package let layout: EntityLayout
    package let key: Int64
    package let baseVersion: Int64

    @inlinable
    package init(layout: EntityLayout, key: Int64, baseVersion: Int64) {
        self.layout = layout
        self.key = key
        self.baseVersion = baseVersion
    }
}

/// The change of one object's to-many relationship.
package struct ToManyChange {
    package let relationship: ToManySlot
    package let owner: ObjectReference
    package var added: [ObjectReference]
    package var removed: [ObjectReference]
    /// The whole content in its new order, for an ordered relationship whose order or members changed; only its end if
    /// ``isUnread``.
    package var order: [ObjectReference]?
    /// The number of members at the end of `order` that are new, if the others keep their order; otherwise 0.
    package var appendedCount: Int
    /// Whether the context has not read the members: `order` has new members only, which come after all others.
    ///
    /// Only a store that ``RowStore/placesUnreadMembers`` gets such a change.
    package var isUnread = false

    @inlinable
    package init(
        relationship: ToManySlot,
        owner: ObjectReference,
        added: [ObjectReference],
        removed: [ObjectReference],
        order: [ObjectReference]? = nil,
        appendedCount: Int = 0
    ) {
        self.relationship = relationship
        self.owner = owner
        self.added = added
        self.removed = removed
        self.order = order
        self.appendedCount = appendedCount
    }

    /// The members at the end that are new, and the one before them; `nil` if there is none before them, or if the
    /// order of other members has changed.
    package var appended: (members: ArraySlice<ObjectReference>, last: ObjectReference)? {
        guard let order, appendedCount > 0, order.count > appendedCount else { return nil }
        let start = order.count - appendedCount
        return (order[start...], order[start - 1])
    }
}

/// An object whose to-many relationships changed, whether its own row or others hold the change.
package struct TouchedOwner {
    package let owner: ObjectReference
    /// The positions of the relationships.
    package let relationships: [Int]

    @inlinable
    package init(owner: ObjectReference, relationships: [Int]) {
        self.owner = owner
        self.relationships = relationships
    }
}
