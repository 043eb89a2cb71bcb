import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

extension SaveTransaction {
    /// Reports the rows that changed relationships lead to although somebody else has deleted them.
    ///
    /// A key of a row that is gone would be stored for ever; the inverse's delete rule has run before it was set.
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

// MARK: - The other way round

extension SaveTransaction {
    /// Takes deleted rows out of the to-one relationships of rows that somebody else has related to them meanwhile:
    /// their deletion has not seen those, and an addition to an unordered relationship is no conflict.
    func releaseStragglers() throws {
        for run in runs(changes.deleted, \.layout) {
            for backlink in run[0].layout.backlinks.compactMap({ Backlink($0, mapping) }) {
                let stragglers = try rows(run.map(\.key), backlink)
                guard !stragglers.isEmpty else { continue }
                // What the save itself has related to a row that it deletes is left as it is.
                let root = backlink.member.layout.rootNumber
                let own = changes.keys(relating: backlink.name, of: root, result.insertedKeys)
                try release(stragglers.filter { !own.contains($0) }, backlink)
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
