/// The report of a store after it has committed.
package struct StoreSaveResult: Sendable {
    /// The permanent key of each inserted row, in the order of `inserted`.
    package var insertedKeys: [Int64] = []
    /// Rows, as they are now, whose stored values differ from the values that were handed over.
    ///
    /// The reasons are derived attributes, decimals that the store rounds, and triggers that changed rows.
    package var reread: [Row] = []
    /// The number of the transaction that the history has recorded; `nil` if none was.
    package var historyNumber: Int64?
    /// The mark in the lower bits of the versions that the save has written; `nil` if versions are counted.
    ///
    /// See ``RowVersion``.
    package var versionMark: Int64?
    /// The number that is added to the versions that the store counts, see ``RowVersion``; 0 for none.
    package var versionOffset: Int64 = 0

    /// The version that the save has given to a row that had `version` before.
    func version(after version: Int64) -> Int64 {
        versionMark == nil
            ? RowVersion.next(after: version, offset: versionOffset)
            : RowVersion.next(after: version, mark: versionMark)
    }

    package init(insertedKeys: [Int64] = [], reread: [Row] = []) {
        self.insertedKeys = insertedKeys
        self.reread = reread
    }
}

/// The reason for which a store refused a save.
///
/// All conflicts of the save are reported, not only the first.
package enum StoreConflict {
    /// A changed or deleted row no longer has the base version, or a row that comes back is already there.
    ///
    /// `persisted` is the stored row, `nil` if it is gone.
    case version(layout: EntityLayout, key: Int64, baseVersion: Int64, persisted: Row?)
    /// Rows that break a uniqueness constraint.
    ///
    /// `keys` are those of the save's own rows, as handed over. `persisted` is the stored row that they collide with,
    /// `nil` if they collide only with each other.
    case constraint(entity: EntityLayout, attributes: [String], keys: [Int64], persisted: Row?)
    /// A changed relationship leads to a row that another writer has deleted.
    ///
    /// `root`: The number of its root entity.
    case missing(ObjectReference, root: Int)
}
