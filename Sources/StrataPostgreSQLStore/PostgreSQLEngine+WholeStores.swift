import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// What is done with a store that is not open.
extension PostgreSQLEngine {
    /// Reads the metadata.
    ///
    /// - Throws: `fileReadNoSuchFile` (260) if there is no store.
    package static func metadata(at url: URL, timeout: Double) throws -> [String: Any] {
        try withConnection(to: url, .reading, timeout: timeout) { connection, place in
            try existing(connection, place).dictionary
        }
    }

    /// Writes the metadata; the framework's own keys stay as they are.
    package static func rewriteMetadata(_ values: [String: Any]?, at url: URL) throws {
        try withConnection(to: url, .saving, timeout: 30) { connection, place in
            _ = try existing(connection, place)
            try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
            let metadata = try StoreMetadata.locked(connection, place)
            try StoreMetadata(
                dictionary: StoreMetadata.replacing(metadata.dictionary, with: values ?? [:]),
                uuid: metadata.uuid
            ).write(connection)
            try connection.commit()
        }
    }

    /// Removes a store: the tables and sequences that it has made, and the schema if nothing else is in it.
    ///
    /// Does nothing if there is no store. Other programs that have the store open find out when they use it next: their
    /// sessions end.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - timeout: For how many seconds others may keep the store locked.
    /// - Returns: A sentence that names what else is in the schema, which stays then; `nil` if nothing is.
    /// - Throws: `persistentStoreOperation` (134070) if something that is not the store's depends on its tables, such as a
    ///   view: it names that, and nothing was changed.
    @discardableResult
    package static func destroy(at url: URL, timeout: Double) throws -> String? {
        try withConnection(to: url, .destroying, timeout: timeout) { connection, place in
            let target = try ConnectionTarget(url)
            try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
            try OpenDatabase.lockShape(of: target, connection)
            guard let metadata = try StoreMetadata.read(connection, place) else {
                try connection.rollback()
                return nil
            }
            // Whoever opens a session now waits, and then finds no store.
            try connection.command("LOCK TABLE strata_store IN ACCESS EXCLUSIVE MODE")
            try StoreSessions.endOthers(of: target, connection)
            let left = try StoreRemoval(metadata, target, connection).drop()
            try connection.commit()
            guard !left.isEmpty else { return nil }
            let names = StoreRemoval.first(of: left)
            let reason = "others have put something into it: \(names)"
            return "The store \(place) was destroyed, but its schema stays, as \(reason)."
        }
    }

    /// The statements that create a store for a model, in an empty schema.
    ///
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) for a model that such a store does not take.
    package static func statements(for schema: Schema) throws -> [String] {
        PostgreSQLSchema(try SQLMapping(schema, dialect: .postgresql)).statements
    }

    private static func existing(_ connection: Connection, _ place: String) throws -> StoreMetadata {
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
        try PostgreSQLBoundary.run(doing, "of PostgreSQL") {
            let target = try ConnectionTarget(url)
            let pool = OpenDatabase.pool(target, size: 1, timeout: timeout)
            defer { pool.close() }
            return try pool.withConnection { try body($0, target.place) }
        }
    }
}
