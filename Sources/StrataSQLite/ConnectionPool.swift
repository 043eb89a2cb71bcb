import Foundation
import StrataLocks
import Synchronization

/// One database, shared by any number of threads: a writer connection, and readers that never wait for it.
///
/// In WAL mode, which is the default, a reader sees the last commit before it began, whatever the writer does. Guarantees:
///
/// - **Reads do not queue behind writes.** A reader waits only if ``PoolOptions/maximumReaders`` others are reading.
/// - **Writes are exclusive and fair.** Within the process, threads write in the order they came, over all pools of
///   a file. Between processes every transaction begins IMMEDIATE, with jittered back-off, and who has waited goes first.
/// - **No wait is for ever.** Each has a deadline, and its error says how long it took and who was in the way.
/// - **A transaction is all or nothing.** A lease that ends without a commit rolls back. A commit that fails is rolled back; after an
///   I/O error, a failed sync above all, the connection is closed too, as a repeated sync may claim success for lost data.
/// - **The log stays bounded.** Writers checkpoint after commits, one connection at a time over all processes, and outwait readers
///   that keep a grown log from starting over. Closing the last pool leaves neither `-wal` nor `-shm`.
///
/// With another `journal_mode`, readers and the writer do wait for each other, inside the same deadline.
///
/// A database in memory has a single connection, and reads and writes take turns on it. SQLite's ways to share
/// one between connections (`cache=shared`, the `memdb` file system) know no WAL: with either, on 3.40, a reader beside
/// an open write transaction fails as locked, and so does a writer beside a reader.
///
/// Any thread may call any member. A thread that reads must not start a write in memory, or a second write on a file, inside
/// the first: that throws `misuse`.
package final class ConnectionPool: Sendable {
    /// What the pool is open on.
    package enum Location: Sendable {
        case file(String)
        /// A database of its own, gone with the pool.
        case memory
    }

    package let location: Location
    package let options: PoolOptions
    /// Whether readers see a snapshot beside the writer, so that ``pinSnapshot(timeout:)`` works.
    package let isWriteAheadLogged: Bool
    /// Whether the database may be written.
    package let isReadOnly: Bool

    let turn: FileTurn
    /// Asks other processes to let this one write; `nil` of a database in memory.
    ///
    /// Used by the holder of the turn only, which makes it safe to share.
    nonisolated(unsafe) let sign: WaitSign?
    let opening: DatabaseOpening
    let readers: ReaderShelf
    let sharing = SnapshotSharing()
    let others = CommitsOfOthers()
    let traceGeneration = Atomic<Int>(0)
    let checkpointNanoseconds = Atomic<UInt64>(0)
    /// When ``lookForFiles()`` has found all files in their places.
    private let lastLookForFiles = Atomic<UInt64>(0)
    let state: Locked<State>

    struct State {
        var isClosed = false
        /// The writer, or `nil` until it is opened again after an I/O error; used by the holder of the turn only.
        var writer: Connection?
        /// A writer that an I/O error has ended, kept until another connection is open on the log; used by the holder of the turn only.
        ///
        /// The log may hold the whole of what it could not commit. Who opens a log alone takes all that is in there for committed;
        /// beside a connection that knows better it is overwritten.
        var brokenWriter: Connection?
        /// Holds the write lock while the writer checkpoints; used by the holder of the turn only.
        var logGuardian: Connection?
        /// Whether the files of a log that reading has made are another pool's to remove.
        var leavesLog = false
        var snapshotCount = 0
        /// By those who watch for commits.
        var commitObservers: [ObjectIdentifier: @Sendable () -> Void] = [:]
        var trace: TraceHandler?
        var traceDetail: TraceDetail = []
    }

    var isMemory: Bool {
        if case .memory = location { true } else { false }
    }

    // MARK: - Opening and closing

    /// Opens a database, and makes it if ``PoolOptions/access`` says so.
    ///
    /// - Throws: `cannotOpen` if there is no file or no access to it, `notADatabase` and `corrupt` for a file that SQLite cannot
    ///   read, `misuse` for a pragma that would break the pool.
    package init(_ location: Location, options: PoolOptions = PoolOptions()) throws(SQLiteError) {
        self.location = location
        self.options = options
        let isReadOnly: Bool
        let first: Connection
        var opening: DatabaseOpening
        switch location {
        case .memory:
            opening = try DatabaseOpening(path: ":memory:", options: options)
            first = try opening.openMemory()
            turn = FileTurn()
            sign = nil
            isReadOnly = false
        case .file(let path):
            opening = try DatabaseOpening(path: path, options: options)
            if case .readOnly = options.access { isReadOnly = true } else { isReadOnly = false }
            first = isReadOnly ? try opening.openFirstReader() : try opening.openWriter()
            turn = FileTurn.forFile(at: opening.path)
            sign = isReadOnly ? nil : WaitSign(database: opening.path)
        }
        self.isReadOnly = isReadOnly
        isWriteAheadLogged = opening.isWriteAheadLogged
        readers = ReaderShelf(limit: max(options.maximumReaders, 1))
        state = Locked(State(writer: isReadOnly ? nil : first))
        if case .file = location {
            if opening.isWriteAheadLogged, !opening.isImmutable { try others.open(opening.openWatcher()) }
            // The first read has made the files of the log.
            opening.fixFiles()
        }
        self.opening = opening
        if isReadOnly { readers.adopt(first) }
    }

    // MARK: - Files that were moved

    /// Refuses to go on if the files of the database were removed or replaced since the pool was opened.
    ///
    /// - Throws: `readOnlyMoved`.
    package func requireFilesInPlace() throws(SQLiteError) { try opening.files?.require(.waitForReader) }

    /// As ``requireFilesInPlace()``, if it was not asked for the last fifty milliseconds: a read takes a few microseconds.
    func lookForFiles() throws(SQLiteError) {
        guard let files = opening.files else { return }
        let now = BusyWait.now()
        guard now &- lastLookForFiles.load(ordering: .relaxed) > 50_000_000 else { return }
        try files.require(.waitForReader)
        lastLookForFiles.store(now, ordering: .relaxed)
    }

    deinit {
        // Leases and snapshots keep the pool alive, so everything is idle now.
        // The writer goes last, so that it is the one to empty the log.
        readers.close()
        sharing.close()
        others.close()
        closeWriter()
        if isReadOnly { removeOwnLog() }
        opening.removeTemporaryFolder()
    }

    /// Closes every connection, and empties the write-ahead log if this was the last one of the file.
    ///
    /// New leases throw `misuse` from now on. Waits for a write under way; connections that are still leased for reading, and
    /// pinned snapshots, close when they come back. Idempotent.
    ///
    /// - Throws: `busy` if a write did not end within `timeout`; the writer then closes with it.
    package func close(timeout: Double? = nil) throws(SQLiteError) {
        state.withLock { $0.isClosed = true }
        readers.close()
        others.close()
        try sharing.turn(timeout: timeout ?? options.timeout) { sharing.close() }
        guard !isReadOnly else { return removeOwnLog() }
        _ = try turn.take(timeout: timeout ?? options.timeout, cancellation: nil)
        defer { turn.giveBack() }
        closeWriter()
    }

    /// Closes a pool that only reads while another one writes to the file: the log is the other one's to empty and to remove.
    ///
    /// - Throws: As ``close(timeout:)``.
    package func closeBesideWriter() throws(SQLiteError) {
        state.withLock { $0.leavesLog = true }
        try close()
    }

    private func removeOwnLog() {
        if !state.withLock({ $0.leavesLog }) { opening.removeOwnLog() }
    }

    /// Closes the writer for good.
    ///
    /// By the holder of the turn.
    func closeWriter() {
        closeLogGuardian()
        let (writer, broken) = state.withLock { state in
            defer { (state.writer, state.brokenWriter) = (nil, nil) }
            return (state.writer, state.brokenWriter)
        }
        var opening = opening
        if let files = opening.files, !files.areThere {
            // Into the database that it belongs to, wherever that is now; SQLite does not do so by itself when it closes.
            if files.isLogStranded, let writer { _ = try? Self.checkpoint(writer, .truncate) }
            // The log at the path may be that of another database.
            writer?.leaveLogOnClose()
            broken?.leaveLogOnClose()
        }
        // In its place one that can empty the log, if the disk lets it.
        let successor = broken == nil ? nil : try? opening.openWriter()
        broken?.close()
        successor?.close()
        writer?.close()
    }

    /// Lets another connection take the writer's place for the next write.
    ///
    /// By the holder of the turn.
    func replaceWriter() {
        closeLogGuardian()
        let old = state.withLock { state in
            defer { (state.brokenWriter, state.writer) = (state.writer, nil) }
            return state.brokenWriter
        }
        old?.close()
    }

    func checkOpen(_ operation: SQLiteError.Operation) throws(SQLiteError) {
        guard state.withLock({ $0.isClosed }) else { return }
        throw .closed(operation)
    }

    /// How often the database was found changed by others than this pool, other processes above all.
    ///
    /// What they had committed when the call begins is counted, several commits perhaps as one. Always 0 in memory and without a
    /// write-ahead log. Costs some nanoseconds, and waits for nothing.
    package var commitsOfOthers: UInt64 { others.count }

    /// How many connections read, or are kept for reading, pinned ones not counted.
    package var readerCount: Int { readers.connectionCount }

    /// How many threads wait for a connection to read with.
    package var waitingReaders: Int { readers.waiterCount }

    /// How many threads of this process wait for their turn to write.
    package var waitingWriters: Int { turn.waiterCount }

    // MARK: - Tracing

    /// Reports the statements of every connection, from its next lease on, to `handler`; `nil` stops that.
    ///
    /// Plans are known of statements that are prepared from then on.
    package func setTrace(_ handler: TraceHandler?, detail: TraceDetail = []) {
        state.withLock { state in
            state.trace = handler
            state.traceDetail = detail
        }
        traceGeneration.add(1, ordering: .releasing)
    }

    /// Brings the trace handler of a connection that is being leased up to date.
    func updateTrace(of connection: Connection) {
        let generation = traceGeneration.load(ordering: .acquiring)
        guard connection.traceGeneration != generation else { return }
        let (handler, detail) = state.withLock { ($0.trace, $0.traceDetail) }
        connection.setTrace(handler, detail: detail)
        connection.traceGeneration = generation
    }

    /// Traps if a statement is still lent out, since it would go on using a connection that belongs to another thread.
    func checkReturned(_ connection: Connection) {
        precondition(
            connection.lentStatementCount == 0,
            "a Statement outlived the lease of its connection; end its scope before that of the lease"
        )
    }
}
