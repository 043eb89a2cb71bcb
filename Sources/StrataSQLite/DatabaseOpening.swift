import Foundation
import StrataLocks

/// Opens the connections of one pool, all with the same settings.
///
/// ## Files that may only be read
/// A database in WAL mode needs its `-shm` file even for reading. SQLite cannot make one if the folder may not be
/// written:
///
/// - without a `-wal` file (or with an empty one) the database file is complete, and is opened `immutable`;
/// - with a `-wal` file, part of the data is in that file, and `immutable` would silently leave it out. Database and
///   log are then copied to a temporary folder and read there. The copy is removed with the pool. No process can be
///   writing meanwhile: a writer would have made the `-shm` file. A database with a rollback journal left by a crash is
///   treated in the same way.
///
/// In a folder that may be written, reading makes an empty `-wal` and a `-shm` file if there are none. The pool removes
/// them at its end, unless another process uses them by then. The database file itself is never changed.
struct DatabaseOpening: Sendable {
    /// The path that the connections open: the requested one, or that of a private copy.
    private(set) var path: String
    private(set) var isImmutable = false
    /// The folder of the private copy, to be removed at the end.
    private(set) var temporaryFolder: String?
    /// Whether readers see a snapshot beside a writer.
    private(set) var isWriteAheadLogged = false
    /// The files of the database, once the first connection is open; `nil` if the pool has a private copy or no files.
    private(set) var files: FilesInPlace?
    /// Whether reading has made the files of a log that did not exist before.
    private var hasMadeLog = false

    private let options: PoolOptions
    private let pragmas: [(name: String, value: String)]

    private static let creationPragmas: Set<String> = ["page_size", "auto_vacuum", "encoding"]
    private static let ownPragmas: Set<String> = ["journal_mode", "wal_autocheckpoint"]

    init(path: String, options: PoolOptions) throws(SQLiteError) {
        self.path = path
        self.options = options
        // The order is fixed, so that all runs behave equally.
        pragmas = options.pragmas.map { (name: $0.key.lowercased(), value: $0.value) }.sorted { $0.name < $1.name }
        if let mode = pragma("locking_mode"), mode.uppercased() != "NORMAL" {
            let message = "locking_mode \(mode) would lock the pool's own readers out"
            throw SQLiteError(code: .misuse, message: message, operation: .configure)
        }
        if let mode = pragma("journal_mode"), mode.uppercased() == "OFF" {
            let message = "journal_mode OFF has no rollback, so a save could not be all or nothing"
            throw SQLiteError(code: .misuse, message: message, operation: .configure)
        }
    }

    private func pragma(_ name: String) -> String? {
        pragmas.first { $0.name == name }?.value
    }

    /// The number of pages in the log after which a commit copies it, if the options name it.
    var pagesCopiedByCommits: Int32? { pragma("wal_autocheckpoint").flatMap { Int32($0) } }

    /// Notes the files that are now at the path as those of all connections.
    mutating func fixFiles() {
        guard !isImmutable, temporaryFolder == nil else { return }
        files = FilesInPlace(path, hasLog: isWriteAheadLogged)
    }

    // MARK: - Writers

    /// Opens the connection that writes, and makes or checks the database.
    mutating func openWriter() throws(SQLiteError) -> Connection {
        let connection = try open(access: options.access, cacheKiB: options.writerCacheKiB)
        try connection.validate()
        if try connection.firstInt64("PRAGMA page_count") == 0 {
            // The first page fixes these settings. The change of the journal mode writes it.
            try connection.setPragma("page_size", pragma("page_size") ?? "4096")
            try connection.setPragma("auto_vacuum", pragma("auto_vacuum") ?? "2")
            if let encoding = pragma("encoding") { try connection.setPragma("encoding", encoding) }
        }
        let mode = try setJournalMode(of: connection)
        isWriteAheadLogged = mode?.lowercased() == "wal"
        return connection
    }

    /// Changes the journal mode, while other processes that make the same database may be faster.
    ///
    /// SQLite fails at once then, without a wait: if two connections have read the database, each waits for the other
    /// to end.
    private func setJournalMode(of connection: Connection) throws(SQLiteError) -> String? {
        let start = BusyWait.now()
        while true {
            do {
                return try connection.setPragma("journal_mode", pragma("journal_mode") ?? "WAL")
            } catch {
                let waited = Double(BusyWait.now() &- start) / 1e9
                guard error.code == .busy, waited < connection.busyWait.timeout else { throw error }
                Schedule.sleep(microseconds: .random(in: 200...2_000))
            }
        }
    }

    /// Opens the connection that copies the log beside writers.
    func openLogCopier() throws(SQLiteError) -> Connection {
        let connection = try open(access: .readWrite, cacheKiB: 16)
        connection.leaveLogOnClose()
        return connection
    }

    /// Opens the connection that keeps the log from starting over, or has the write lock, during checkpoints.
    ///
    /// It writes nothing.
    func openLogGuardian() throws(SQLiteError) -> Connection {
        let connection = try open(access: .readWrite, cacheKiB: 16)
        connection.leaveLogOnClose()
        return connection
    }

