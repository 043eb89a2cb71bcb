import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

extension SaveTransaction {
    /// Reports changed relationships whose destinations another writer has deleted.
    ///
    /// Otherwise the key of a deleted row would be stored for ever: the delete rule of the inverse ran before the key
    /// was set.
    func checkTargets() throws {
        for (root, targets) in changes.foreignTargets() {
            guard let entity = mapping.entity(modelNumber: root) else { continue }
            let statement = try connection.statement(SQL("SELECT 1 FROM \(entity.table) WHERE Z_PK = ?"))
            for target in targets {
                try statement.bind(target.key, at: 1)
                let isThere = try statement.step()
                statement.reset()
                if !isThere { report(.missing(target, root: root)) }
            }
        }
    }
}

// MARK: - The opposite direction

extension SaveTransaction {
    /// Clears to-one relationships to deleted rows that other writers have set meanwhile.
    ///
    /// The deletion has not seen these relationships, and an addition to an unordered relationship is no conflict.
    func releaseLateReferences() throws {
        for run in runs(changes.deleted, \.layout) {
            for backlink in run[0].layout.backlinks.compactMap({ Backlink($0, mapping) }) {
                let lateReferences = try rows(run.map(\.key), backlink)
                guard !lateReferences.isEmpty else { continue }
                // Relationships that the save itself has set to a row that it deletes stay unchanged.
                let root = backlink.member.layout.rootNumber
                let own = changes.keys(relating: backlink.name, of: root, result.insertedKeys)
                try release(lateReferences.filter { !own.contains($0) }, backlink)
            }
        }
    }

    private func rows(_ targets: [Int64], _ backlink: Backlink) throws -> [Int64] {
        let statement = try connection.statement(
            SQL("SELECT Z_PK FROM \(backlink.member.table) WHERE \(backlink.column) = ?")
        )
        var rows: [Int64] = []
        for target in targets {
            try statement.bind(target, at: 1)
            while try statement.step() { rows.append(statement[0].int64) }
            statement.reset()
        }
        return rows
    }

    private func release(_ rows: [Int64], _ backlink: Backlink) throws {
        let statement = try connection.statement(
            SQL("UPDATE \(backlink.member.table) SET \(backlink.assignments), Z_OPT = Z_OPT + 1 WHERE Z_PK = ?")
        )
        for row in rows {
            try statement.bind(row, at: 1)
            try statement.run()
            inexact.insert(TriggerReports.Entry(entity: Int64(backlink.member.number), key: row))
            released.append((row, backlink.name, backlink.member))
        }
    }
}
