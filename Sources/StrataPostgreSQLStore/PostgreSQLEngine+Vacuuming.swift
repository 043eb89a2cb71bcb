import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLEngine {
    /// Vacuums and analyses the tables of a store, and no others.
    ///
    /// Others read and save meanwhile. The server reuses the space of deleted rows. Only space at the end of a table goes
    /// back to the disk.
    ///
    /// - Parameters:
    ///   - url: The store. The role has to own its tables, or the database.
    ///   - schema: The model of the store.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    ///   - timeout: How many seconds others may keep a table locked.
    /// - Returns: The number of tables, and their bytes with indexes before and after.
    /// - Throws: `fileWriteNoPermission` (513) if the role may not vacuum all tables; none is vacuumed then.
    ///   `persistentStoreTimeout` (134090) and errors of the database.
    package static func vacuum(
        _ url: URL,
        _ schema: Schema,
        configuration: String?,
        timeout: Double
    ) throws -> (tables: Int, before: Int64, after: Int64) {
        try withConnection(to: url, .vacuuming, timeout: timeout) { connection, place in
            let metadata = try existing(connection, place)
            let mapping = try SQLMapping(
                schema,
                configuration: configuration,
                generation: metadata.generations.current
            )
            let tables = PostgreSQLSchema.contents(mapping).map { $0.table }
            var names = PostgreSQLArray(.text)
            for table in tables { names.append(table.raw) }
            try StoreTables.require(mapping, in: connection, place)
            // The server only warns if a role may not vacuum a table.
            let refused = try connection.query(othersTables, [.array(names)])
            if refused.rowCount > 0 {
                throw PostgreSQLError(
                    .server,
                    sqlState: "42501",
                    "the role owns neither the table \(refused[0].string(0)) nor the database, so the server would leave the table out"
                )
            }
            let before = try connection.query(size, [.array(names)]).firstInt64 ?? 0
            let target = try ConnectionTarget(url)
            // Behind a pooler a session belongs to nobody, and keeps the setting of its role.
            if !connection.isPooled { try connection.command("SET statement_timeout = 0") }
            connection.patience = max(timeout, workPatience)
            // VACUUM is no part of a transaction, so behind a pooler the schema has to be named.
            for table in tables {
                try connection.command("VACUUM (ANALYZE) \(target.quotedSchema).\(table)")
            }
            let after = try connection.query(size, [.array(names)]).firstInt64 ?? 0
            return (tables.count, before, after)
        }
    }

    private static let named = """
        FROM pg_catalog.pg_class AS c WHERE c.relname::text = ANY($1)
        AND c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = pg_catalog.current_schema())
        """

    private static let size = "SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(c.oid))::bigint \(named)"

    /// The tables that the role may not vacuum.
    ///
    /// It has to have the rights of the owner of the table, or of that of the database. Since PostgreSQL 17 the privilege
    /// MAINTAIN is enough.
    private static let othersTables = """
        SELECT c.relname::text \(named) AND NOT pg_catalog.pg_has_role(c.relowner, 'USAGE')
        AND NOT (SELECT pg_catalog.pg_has_role(d.datdba, 'USAGE') FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
        AND NOT CASE WHEN pg_catalog.current_setting('server_version_num')::int >= 170000
        THEN pg_catalog.has_table_privilege(c.oid, 'MAINTAIN') ELSE false END
        ORDER BY 1
        """
}
