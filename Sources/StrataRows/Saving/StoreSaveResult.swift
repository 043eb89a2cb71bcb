/// The report of a store after it has committed.
package struct StoreSaveResult: Sendable {
    /// The permanent key of each inserted row, in the order of `inserted`.
    package var insertedKeys: [Int64] = []
    /// Rows whose stored values differ from what was handed over (derived attributes, decimals that the store rounds,
    /// rows that triggers touched), as they are now.
    package var reread: [Row] = []
    /// The number of the transaction that the history has recorded; `nil` if none was.
    package var historyNumber: Int64?
    /// The mark in the lower bits of the versions that the save has written, see ``RowVersion``; `nil` if they are
    /// counted.
    package var versionMark: Int64?
    /// The number that is added to the versions that the store counts, see ``RowVersion``; 0 for none.
    package var versionOffset: Int64 = 0

    /// The version that the save has given to a row, after the one that it had before.
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

/// Why a store refused a save.
///
/// All conflicts of the save are reported, not only the first.
package enum StoreConflict {
    /// A changed or deleted row no longer has the base version, or one that comes back is there. `persisted` is the row as stored, `nil` if it
    /// is gone.
    case version(layout: EntityLayout, key: Int64, baseVersion: Int64, persisted: Row?)
    /// Rows that break a uniqueness constraint: the keys of the save's own rows (as handed over), and the stored row
    /// that they collide with, if the collision is not among themselves only.
    case constraint(entity: EntityLayout, attributes: [String], keys: [Int64], persisted: Row?)
    /// A changed relationship leads to a row that others have deleted. `root`: The number of its root entity.
    case missing(ObjectReference, root: Int)
}
