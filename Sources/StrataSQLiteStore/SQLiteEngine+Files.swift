import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

extension SQLiteEngine {
    // MARK: - Metadata of closed stores

    package static func metadata(at url: URL) throws -> [String: Any] {
        try SQLiteBoundary.run(.opening, at: url) {
            try withFile(url, access: .readOnly) { database in
                try database.pool.read { try metadata($0, url).dictionary }
            }
        }
    }

    package static func rewriteMetadata(_ metadata: [String: Any]?, at url: URL) throws {
        try SQLiteBoundary.run(.saving, at: url) {
            try withFile(url, access: .readWrite) { database in
                try database.pool.write { connection in
                    var stored = try self.metadata(connection, url)
                    if let uuid = metadata?[NSStoreUUIDKey] as? String, !uuid.isEmpty {
                        stored.uuid = uuid
                        ModelGuard.addOwnUUID(uuid)
                    }
                    stored.values = StoreMetadata.replacing(stored.values, with: metadata ?? [:])
                    stored.values[NSStoreUUIDKey] = nil
                    try stored.write(connection)
                }
            }
        }
    }

    static func metadata(_ connection: Connection, _ url: URL) throws -> StoreMetadata {
        guard let metadata = try StoreMetadata(on: connection, catalog: SQLCatalog(connection), url: url) else {
            throw CocoaError.described(
                .persistentStoreTypeMismatch,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The file \(url.path) is a SQLite database, but no store of this framework or of Apple's.",
                    NSFilePathErrorKey: url.path,
                ]
            )
        }
        return metadata
    }

    /// The copy of the model in a store, as it is in `Z_MODELCACHE`; `nil` if there is none.
    ///
    /// The store's file is not changed.
    package static func cachedModel(at url: URL) throws -> Data? {
        try SQLiteBoundary.run(.opening, at: url) {
            try withFile(url, access: .readOnly) { database in
                try database.pool.read { connection in
                    _ = try metadata(connection, url)
                    guard try SQLCatalog(connection).hasTable("Z_MODELCACHE") else { return nil }
                    let statement = try connection.statement("SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1")
                    guard try statement.step(), !statement[0].isNull else { return nil }
                    return statement[0].data
                }
            }
        }
    }

    /// Opens a database for one operation, and closes it.
    static func withFile<R>(
        _ url: URL,
        options: SQLiteOptions? = nil,
        access: Connection.Access,
        _ body: (SQLiteDatabase) throws -> R
    ) throws -> R {
        let options = try options ?? SQLiteOptions(url: url)
        let database: SQLiteDatabase
        switch options.place {
        case .file(let path):
            database = try SQLiteDatabase(.file(path), options.pool, access: access)
            defer { try? database.pool.close() }
            return try body(database)
        case .sharedMemory(let name):
            database = try SQLiteDatabase.shared(named: name, options.pool)
            return try body(database)
        case .privateMemory:
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "A store in memory cannot be reached before it is added."]
            )
        }
    }

    // MARK: - Replacing and destroying

    /// Copies a store over another, or to a place without a store, with its external files.
    ///
    /// The destination is written under its locks. Programs that have it open see all of the new store or all of the
    /// old one, and a mark shows them the change (``ModelGuard``). The mark must come in the same transaction as the
    /// contents. So a copy is made beside the file first, and gets the mark there.
    package static func replace(
        at destination: URL,
        _ destinationOptions: SQLiteOptions,
        with source: URL,
        _ sourceOptions: SQLiteOptions
    ) throws {
        if destinationOptions.isReadOnly {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(destination.path) cannot be replaced: the destination's options make it read-only.",
                    NSFilePathErrorKey: destination.path,
                ]
            )
        }
        guard FilePlace(destination) != FilePlace(source) else { return }
        try requireOwnFolder(destination, besides: source)
        let files = BroughtFiles(from: source, to: destination)
        try SQLiteBoundary.run(.reading, at: source) {
            try withFile(source, options: sourceOptions, access: .readOnly) { from in
                _ = try from.pool.read { try metadata($0, source) }
                try SQLiteBoundary.run(.replacing, at: destination) {
                    try files.bring()
                    do {
                        try overwrite(at: destination, options: destinationOptions, with: from, bringing: files)
                    } catch {
                        files.removeCopies()
                        throw error
                    }
                }
            }
        }
    }

    private static func overwrite(
        at destination: URL,
        options: SQLiteOptions,
        with source: SQLiteDatabase,
        bringing files: BroughtFiles
    ) throws {
        removeUnlessDatabase(destination)
        guard FileManager.default.fileExists(atPath: destination.path) else {
            return try source.pool.read {
                try overwrite(at: destination, options: options, withContentsOf: $0, bringing: files)
            }
        }
        let working = WorkingFile.url(beside: destination)
        WorkingFile.removeLeftovers(beside: destination)
        defer { removeFiles(of: working) }
        try source.pool.read { reader in
            let pages = try reader.firstInt64("PRAGMA page_count") ?? 0
            let size = try reader.firstInt64("PRAGMA page_size") ?? 0
            try DiskSpace.require(pages * size, in: working.deletingLastPathComponent().path)
            let copy = try Connection(path: working.path, access: .readWriteCreate)
            defer { copy.close() }
            try copy.copyAll(from: reader)
        }
        // No other program uses the file, so it needs no log.
        try markRestoration(working, SQLiteOptions(url: working, pragmas: ["journal_mode": "DELETE"]))
        try withFile(working, access: .readOnly) { marked in
            try marked.pool.read {
                try overwrite(at: destination, options: options, withContentsOf: $0, bringing: files)
            }
        }
    }

    private static func overwrite(
        at destination: URL,
        options: SQLiteOptions,
        withContentsOf reader: Connection,
        bringing files: BroughtFiles
    ) throws {
        try withFile(destination, options: options, access: .readWriteCreate) { target in
            var prepared = Result<Void, any Error>.success(())
            // `prepared` says whether it was copied, with the reason if not.
            _ = try target.pool.writeWithoutTransaction { writer in
                try writer.copyAll(from: reader) {
                    prepared = Result { try files.prepare() }
                    return (try? prepared.get()) != nil
                }
            }
            try prepared.get()
            target.pool.emptyLogIfUnread()
            // Without this, a loss of power could bring back the former contents, whose rows name the files. If the disk
            // fails, the files stay.
            if (try? target.makeCommitsDurable(options.synchronous)) != nil { files.removeFormer() }
        }
    }

    /// Gives a store that is not open a unique mark, before its contents replace others.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - options: The options to open it with; `nil` for the usual ones.
    /// - Throws: Errors of the file.
    static func markRestoration(_ url: URL, _ options: SQLiteOptions? = nil) throws {
        try withFile(url, options: options, access: .readWrite) { database in
            try database.pool.write { connection in
                var stored = try metadata(connection, url)
                stored.restoration = UUID().uuidString
                try stored.write(connection)
            }
        }
    }

    /// Removes a file that SQLite cannot write to.
    private static func removeUnlessDatabase(_ url: URL) {
        do {
            try Connection(path: url.path, access: .readOnly).validate()
        } catch  where [.notADatabase, .corrupt].contains(error.code) {
            removeFiles(of: url)
        } catch {
            // Any other error occurs again when the file is opened for writing.
        }
    }

    /// Empties a store under its locks, so that programs that have it open see that, and removes its external files.
    ///
    /// The file stays, as an empty database, unless `NSPersistentStoreForceDestroyOption` asks for its removal. If
    /// there is none, an empty one is made, and files that an earlier store has left beside it are removed: they would
    /// damage a later file.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - options: The options to open it with.
    ///   - removesFile: Whether the file has to be removed.
    /// - Throws: Errors of the file.
    package static func destroy(at url: URL, options: SQLiteOptions, removesFile: Bool) throws {
        if removesFile {
            removeFiles(of: url)
        } else if !FileManager.default.fileExists(atPath: url.path) {
            removeCompanions(of: url)
            // Apple's framework does so too, for programs that remove the file afterwards. Without a folder no file is
            // made.
            _ = FileManager.default.createFile(atPath: url.path, contents: nil)
        } else {
            try SQLiteBoundary.run(.destroying, at: url) {
                try withFile(url, options: options, access: .readWrite) { database in
                    try database.pool.writeWithoutTransaction { try $0.eraseAll() }
                    database.pool.emptyLogIfUnread()
                    // Otherwise a loss of power could bring back rows whose files are gone.
                    try? database.makeCommitsDurable(options.synchronous)
                }
            }
        }
        try? FileManager.default.removeItem(at: ExternalData.supportFolder(of: url))
    }

    /// Removes a store that no program has open, with its external files.
    package static func removeAll(of url: URL) {
        removeFiles(of: url)
        try? FileManager.default.removeItem(at: ExternalData.supportFolder(of: url))
    }

    private static func removeFiles(of url: URL) {
        try? FileManager.default.removeItem(atPath: url.path)
        removeCompanions(of: url)
    }

    /// Removes the files that SQLite keeps beside a file.
    private static func removeCompanions(of url: URL) {
        for suffix in ["-wal", "-shm", "-journal"] {
            try? FileManager.default.removeItem(atPath: url.path + suffix)
        }
    }
}
