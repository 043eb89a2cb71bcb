import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// Rows that a save changes besides those of its change set.
///
/// They are owners of changed to-many relationships, rows that triggers have changed, and rows released from deleted
/// ones.
struct TouchedRows {
    private(set) var isEmpty = true
    private var masks: [RowName: (entity: EntityMapping, mask: HistoryMask)] = [:]

    mutating func touch(_ key: Int64, of entity: EntityMapping, mask: HistoryMask) {
        isEmpty = false
        masks[RowName(root: entity.rootNumber, key: key), default: (entity, mask)].mask.formUnion(mask)
    }

    /// Removes and returns the entry of a row, because the row is recorded now or was recorded before.
    mutating func removeMask(of key: Int64, in entity: EntityMapping) -> HistoryMask? {
        masks.removeValue(forKey: RowName(root: entity.rootNumber, key: key))?.mask
    }

    /// Records the remaining rows in the order of their keys.
    ///
    /// Rows of one entity with the same change are one run.
    func record(in history: HistoryRecorder) throws {
        let rows = masks.sorted { ($0.key.root, $0.key.key) < ($1.key.root, $1.key.key) }
        var start = 0
        while start < rows.count {
            let (entity, mask) = rows[start].value
            var end = start + 1
            while end < rows.count, rows[end].value.entity === entity, rows[end].value.mask == mask { end += 1 }
            try history.updated(rows[start..<end].lazy.map(\.key.key), of: entity, mask: mask)
            start = end
        }
    }
}

extension SaveTransaction {
    /// Records inserted and changed rows after everything is written.
    ///
    /// Deletions were recorded as they were made.
    func recordHistory() throws {
        guard let history else { return }
        try collectTouched(history)
        try recordInserts(history)
        try recordUpdates(history)
        try touched.record(in: history)
        try history.finish()
    }

    private func collectTouched(_ history: HistoryRecorder) throws {
        for owner in changes.touched {
            guard let key = storedKey(owner.owner.key), let entity = mapping.entity(modelNumber: owner.owner.entity)
            else { continue }
            // If another context has deleted the owner, the removal of its members is no conflict, and no change of the
            // owner.
            guard try owner.owner.key < 0 || isStored(key, entity) else { continue }
            touched.touch(key, of: entity, mask: history.places(entity).mask(toMany: owner.relationships))
        }
        // The row may be of a sub-entity. The rows that are read again show which.
        var relationships: [RowName: [String]] = [:]
        for row in released {
            relationships[RowName(root: row.entity.rootNumber, key: row.key), default: []].append(
                row.relationship
            )
        }
        for row in result.reread {
            let entity = try entity(row.layout)
            let names = relationships[RowName(root: entity.rootNumber, key: row.key)] ?? []
            touched.touch(row.key, of: entity, mask: history.places(entity).mask(names: names))
            touched.touch(row.key, of: entity, mask: history.places(entity).derivedMask)
        }
    }

    private func isStored(_ key: Int64, _ entity: EntityMapping) throws -> Bool {
        let statement = try connection.statement(SQL("SELECT 1 FROM \(entity.table) WHERE Z_PK = ?"))
        try statement.bind(key, at: 1)
        let isThere = try statement.step()
        statement.reset()
        return isThere
    }

    private func recordInserts(_ history: HistoryRecorder) throws {
        var start = 0
        while start < changes.inserted.count {
            let layout = changes.inserted[start].layout
            var end = start + 1
            while end < changes.inserted.count, changes.inserted[end].layout === layout { end += 1 }
            let entity = try entity(layout)
            let keys = result.insertedKeys[start..<end]
            try history.inserted(keys, of: entity)
            if !touched.isEmpty { for key in keys { _ = touched.removeMask(of: key, in: entity) } }
            start = end
        }
    }

    private func recordUpdates(_ history: HistoryRecorder) throws {
        for run in updateRuns() {
            let entity = try entity(run[0].row.layout)
            let mask = history.places(entity).mask(run[0].changed)
            guard !touched.isEmpty else {
                try history.updated(run.lazy.map(\.row.key), of: entity, mask: mask)
                continue
            }
            for update in run {
                var mask = mask
                if let more = touched.removeMask(of: update.row.key, in: entity) { mask.formUnion(more) }
                try history.updated(CollectionOfOne(update.row.key), of: entity, mask: mask)
            }
        }
    }
}
