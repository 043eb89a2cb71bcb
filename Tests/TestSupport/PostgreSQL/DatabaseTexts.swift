import Foundation

#if canImport(CoreDataPostgreSQL)
import StrataPostgreSQL
#endif

/// The schema of a test's store in plain SQL, as text; empty where PostgreSQL's library is missing.
package enum DatabaseTexts {
    /// All rows of all tables, without the numbers of tables in the metadata, and without what a portable store keeps about its users.
    package static func rows(ofStoreAt url: URL) throws -> [String] {
        #if canImport(CoreDataPostgreSQL)
        let connection = try connection(to: url)
        let tables = try connection.query(
            "SELECT relname::text FROM pg_catalog.pg_class WHERE relkind = 'r' AND relnamespace = pg_catalog.current_schema()::regnamespace ORDER BY 1"
        ).rows.map { $0.string(0) }
        let metadata = tables.contains("strata_store") ? [try metadata(connection)] : []
        return try metadata
            + tables.filter { !["strata_store", "strata_lease", "strata_receipt"].contains($0) }.flatMap { table in
                try connection.query("SELECT t::text FROM \"\(table)\" AS t ORDER BY 1").rows.map {
                    "\(table): \($0.string(0))"
                }
            }
        #else
        return []
        #endif
    }

    #if canImport(CoreDataPostgreSQL)
    private static func metadata(_ connection: Connection) throws -> String {
        let found = try connection.query("SELECT format::text, uuid, metadata, pg_catalog.md5(model) FROM strata_store")
        guard found.rowCount == 1 else { return "strata_store: \(found.rowCount) rows" }
        let list = try PropertyListSerialization.propertyList(from: found[0].data(2), format: nil)
        let values = (list as? [String: Any] ?? [:]).filter { $0.key != "StrataGenerations" }
        let texts = values.map { "\($0.key) = \(text($0.value))" }.sorted()
        let others = [found[0].string(0), found[0].string(1), found[0].optionalString(3) ?? "no model"]
        return "strata_store: \((others + texts).joined(separator: ", "))"
    }

    /// A value of a property list as text, in which dictionaries have an order.
    private static func text(_ value: Any) -> String {
        guard let list = value as? [String: Any] else { return "\(value)" }
        return "[\(list.map { "\($0.key): \(text($0.value))" }.sorted().joined(separator: ", "))]"
    }
    #endif

    /// The columns with their types, the indexes and the sequences.
    ///
    /// The numbers that a portable store's tables have after a migration are left out.
    package static func shape(ofStoreAt url: URL) throws -> Set<String> {
        #if canImport(CoreDataPostgreSQL)
        let texts = try connection(to: url).query(
            """
            SELECT 'column ' || c.relname || '.' || a.attname || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod)
                || CASE WHEN a.atthasdef THEN ' with a default' ELSE '' END
            FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
            WHERE c.relnamespace = pg_catalog.current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
            UNION ALL SELECT pg_catalog.replace(indexdef, pg_catalog.current_schema() || '.', '') FROM pg_catalog.pg_indexes
            WHERE schemaname = pg_catalog.current_schema() AND indexname NOT LIKE '%pkey%'
            UNION ALL SELECT 'sequence ' || sequencename || ' by ' || increment_by FROM pg_catalog.pg_sequences
            WHERE schemaname = pg_catalog.current_schema()
            """
        ).rows.map { $0.string(0).replacing("\"", with: "").replacing(/_g[0-9]+(?=[^a-z0-9]|_|$)/, with: "") }
        var seen: Set<String> = []
        // The old tables of a migration must not stay.
        return Set(texts.map { seen.insert($0).inserted ? $0 : "twice: \($0)" })
        #else
        return []
        #endif
    }

    /// Replaces the version hashes in a store's metadata.
    package static func setVersionHashes(_ hashes: [String: Data], ofStoreAt url: URL) throws {
        #if canImport(CoreDataPostgreSQL)
        let connection = try connection(to: url)
        let found = try connection.query("SELECT metadata FROM strata_store")[0].data(0)
        let list = try PropertyListSerialization.propertyList(from: found, format: nil)
        var values = list as? [String: Any] ?? [:]
        values["NSStoreModelVersionHashes"] = hashes
        let data = try PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0)
        try connection.query("UPDATE strata_store SET metadata = $1", [.bytea(data)])
        #endif
    }

    /// Runs SQL without the framework.
    package static func run(_ sql: String, inStoreAt url: URL) throws {
        #if canImport(CoreDataPostgreSQL)
        try TestDatabase.run(sql, in: url)
        #endif
    }

    /// Removes the schema that stands for a file.
    package static func drop(_ url: URL) {
        #if canImport(CoreDataPostgreSQL)
        TestDatabase.drop(url)
        #endif
    }

    #if canImport(CoreDataPostgreSQL)
    private static func connection(to url: URL) throws -> Connection {
        let target = try ConnectionTarget(TestDatabase.url(for: url))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        return connection
    }
    #endif
}
