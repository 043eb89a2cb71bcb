import Foundation

#if canImport(CoreDataPostgreSQL)
import StrataPostgreSQL
#endif

/// The schema of a test's store in plain SQL, as text; empty where PostgreSQL's library is missing.
package enum DatabaseTexts {
    /// All rows of all tables.
    package static func rows(ofStoreAt url: URL) throws -> [String] {
        #if canImport(CoreDataPostgreSQL)
        let connection = try connection(to: url)
        let tables = try connection.query(
            "SELECT relname::text FROM pg_catalog.pg_class WHERE relkind = 'r' AND relnamespace = pg_catalog.current_schema()::regnamespace ORDER BY 1"
        ).rows.map { $0.string(0) }
        return try tables.flatMap { table in
            try connection.query("SELECT t::text FROM \"\(table)\" AS t ORDER BY 1").rows.map {
                "\(table): \($0.string(0))"
            }
        }
        #else
        return []
        #endif
    }

    /// The columns with their types, the indexes and the sequences.
    package static func shape(ofStoreAt url: URL) throws -> Set<String> {
        #if canImport(CoreDataPostgreSQL)
        return Set(
            try connection(to: url).query(
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
            ).rows.map { $0.string(0) }
        )
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
