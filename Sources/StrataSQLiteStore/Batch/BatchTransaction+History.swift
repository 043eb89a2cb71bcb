import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

extension BatchTransaction {
    /// Records the changes of the batch: one change for each row, all in one transaction.
    func recordHistory() throws {
        guard let history else { return }
        if !hasRecordedDeletions { try recordDeletions() }
        for rows in changes.inserted { try history.inserted(rows.keys, of: entity(rows)) }
        let touched = changes.followed + changes.related + derived
        if touched.isEmpty, changes.inserted.isEmpty {
            // Each row comes once, because one statement has changed them.
            for rows in changes.changed { try history.updated(rows.keys, of: entity(rows), mask: mask(rows, history)) }
        } else {
            try recordUpdates(changes.changed + touched, history)
        }
        try history.finish()
    }

    /// Records the rows that are listed as deleted.
    ///
    /// If the history keeps values of them, the rows must still exist.
    func recordDeletions() throws {
        guard let history else { return }
        for rows in changes.deleted { try history.willDelete(rows.keys, of: entity(rows)) }
        hasRecordedDeletions = true
    }

    /// Records rows that may be listed several times, except new ones.
    private func recordUpdates(_ groups: [BatchRows], _ history: HistoryRecorder) throws {
        var touched = TouchedRows()
        for rows in groups {
            let (entity, mask) = (try entity(rows), try mask(rows, history))
            for key in rows.keys { touched.touch(key, of: entity, mask: mask) }
        }
        for rows in changes.inserted + changes.deleted {
            let entity = try entity(rows)
            for key in rows.keys { _ = touched.removeMask(of: key, in: entity) }
        }
        try touched.record(in: history)
    }

    /// The properties that changed.
    ///
    /// For rows that only triggers have changed, these are the derived ones.
    private func mask(_ rows: BatchRows, _ history: HistoryRecorder) throws -> HistoryMask {
        let places = history.places(try entity(rows))
        return rows.properties.isEmpty ? places.derivedMask : places.mask(names: rows.properties)
    }

    private func entity(_ rows: BatchRows) throws -> EntityMapping {
        if let entity = mapping.entity(rows.layout) { return entity }
        throw SQLiteBoundary.damaged(file.url, "it does not hold entity \(rows.layout.name).")
    }
}
