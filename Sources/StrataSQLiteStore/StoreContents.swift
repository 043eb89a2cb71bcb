import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

/// The contents of a database when its store was opened.
///
/// They may change at any time: a writer calls ``reread(for:from:)`` to find out whether they are still the same.
struct StoreContents {
    let mapping: SQLMapping
    private(set) var metadata: StoreMetadata
    /// The history, even if nothing is added to it any more; `nil` if there never was one.
    let history: HistoryMapping?
    /// Whether the history has all of the tables that this model needs.
    let hasHistoryTables: Bool
    /// Whether there is a place for a copy of the model, but no copy.
    let lacksModelCache: Bool
    /// The number that SQLite increments with each change of tables.
    let schemaVersion: Int64

    /// Reads the contents of a database; `nil` if it is empty.
    ///
    /// - Throws: `persistentStoreTypeMismatch` (134010) for a database that is no store,
    ///   `persistentStoreIncompatibleSchema` (134020) if tables are missing, the errors of the request's check of the
    ///   version, `fileReadCorruptFile` (259), and errors of SQLite.
    static func read(_ request: SQLiteStoreRequest, _ pool: ConnectionPool) throws -> StoreContents? {
        try pool.read(isSnapshot: true) { connection in
            let catalog = try SQLCatalog(connection)
            return catalog.isEmpty ? nil : try StoreContents(for: request, on: connection, catalog: catalog)
        }
    }

    private init(for request: SQLiteStoreRequest, on connection: Connection, catalog: SQLCatalog) throws {
        let url = request.url
        guard let metadata = try StoreMetadata(on: connection, catalog: catalog, url: url) else {
            throw Self.mismatch(url, "it is a SQLite database, but no store of this framework or of Apple's.")
        }
        if let type = metadata.values[NSStoreTypeKey] as? String, type != NSSQLiteStoreType {
            throw Self.mismatch(url, "it says that it is a store of type \(type).")
        }
        if !request.options.ignoresVersions { try request.requireVersion(metadata.dictionary) }
        mapping = try SQLMapping(
            request.schema,
            configuration: request.configuration,
            catalog: catalog,
            storedHashes: metadata.versionHashes
        )
        let missing = mapping.missing(in: catalog)
        guard missing.isEmpty else {
            let names = missing.prefix(8).joined(separator: ", ") + (missing.count > 8 ? " …" : "")
            throw CocoaError.described(
                .persistentStoreIncompatibleSchema,
                userInfo: [
                    NSLocalizedDescriptionKey: "The store \(url.path) cannot be opened: it lacks \(names).",
                    NSFilePathErrorKey: url.path,
                ]
            )
        }
        self.metadata = metadata
        if HistorySchema.isPresent(in: catalog) {
            let count = HistorySchema.tombstoneCount(in: catalog)
            history = HistoryMapping(mapping, isRecording: request.recordsHistory, tombstoneCount: count)
            hasHistoryTables = count >= HistoryMapping.tombstoneCount(for: mapping)
        } else {
            (history, hasHistoryTables) = (nil, false)
        }
        lacksModelCache =
            try catalog.hasTable("Z_MODELCACHE")
            && connection.firstInt64("SELECT 1 FROM Z_MODELCACHE LIMIT 1") == nil
        schemaVersion = try Self.schemaVersion(connection)
    }

    /// The present contents of a database that was read a moment ago, if only values in the metadata have changed.
    ///
    /// This avoids reading the whole schema again.
    ///
    /// - Returns: `nil` if its tables or the model's version have changed.
    func reread(for request: SQLiteStoreRequest, from pool: ConnectionPool) throws -> StoreContents? {
        try pool.read(isSnapshot: true) { connection in
            guard try Self.schemaVersion(connection) == schemaVersion,
                let metadata = try StoreMetadata(on: connection, catalog: ModelGuard.columns, url: request.url),
                metadata.versionHashes == self.metadata.versionHashes
            else { return nil }
            var contents = self
            contents.metadata = metadata
            return contents
        }
    }

    private static func schemaVersion(_ connection: Connection) throws -> Int64 {
        try connection.firstInt64("PRAGMA schema_version") ?? 0
    }

    private static func mismatch(_ url: URL, _ reason: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreTypeMismatch,
            userInfo: [
                NSLocalizedDescriptionKey: "The store \(url.path) cannot be opened: \(reason)",
                NSFilePathErrorKey: url.path,
            ]
        )
    }
}
