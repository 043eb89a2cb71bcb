import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The operations on a store that is not open.
extension PostgreSQLEngine {
    /// Reads the metadata.
    ///
    /// - Throws: `fileReadNoSuchFile` (260) if there is no store.
    package static func metadata(at url: URL, timeout: Double) throws -> [String: Any] {
        try withConnection(to: url, .reading, timeout: timeout) { connection, place in
            try existing(connection, place).dictionary
        }
    }

    /// Whether a store is portable.
    package static func isPortable(at url: URL, timeout: Double) throws -> Bool {
        try withConnection(to: url, .migrating, timeout: timeout) { connection, place in
            try StoreMetadata.read(connection, place)?.isPortable == true
        }
    }

    /// Writes the metadata; the framework's own keys stay as they are.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) if the store is portable, and is being migrated; errors of the database.
    package static func rewriteMetadata(_ values: [String: Any]?, at url: URL) throws {
        try withConnection(to: url, .saving, timeout: 30) { connection, place in
            _ = try existing(connection, place)
            try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
            let metadata = try StoreMetadata.locked(connection, place)
            guard metadata.generations.pending == nil else { throw MigrationUnderWay.error(place) }
            try StoreMetadata(
                dictionary: StoreMetadata.replacing(metadata.dictionary, with: values ?? [:]),
                uuid: metadata.uuid
            ).write(connection)
            try connection.commit()
        }
    }

    /// Removes a store: the tables and sequences that it has made, and the schema if nothing else is in it.
    ///
    /// This does nothing if there is no store. Other programs that have the store open notice that at their next use,
    /// because their sessions end.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - timeout: How many seconds others may keep the store locked.
    /// - Returns: A sentence that names the other objects in the schema, which then stays; `nil` if there are none.
    /// - Throws: `persistentStoreOperation` (134070) if another object, such as a view, depends on its tables. The
    ///   error names that object, and nothing is changed.
    @discardableResult
    package static func destroy(at url: URL, timeout: Double) throws -> String? {
        try withConnection(to: url, .destroying, timeout: timeout) { connection, place in
            let target = try ConnectionTarget(url)
            var refusal: PostgreSQLError?
            try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
            do { try OpenPostgreSQLStore.lockShape(of: target, connection) } catch let error as PostgreSQLError
                where error.isUnavailable && !connection.isBroken
            {
                // A portable store needs no such lock.
                refusal = error
                try connection.rollback()
                try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
            }
            guard let metadata = try StoreMetadata.read(connection, place) else {
                try connection.rollback()
                return nil
            }
            if metadata.isPortable {
                try OpenPostgreSQLStore.lockOutWriters(ofPortable: connection)
            } else {
                if let refusal { throw refusal }
                // A session that opens the store now waits, and then finds no store.
                try connection.command("LOCK TABLE strata_store IN ACCESS EXCLUSIVE MODE")
                try StoreSessions.endOthers(of: target, connection)
            }
            let left = try StoreRemoval(of: metadata, at: target, on: connection).drop()
            try connection.commit()
            // Killed migrations may have left other schemas.
            for number in metadata.generations.schemas {
                _ = try? destroy(at: PortableReplacement.url(beside: url, target, number), timeout: timeout)
            }
            guard !left.isEmpty else { return nil }
            let names = StoreRemoval.first(of: left)
            let reason = "others have put something into it: \(names)"
            return "The store \(place) was destroyed, but its schema stays, as \(reason)."
        }
    }

    /// The names of the schemas of a database that have a store.
    ///
    /// - Parameters:
    ///   - url: The database; its schema plays no part.
    ///   - prefix: The text with which the names begin.
    /// - Returns: The names, in no order.
    /// - Throws: Errors of reading the database.
    package static func stores(at url: URL, prefix: String) throws -> [String] {
        try withConnection(to: url, .reading, timeout: 30) { connection, _ in
            try connection.query(
                """
                SELECT n.nspname::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
                WHERE c.relname = 'strata_store' AND c.relkind IN ('r', 'p')
                AND pg_catalog.left(n.nspname::text, pg_catalog.length($1)) = $1
                """,
                [.text(prefix)]
            ).rows.map { $0.string(0) }
        }
    }

    /// The statements that create a store for a model, in an empty schema.
    ///
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) for a model that such a store does not support.
    package static func statements(for schema: Schema) throws -> [String] {
        PostgreSQLSchema(try SQLMapping(schema, dialect: .postgresql)).statements
    }

    static func existing(_ connection: Connection, _ place: String) throws -> StoreMetadata {
        if let metadata = try StoreMetadata.read(connection, place) { return metadata }
        throw CocoaError.described(
            .fileReadNoSuchFile,
            userInfo: [NSLocalizedDescriptionKey: "There is no store at \(place)."]
        )
    }

    static func withConnection<R>(
        to url: URL,
        _ doing: PostgreSQLBoundary.Doing,
        timeout: Double,
        _ body: (Connection, _ place: String) throws -> R
    ) throws -> R {
        try PostgreSQLBoundary.run(doing, at: "of PostgreSQL") {
            let target = try ConnectionTarget(url)
            let pool = OpenPostgreSQLStore.pool(target, size: 1, timeout: timeout)
            defer { pool.close() }
            return try pool.writing { try body($0, target.place) }
        }
    }
}
