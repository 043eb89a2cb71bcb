import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLMigration {
    /// The preparations that the store's large tables allow, planned without changing anything.
    func plannedTables() throws -> [PreparedTable] {
        let large = try largeTables()
        guard !large.isEmpty else { return [] }
        let hasForeignKeys = try !ForeignKeys.found(connection).isEmpty
        let standing = try indexNames()
        return try layout.tables.compactMap { table in
            guard let name = table.source?.name, large.contains(name),
                let planned = PreparedTable(table, of: self, having: standing, hasForeignKeys: hasForeignKeys),
                try canChangeInPlace(planned)
            else { return nil }
            return planned
        }
    }

    /// The tables that are worth a preparation.
    func largeTables() throws -> Set<SQLName> {
        let found = try connection.query(
            """
            SELECT c.relname::text FROM pg_catalog.pg_class AS c WHERE c.relkind = 'r' AND NOT c.relhassubclass
            AND NOT c.relispartition AND pg_catalog.pg_relation_size(c.oid) >= $1
            AND c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = pg_catalog.current_schema())
            """,
            [.int8(PreparedTable.leastSize)]
        )
        return Set(found.rows.map { naming.name($0.string(0)) })
    }

    /// Whether columns of a table can be replaced or dropped in place.
    ///
    /// Triggers of others could change a row after its new column was computed. Privileges on columns, views and the
    /// like would not move to the new column.
    private func canChangeInPlace(_ table: PreparedTable) throws -> Bool {
        guard !table.dropped.isEmpty else { return true }
        let found = try connection.query(
            """
            SELECT 1 FROM pg_catalog.pg_class AS c WHERE c.relname = $1
            AND c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = pg_catalog.current_schema())
            AND (EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attacl IS NOT NULL)
            OR EXISTS (SELECT FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal
            AND pg_catalog.strpos(t.tgname::text, $2) <> 1))
            """,
            [.text(table.table.raw), .text(PreparedParts.prefix)]
        )
        guard found.rowCount == 0 else { return false }
        return try TableBelongings(of: [table.table], connection).isFree(
            table.table,
            columns: PostgreSQLSchema.columns(source)[table.table] ?? []
        )
    }

    /// Takes over what was prepared, if it is still as it was, and removes all other parts.
    ///
    /// All tables are locked, so nothing changes any more.
    func adoptPreparation() throws {
        let parts = try PreparedParts(connection)
        for table in preparation?.tables ?? [] where try isIntact(table, parts) && canChangeInPlace(table) {
            prepared[table.table] = table
        }
        try parts.remove(except: prepared.values.reduce(into: []) { $0.formUnion($1.names) })
    }

    /// The tables whose own rows all fit, as their indexes of the other rows are empty.
    ///
    /// No table is scanned.
    func tablesThatFit() throws -> Set<SQLName> {
        var tables: Set<SQLName> = []
        for table in prepared.values {
            guard let misfits = table.misfits else { continue }
            // The statistics may still count rows that the index no longer has.
            try connection.command("SET LOCAL enable_seqscan = off")
            let found = try connection.query("SELECT 1 FROM \(table.table) WHERE \(misfits.condition) LIMIT 1")
            try connection.command("SET LOCAL enable_seqscan TO DEFAULT")
            if found.rowCount == 0 { tables.insert(table.table) }
        }
        return tables
    }

    private func isIntact(_ table: PreparedTable, _ parts: PreparedParts) -> Bool {
        table.columns.allSatisfy { parts.has(column: $0.name, of: table.table) }
            && table.computed.allSatisfy { name, _ in
                // A trigger that was switched off meanwhile has another stamp.
                parts.trigger(name, of: table.table).map { $0.isComplete && preparation?.triggers.contains($0) == true }
                    == true
            }
            && (table.indexes + table.misfitIndex).allSatisfy { parts.index($0.name)?.isComplete == true }
            && table.keys.allSatisfy { parts.foreignKey($0.name, of: table.table)?.isComplete == true }
    }
}