    /// Opens a connection that only keeps the index of the log open, and so needs no setup for statements.
    func openWatcher() throws(SQLiteError) -> Connection {
        var settings = Connection.Options()
        settings.timeout = options.timeout
        settings.statementCacheLimit = 1
        let connection = try Connection(path: path, access: .readOnly, options: settings)
        connection.leaveLogOnClose()
        try files?.require(.open)
        return connection
    }

    /// Opens the only connection of a database in memory.
    func openMemory() throws(SQLiteError) -> Connection {
        let connection = try open(access: .readWriteCreate, cacheKiB: options.writerCacheKiB)
        try connection.setPragma("auto_vacuum", pragma("auto_vacuum") ?? "2")
        return connection
    }

    // MARK: - Readers

    func openReader() throws(SQLiteError) -> Connection {
        let connection = try open(access: .readOnly, cacheKiB: options.readerCacheKiB)
        connection.leaveLogOnClose()
        return connection
    }

    /// Opens the first reader of a database that is not to be written, and determines how it can be read.
    mutating func openFirstReader() throws(SQLiteError) -> Connection {
        do {
            let hadLog = ["-wal", "-shm"].contains { Self.size(of: path + $0) != nil }
            let connection = try openValidatedReader()
            hasMadeLog = isWriteAheadLogged && !hadLog
            return connection
        } catch {
            // If there is no file at all, the first error is the best one.
            guard [.cannotOpen, .readOnly].contains(error.code), Self.size(of: path) != nil else { throw error }
        }
        if Self.size(of: path + "-wal") ?? 0 == 0, Self.size(of: path + "-journal") ?? 0 == 0 {
            isImmutable = true
            return try openValidatedReader()
        }
        try copyToTemporaryFolder()
        do {
            // This recovers the log or the journal. That is a write, and readers need not do it afterwards.
            try Connection(path: path, access: .readWrite).validate()
            return try openValidatedReader()
        } catch {
            removeTemporaryFolder()
            throw error
        }
    }

    private mutating func openValidatedReader() throws(SQLiteError) -> Connection {
        let connection = try openReader()
        try connection.validate()
        isWriteAheadLogged = try connection.pragma("journal_mode")?.lowercased() == "wal"
        return connection
    }

    private mutating func copyToTemporaryFolder() throws(SQLiteError) {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-read-\(UUID().uuidString)")
        temporaryFolder = folder.path
        do {
            let files = FileManager.default
            let ownerOnly: [FileAttributeKey: Any] = [.posixPermissions: 0o700]
            try files.createDirectory(at: folder, withIntermediateDirectories: true, attributes: ownerOnly)
            for suffix in ["", "-wal", "-journal"] where Self.size(of: path + suffix) != nil {
                let copy = folder.path + "/copy" + suffix
                try files.copyItem(atPath: path + suffix, toPath: copy)
                try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: copy)
            }
        } catch {
            removeTemporaryFolder()
            let message =
                "cannot be read in place, as its folder may not be written and it has a log, nor copied: \(error)"
            throw SQLiteError(code: .cannotOpen, message: "\(path): \(message)", operation: .open)
        }
        path = folder.path + "/copy"
    }

    /// Removes the files of a log that reading has made, after the readers were closed.
    ///
    /// They stay if another process uses the database, or has written to it meanwhile.
    func removeOwnLog() {
        guard hasMadeLog, Self.size(of: path + "-wal") == 0 else { return }
        // SQLite itself removes them when the last connection that may write is closed, under its locks.
        guard let connection = try? open(access: .readWrite, cacheKiB: 16) else { return }
        try? connection.validate()
        connection.close()
    }

    func removeTemporaryFolder() {
        guard let temporaryFolder else { return }
        // Nothing depends on it any more. If it cannot be removed, the system's own cleaning will do so.
        try? FileManager.default.removeItem(atPath: temporaryFolder)
    }

    // MARK: - Common

    private func open(access: Connection.Access, cacheKiB: Int) throws(SQLiteError) -> Connection {
        var settings = Connection.Options()
        settings.timeout = options.timeout
        settings.statementCacheLimit = options.statementCacheLimit
        settings.functions = options.functions
        settings.aggregates = options.aggregates
        settings.collations = options.collations
        let connection = try Connection(path: path, access: access, isImmutable: isImmutable, options: settings)
        do throws(SQLiteError) {
            try connection.execute(
                """
                PRAGMA cache_size = -\(cacheKiB); PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF;
                PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = \(Int(options.restartPages) * 4096);
                """
            )
            for (name, value) in pragmas where !Self.creationPragmas.contains(name) && !Self.ownPragmas.contains(name) {
                try connection.setPragma(name, value)
            }
        } catch {
            throw connection.openingError(error)
        }
        do throws(SQLiteError) {
            try files?.require(.open)
        } catch {
            // The file at the path may be another database, whose log is not this pool's.
            connection.leaveLogOnClose()
            throw error
        }
        return connection
    }

    private static func size(of path: String) -> Int64? {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : nil
    }
}
