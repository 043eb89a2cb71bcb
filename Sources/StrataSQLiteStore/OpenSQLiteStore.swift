import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite
import Synchronization

/// The parts of a SQLite store while it is open.
package final class OpenSQLiteStore: Sendable {
    let request: SQLiteStoreRequest
    let database: SQLiteDatabase
    let mapping: SQLMapping
    let queries: RowQueries
    let shapes: WriteShapes
    let external: ExternalData
    /// The history, even if nothing is added to it any more; `nil` if there never was one.
    let history: HistoryMapping?
    /// The last version of the file's schema that had no history; -1 for none.
    let schemaWithoutHistory = AtomicCell<Int64>(-1)
    /// Whether the file has a place for a copy of its model, but no copy.
    private let lacksModelCache = AtomicCell(false)
    /// Notices that other programs have migrated the file, or replaced its contents.
    let modelGuard: ModelGuard
    /// The external files that only older versions name.
    let retired: RetiredFiles
    /// The external files of commits that failed.
    let doubtful = DoubtfulFiles()
    /// The last members of ordered relationships to which saves have appended.
    let lastMembers = LastMembers()
    /// The guarantee of commits against a loss of power.
    let synchronous: SQLiteOptions.Synchronous
    /// The metadata at the time of opening.
    let metadata: StoreMetadata

    var url: URL { request.url }
    package var pool: ConnectionPool { database.pool }

    /// The folder of the file; for a database in memory, the folder for temporary files.
    var folder: URL {
        external.folder == nil ? FileManager.default.temporaryDirectory : url.deletingLastPathComponent()
    }

    convenience init(_ request: SQLiteStoreRequest, database: SQLiteDatabase, contents: StoreContents) {
        self.init(
            request,
            database: database,
            mapping: contents.mapping,
            metadata: contents.metadata,
            history: contents.history
        )
        if case .file = request.options.place, !request.options.isReadOnly {
            lacksModelCache.store(contents.lacksModelCache, ordering: .relaxed)
        }
        // This saves the first write from reading the schema.
        if contents.history == nil { schemaWithoutHistory.store(contents.schemaVersion, ordering: .relaxed) }
    }

    init(
        _ request: SQLiteStoreRequest,
        database: SQLiteDatabase,
        mapping: SQLMapping,
        metadata: StoreMetadata,
        history: HistoryMapping?
    ) {
        self.request = request
        self.database = database
        self.mapping = mapping
        self.metadata = metadata
        self.history = history
        modelGuard = ModelGuard(request.url, metadata)
        var path: String?
        if case .file(let file) = request.options.place { path = file }
        external = ExternalData(storePath: path)
        retired = RetiredFiles.of(external)
        synchronous = request.options.synchronous
        queries = RowQueries(mapping, external: external, url: path == nil ? nil : request.url)
        shapes = WriteShapes(mapping)
    }

    /// Writes a copy of the model into a file that has none, in the transaction that is open.
    func writeMissingModelCache(_ connection: Connection) throws {
        // If the transaction fails, the copy is written when the file is opened the next time.
        guard lacksModelCache.load(ordering: .relaxed), lacksModelCache.exchange(false, ordering: .relaxed),
            let model = request.modelCache()
        else { return }
        try SQLiteEngine.writeModelCache(model, connection)
    }

    /// Holds a version of the file.
    ///
    /// - Throws: `persistentStoreOperation` (134070) with the `advice` if too many are held; errors of SQLite.
    func pinning(
        _ advice: String,
        _ pin: (ConnectionPool) throws(SQLiteError) -> PinnedSnapshot
    ) throws -> PinnedSnapshot {
        do {
            return try pin(pool)
        } catch {
            guard error.code == .full else { throw error }
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(url.path) cannot keep another version: \(error.message). \(advice)"
                ]
            ).marked(.environment)
        }
    }

    /// Makes all commits up to now survive a loss of power.
    ///
    /// - Throws: Errors of the disk.
    func makeCommitsDurable() throws(SQLiteError) { try database.makeCommitsDurable(synchronous) }

    // MARK: - Opening

    /// Opens a store, or makes it if there is none.
    ///
    /// An existing file is first read through a connection that cannot write. So a file that is refused is not changed.
    ///
    /// - Throws: The errors of ``NSPersistentStoreCoordinator/addPersistentStore(type:configuration:at:options:)``.
    static func open(_ request: SQLiteStoreRequest) throws -> OpenSQLiteStore {
        let options = request.options
        let file: OpenSQLiteStore
        switch options.place {
        case .privateMemory:
            let database = try SQLiteDatabase(.memory, options.pool, access: .readWriteCreate)
            file = try openOrCreate(request, in: database)
        case .sharedMemory(let name):
            let database = try SQLiteDatabase.shared(named: name, options.pool)
            file = try openOrCreate(request, in: database)
        case .file(let path):
            file = try openFile(request, path)
        }
        if !options.isReadOnly {
            if options.vacuums { try file.pool.writeWithoutTransaction { try $0.run("VACUUM") } }
            if options.analyzes { try file.pool.write { try $0.run("ANALYZE") } }
        }
        return file
    }

    private static func openFile(_ request: SQLiteStoreRequest, _ path: String) throws -> OpenSQLiteStore {
        let options = request.options
        var status = stat()
        let exists = stat(path, &status) == 0
        if exists, status.st_mode & S_IFMT == S_IFDIR {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "The store \(path) cannot be opened: it is a folder."]
            )
        }
        if exists, status.st_size > 0 || options.isReadOnly {
            let reader = try SQLiteDatabase(.file(path), options.pool, access: .readOnly)
            let found = try StoreContents.read(request, reader.pool)
            if options.isReadOnly {
                guard let found else {
                    throw CocoaError.described(
                        .persistentStoreOpen,
                        userInfo: [NSLocalizedDescriptionKey: "The store \(path) cannot be opened: it is empty."]
                    )
                }
                return OpenSQLiteStore(request, database: reader, contents: found)
            }
            // A reader keeps the file in its journal mode. If that mode stays, the log stays too, and need not be made
            // again.
            guard reader.pool.isWriteAheadLogged, options.isWriteAheadLogged else {
                try reader.pool.close()
                return try openOrCreate(
                    request,
                    in: SQLiteDatabase(.file(path), options.pool, access: .readWrite),
                    contents: found
                )
            }
            let database = try SQLiteDatabase(.file(path), options.pool, access: .readWrite)
            try reader.pool.closeBesideWriter()
            return try openOrCreate(request, in: database, contents: found)
        }
        // If no store can have the model, it is refused before a file is made.
        if !exists { _ = try SQLMapping(request.schema, configuration: request.configuration) }
        let access: Connection.Access = options.isReadOnly ? .readOnly : exists ? .readWrite : .readWriteCreate
        return try openOrCreate(request, in: SQLiteDatabase(.file(path), options.pool, access: access))
    }

    /// Opens the store in a database that may be written, or makes it.
    ///
    /// - Parameters:
    ///   - request: The store to open.
    ///   - database: The connections of its file.
    ///   - found: The contents of the file a moment ago, if they were read.
    /// - Returns: The open store.
    /// - Throws: The errors of reading, and of making the tables.
    private static func openOrCreate(
        _ request: SQLiteStoreRequest,
        in database: SQLiteDatabase,
        contents found: StoreContents? = nil
    ) throws -> OpenSQLiteStore {
        if let contents = try found?.reread(for: request, from: database.pool)
            ?? StoreContents.read(request, database.pool)
        {
            guard request.recordsHistory, !contents.hasHistoryTables else {
                return OpenSQLiteStore(request, database: database, contents: contents)
            }
            try database.pool.write { try prepareHistory(contents.mapping, $0) }
            return OpenSQLiteStore(
                request,
                database: database,
                contents: try StoreContents.read(request, database.pool) ?? contents
            )
        }
        try database.pool.write { connection in
            // Another program may have made the store first.
            guard try SQLCatalog(connection).isEmpty else { return }
            let mapping = try SQLMapping(request.schema, configuration: request.configuration)
            for statement in SQLiteSchema(mapping).statements { try connection.execute(statement) }
            try fillPrimaryKeys(mapping, connection)
            try StoreMetadata(newFor: request).write(connection)
            if case .file = request.options.place, let model = request.modelCache() {
                try SQLiteEngine.writeModelCache(model, connection)
            }
            if request.recordsHistory { try prepareHistory(mapping, connection) }
        }
        guard let made = try StoreContents.read(request, database.pool) else {
            throw SQLiteBoundary.damaged(request.url, "it is empty after its tables were made.")
        }
        return OpenSQLiteStore(request, database: database, contents: made)
    }

    private static func prepareHistory(_ mapping: SQLMapping, _ connection: Connection) throws {
        let count = HistoryMapping.tombstoneCount(for: mapping)
        guard try HistorySchema.prepare(tombstoneCount: count, connection) else { return }
        try HistoryBaseline(mapping, connection).write(connection)
        try HistoryCounters.recordMigration(connection)
    }

    static func fillPrimaryKeys(_ mapping: SQLMapping, _ connection: Connection) throws {
        let statement = try connection.statement(
            "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, 0)"
        )
        for entity in mapping.entities {
            let parent = entity.layout.parent.flatMap { mapping.entity(modelNumber: $0.number) }
            try statement.bind(entity.number, at: 1)
            try statement.bind(entity.layout.name, at: 2)
            try statement.bind(parent?.number ?? 0, at: 3)
            try statement.run()
        }
    }
}
