import Foundation
import StrataRows
import StrataSQL

extension PostgreSQLMigration {
    /// The foreign keys that stay: their tables stay, no row of these is deleted, and their columns keep their names.
    var standingForeignKeys: Set<ForeignKeys.Found> {
        let old = Set(ForeignKey.all(source).map(\.identity))
        let staying = stayingTables
        return Set(
            ForeignKey.all(destination).filter { key in
                old.contains(key.identity) && staying.contains(key.table) && staying.contains(key.target)
                    && keepsColumn(key.column, of: key.table)
            }.map(\.found)
        )
    }

    /// The foreign keys of a table that the old model does not have, to tables that stay.
    func newForeignKeys(of table: SQLName) -> [ForeignKey] {
        let old = Set(ForeignKey.all(source).map(\.identity))
        let staying = stayingTables
        return ForeignKey.all(destination).filter { key in
            key.table == table && !old.contains(key.identity) && (staying.contains(key.target) || key.target == table)
        }
    }

    /// The tables that keep their names and all of their rows.
    private var stayingTables: Set<SQLName> {
        let tables = layout.tables.filter { table in
            table.source?.name == table.destination.name && alteration(table).map { $0.deletion == nil } == true
        }
        let joins = layout.joins.filter { join in
            join.kept.map { $0.source.name == join.destination.name && $0.renamed.isEmpty } == true
        }
        return Set(tables.map(\.destination.name) + joins.map(\.destination.name))
    }

    private func keepsColumn(_ column: SQLName, of name: SQLName) -> Bool {
        guard let table = layout.tables.first(where: { $0.destination.name == name }) else { return true }
        return zip(table.destination.columns, table.values).contains { own, value in
            own.name == column && value.isPlain && value.base == column
        }
    }

    /// Makes the foreign keys of the new model, if the store had those of the old one.
    ///
    /// - Throws: `migration` (134110) with the number of rows for each relationship, if some lead nowhere.
    func makeForeignKeys() throws {
        guard hadForeignKeys else { return }
        let violations = try ForeignKeys(destination, connection).make()
        guard !violations.isEmpty else { return }
        throw ForeignKeys.failure(at: request.url, dueTo: violations, place: place)
    }
}

extension ForeignKeys {
    /// The error of a migration whose rows do not allow foreign keys.
    static func failure(at url: URL, dueTo violations: [Violation], place: String) -> CocoaError {
        MigrationErrors.rows(
            url,
            violations.map {
                RowFinding(entity: $0.key.entity, property: $0.key.relationship, reason: reason($0.count))
            },
            place: place
        )
    }
}
