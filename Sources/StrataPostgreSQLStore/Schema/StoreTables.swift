import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// Checks whether the tables of a store are those that a model asks for.
enum StoreTables {
    /// Refuses a store with other tables.
    ///
    /// Names that user info sets, and folded texts, are no part of version hashes. So a model may ask for other tables
    /// than a store has without being another version.
    ///
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) with the differences.
    static func require(_ mapping: SQLMapping, in connection: Connection, _ place: String) throws {
        let problems = try problems(mapping, in: connection)
        guard let first = problems.first else { return }
        let others = problems.count > 1 ? ", and \(problems.count - 1) more" : ""
        throw CocoaError.described(
            .persistentStoreIncompatibleSchema,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The tables of the store \(place) are not those of the model: \(first)\(others). If what \"postgresql.table\", \"postgresql.column\" or \"postgresql.folded\" says has changed in user info, give the entity another versionHashModifier, so that the store is migrated."
            ]
        )
    }

    /// The differences: tables and columns that are missing or of another type, and folded texts that no code would
    /// write.
    static func problems(_ mapping: SQLMapping, in connection: Connection) throws -> [String] {
        let naming = mapping.dialect.naming
        let found = try connection.query(
            """
            SELECT c.relname::text, a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)
            FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
            WHERE n.nspname = pg_catalog.current_schema() AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
            """
        )
        var types: [String: [String: String]] = [:]
        for row in found.rows { types[row.string(0), default: [:]][row.string(1)] = row.string(2) }
        var problems: [String] = []
        func compare(_ table: SQLName, _ columns: [(name: SQLName, type: String)]) {
            guard let own = types[table.raw] else { return problems.append("\(table.raw) is missing") }
            for (column, type) in columns {
                let plain = type.hasPrefix("text") ? "text" : type
                guard let found = own[column.raw] else {
                    problems.append("\(table.raw).\(column.raw) is missing")
                    continue
                }
                if found != plain { problems.append("\(table.raw).\(column.raw) is of type \(found), not \(plain)") }
            }
            let wanted = Set(columns.map(\.name.raw))
            for column in own.keys.sorted() where !wanted.contains(column) && isFolded(column) {
                problems.append("\(table.raw).\(column) holds folded texts, for which the model does not ask")
            }
        }
        for table in mapping.tables {
            let own = [(naming.key, "bigint"), (naming.entity, "integer"), (naming.version, "bigint")]
            compare(table.name, own + table.columns.map { ($0.name, $0.type) })
        }
        for join in mapping.joinTables {
            compare(join.name, ([join.first, join.second] + join.orders).map { ($0, "bigint") })
        }
        return problems
    }

    private static func isFolded(_ column: String) -> Bool {
        ["strata_c_", "strata_d_", "strata_cd_"].contains(where: column.hasPrefix)
    }
}
