import CStrataSQLite
import Foundation
import StrataLocks

/// One connection to a database, with its prepared statements.
///
/// A connection is confined to the owner that has leased it from the pool or made it: one thread at a time uses it, on
/// a `NOMUTEX` handle. Statements are lent by ``statement(_:)``, and must be returned before the connection.
package final class Connection: @unchecked Sendable {
    // @unchecked Sendable: it has one owner at a time. The pool passes it between threads under a lock.

    /// The permitted access to the file.
    package enum Access: Sendable {
        /// The connection reads and writes, and makes the file if there is none.
        case readWriteCreate
        case readWrite
        case readOnly
    }

    /// The settings of every connection.
    package struct Options: Sendable {
        /// The longest wait for locks of other connections, in seconds.
        package var timeout: Double = 60
        /// The number of idle statements that are kept.
        package var statementCacheLimit = 128
        package var functions: [ScalarFunction] = []
        package var aggregates: [AggregateFunction] = []
        package var collations: [Collation] = []

        package init() {}
    }

    /// The path as opened; `:memory:` for a private database in memory.
    package let path: String
    /// Whether an I/O error has occurred.
    ///
    /// The connection's knowledge of the file may be wrong then, so the pool closes it.
    package private(set) var isBroken = false

    @usableFromInline let handle: OpaquePointer
    let busyWait: BusyWait
    /// The seconds that the present owner has waited for the connection.
    // Unchecked, like the properties below: each read uses all of them. One thread at a time uses the connection, and no
    // access lasts while other code runs.
    @exclusivity(unchecked) package var leaseWait: Double = 0
    /// The number of pages in the write-ahead log after the last commit of this connection.
    let log = LogSize()
    /// Decides when to maintain the log.
    var upkeep = LogUpkeep()
    /// The trace handler of the pool that is installed, by its number.
    @exclusivity(unchecked) var traceGeneration = 0
    /// A note of the pool's user about the contents.
    @exclusivity(unchecked) package var note = ContentsNote()

    /// Whether the schema may have changed since ``takeSchemaNews()`` was last called.
    @exclusivity(unchecked) private var hasSchemaNews = true

    @exclusivity(unchecked) private var statements: StatementCache
    private var tracer: Tracer?
    @exclusivity(unchecked) private var cancellation: Cancellation?
    private var isOpen = true

    // MARK: - Opening

    /// Opens a database.
    ///
    /// - Parameters:
    ///   - path: A path in the file system, or `:memory:`.
    ///   - access: The permitted access to the file.
    ///   - isImmutable: Promises that no process changes the file: no locks, no side files. If untrue, answers are
    ///     wrong.
    ///   - options: The settings of the connection.
    /// - Throws: `cannotOpen` if there is no such file, or if it may not be read. The contents of the file are not
    ///   checked yet.
    package init(
        path: String,
        access: Access,
        isImmutable: Bool = false,
        options: Options = Options()
    ) throws(SQLiteError) {
        try Self.prepareLibrary()
        var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        switch access {
        case .readWriteCreate: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        case .readWrite: flags |= SQLITE_OPEN_READWRITE
        case .readOnly: flags |= SQLITE_OPEN_READONLY
        }
        var name = path == ":memory:" || path.hasPrefix("/") ? path : "./" + path
        if isImmutable {
            flags |= SQLITE_OPEN_URI
            name = "file:" + Self.escapedForURI(name) + "?immutable=1"
        }
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(name, &opened, flags, nil)
        guard code == SQLITE_OK, let opened else {
            let message = opened.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
            sqlite3_close_v2(opened)
            throw SQLiteError(code: ResultCode(rawValue: code), message: "\(message): \(path)", operation: .open)
        }
        self.path = path
        handle = opened
        busyWait = BusyWait(timeout: options.timeout)
        statements = StatementCache(limit: options.statementCacheLimit)

        busyWait.install(on: handle)
        log.install(on: handle)
        // The schema of a file may come from anywhere, so only its tables, indexes and harmless triggers are trusted.
        // And if a column name in double quotes is misspelt, it is an error rather than a text.
        strata_sqlite3_set_switch(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        strata_sqlite3_set_switch(handle, SQLITE_DBCONFIG_DEFENSIVE, 1)
        strata_sqlite3_set_switch(handle, SQLITE_DBCONFIG_DQS_DML, 0)
        for function in options.functions { try register(function) }
        for function in options.aggregates { try register(function) }
        for collation in options.collations { try register(collation) }
        let valueTable = ValueTable.register(on: handle)
        guard valueTable == SQLITE_OK else { throw failure(valueTable, .configure, sql: nil) }
    }

    deinit {
        close()
    }

    /// Finalizes the idle statements and closes.
    ///
    /// A second call does nothing.
    package func close() {
        guard isOpen else { return }
        isOpen = false
        statements.removeAll()
        // The handlers are removed first: if a statement is still lent, SQLite keeps the handle beyond this object.
        sqlite3_busy_handler(handle, nil, nil)
        sqlite3_wal_hook(handle, nil, nil)
        Cancellation.uninstall(from: handle)
        Tracer.uninstall(from: handle)
        sqlite3_close_v2(handle)
    }

    /// Keeps SQLite from checkpointing if this connection is the last one of the file to close.
    func leaveLogOnClose() {
        strata_sqlite3_set_switch(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    }

    // MARK: - Statements

    /// Lends the statement with this text, prepared now or taken from the cache.
    ///
    /// - Throws: The error of the SQL compiler; `misuse` if the text contains more than one statement, or none.
    package func statement(_ sql: SQL) throws(SQLiteError) -> Statement {
        // Others may commit before the statement begins.
        Schedule.point()
        if let cached = statements.lend(sql) { return Statement(prepared: cached, connection: self) }
        var prepared: OpaquePointer?
        var text = sql.text
        var isSingle = true
        let code = text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                var tail: UnsafePointer<CChar>?
                let persistent = UInt32(SQLITE_PREPARE_PERSISTENT)
                let count = Int32(truncatingIfNeeded: characters.count)
                let code = sqlite3_prepare_v3(handle, characters.baseAddress, count, persistent, &prepared, &tail)
                if let tail, let start = characters.baseAddress {
                    isSingle = characters[(tail - start)...].allSatisfy { $0 == 32 || (9...13).contains($0) }
                }
                return code
            }
        }
        guard code == SQLITE_OK else { throw failure(code, .prepare, sql: sql.text) }
        guard let prepared, isSingle else {
            sqlite3_finalize(prepared)
            let message = "expected exactly one statement"
            throw SQLiteError(code: .misuse, message: message, sql: sql.text, operation: .prepare)
        }
        tracer?.explain(sql.text, on: self)
        let entry = PreparedStatement(handle: prepared, sql: sql)
        statements.lendNew(entry)
        return Statement(prepared: entry, connection: self)
    }

    /// Runs one statement without parameters, through the cache.
    package func run(_ sql: SQL) throws(SQLiteError) {
        try statement(sql).run()
    }

    /// Runs a script: any number of statements, which are not cached.
    ///
    /// Rows are ignored.
    package func execute(_ script: String) throws(SQLiteError) {
        let code = sqlite3_exec(handle, script, nil, nil, nil)
        guard code == SQLITE_OK else { throw failure(code, .step, sql: script) }
    }

    /// Returns whether the schema may have changed since the last call; the first call always returns true.
    ///
    /// This is known as soon as a statement is returned that SQLite had to prepare anew.
    package func takeSchemaNews() -> Bool {
        defer { hasSchemaNews = false }
        return hasSchemaNews
    }

    func takeBack(_ entry: PreparedStatement) {
        if sqlite3_stmt_status(entry.handle, SQLITE_STMTSTATUS_REPREPARE, 1) > 0 { hasSchemaNews = true }
        sqlite3_reset(entry.handle)
        sqlite3_clear_bindings(entry.handle)
        entry.scratchUsed = 0
        statements.takeBack(entry)
    }

    /// The number of statements that are lent.
    package var lentStatementCount: Int { statements.lent }
    /// The number of statements in the cache.
    package var cachedStatementCount: Int { statements.count }

    // MARK: - State

    /// Whether a transaction is open.
    package var isInTransaction: Bool {
        sqlite3_get_autocommit(handle) == 0
    }

    /// The number of rows that the last INSERT, UPDATE or DELETE changed itself, without its triggers.
    package var changeCount: Int {
        Int(sqlite3_changes64(handle))
    }

    /// The number of rows that all statements of the connection have changed.
    var totalChangeCount: Int {
        Int(sqlite3_total_changes64(handle))
    }

    package var lastInsertedKey: Int64 {
        sqlite3_last_insert_rowid(handle)
    }

    // MARK: - Extensions of SQL

    package func register(_ function: ScalarFunction) throws(SQLiteError) {
        let code = function.register(on: handle)
        guard code == SQLITE_OK else { throw failure(code, .configure, sql: nil) }
    }

    package func register(_ function: AggregateFunction) throws(SQLiteError) {
        let code = function.register(on: handle)
        guard code == SQLITE_OK else { throw failure(code, .configure, sql: nil) }
    }

    package func register(_ collation: Collation) throws(SQLiteError) {
        let code = collation.register(on: handle)
        guard code == SQLITE_OK else { throw failure(code, .configure, sql: nil) }
    }

    /// Reports every statement from now on to `handler`; `nil` stops that, and then tracing costs nothing.
    package func setTrace(_ handler: TraceHandler?, detail: TraceDetail = []) {
        guard let handler else {
            Tracer.uninstall(from: handle)
            tracer = nil
            return
        }
        let tracer = Tracer(detail: detail, handler: handler)
        tracer.install(on: handle)
        self.tracer = tracer
    }

    /// Runs `body`, whose statements `cancellation` can stop; afterwards nothing can stop statements.
    package func cancellable<R>(by cancellation: Cancellation?, _ body: () throws -> R) rethrows -> R {
        setCancellation(cancellation)
        defer { setCancellation(nil) }
        return try body()
    }

    /// Lets `cancellation` stop the statements of this connection; `nil` ends that.
    func setCancellation(_ cancellation: Cancellation?) {
        guard let cancellation else {
            if self.cancellation != nil {
                Cancellation.uninstall(from: handle)
                busyWait.cancellation = nil
                self.cancellation = nil
            }
            return
        }
        self.cancellation = cancellation
        busyWait.cancellation = cancellation
        cancellation.install(on: handle)
    }

    // MARK: - Errors

    /// The error for a result code, with SQLite's message about it.
    func failure(_ code: Int32, _ operation: SQLiteError.Operation, sql: String?) -> SQLiteError {
        // The connection remembers more than some functions return, but only of the last call that failed.
        let remembered = sqlite3_extended_errcode(handle)
        let extended = ResultCode(rawValue: remembered & 0xFF == code & 0xFF ? remembered : code)
        if extended.primary == .inputOutput { isBroken = true }
        if extended.primary == .busy {
            let waited = busyWait.takeWaited()
            if busyWait.cancellation?.isCancelled == true { return .cancelled(operation) }
            let holder = path == ":memory:" ? nil : LockHolder.writing(to: path)
            let text = SQLiteError.timedOut(operation, after: waited, blocker: .otherConnection, holder: holder)
            return SQLiteError(
                code: extended,
                message: "\(String(cString: sqlite3_errmsg(handle))): \(text.message)",
                sql: sql,
                operation: operation,
                wait: text.wait
            )
        }
        let isKnown = remembered & 0xFF == code & 0xFF
        let message = String(cString: isKnown ? sqlite3_errmsg(handle) : sqlite3_errstr(code))
        return SQLiteError(code: extended, message: message, sql: sql, operation: operation)
    }

    // MARK: - The library

    /// The oldest SQLite with the SQL that the stores need (RETURNING).
    private static let oldestVersion: Int32 = 3_035_000

    /// The version of the SQLite in use, such as `3.40.1`.
    package static var libraryVersion: String {
        String(cString: sqlite3_libversion())
    }

    private static let isLibraryPrepared: Bool = {
        _ = strata_sqlite3_disable_memory_statistics()
        return sqlite3_threadsafe() != 0 && sqlite3_libversion_number() >= oldestVersion
    }()

    private static func prepareLibrary() throws(SQLiteError) {
        guard !isLibraryPrepared else { return }
        let message = "SQLite \(libraryVersion) will not do: 3.35 or newer, built for threads, is needed"
        throw SQLiteError(code: .error, message: message, operation: .open)
    }

    private static func escapedForURI(_ path: String) -> String {
        path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed.subtracting(["%", "?", "#"])) ?? path
    }
}

/// A note of the pool's user about the contents of the database, as one connection sees them.
///
/// The pool only keeps it with the connection, and does not read it.
package struct ContentsNote {
    /// The version of the schema at the last check of the contents; -1 for none.
    package var schemaVersion: Int64 = -1
    /// The number of different contents that were known then.
    package var generation: Int64 = 0
    /// The number that is added to the versions of rows.
    package var versionOffset: Int64 = 0
}

/// The size of the write-ahead log, as SQLite reports it after each commit.
final class LogSize {
    private(set) var pages: Int32 = 0
    /// The number of commits of this connection that have changed the database.
    private(set) var commits: UInt32 = 0

    /// Replaces SQLite's automatic checkpoints.
    ///
    /// The connection keeps `self` alive until it is closed.
    func install(on handle: OpaquePointer) {
        sqlite3_wal_hook(
            handle,
            { context, _, _, pages in
                if let context { Unmanaged<LogSize>.fromOpaque(context).takeUnretainedValue().noteCommit(pages) }
                return SQLITE_OK
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private func noteCommit(_ pages: Int32) {
        self.pages = pages
        commits &+= 1
    }
}
