import Foundation
import StrataLocks
import Synchronization

/// One database, shared by any number of threads: a writer connection, and readers that never wait for it.
///
/// In WAL mode, which is the default, a reader sees the last commit before it began, whatever the writer does. Guarantees:
///
/// - **Reads do not queue behind writes.** A reader waits only if ``PoolOptions/maximumReaders`` others are reading.
/// - **Writes are exclusive and fair.** Within the process, threads write in the order in which they came, over all
///   pools of a file. Between processes every transaction begins IMMEDIATE, with jittered back-off, and a waiter goes
///   first.
/// - **No wait is for ever.** Each has a deadline, and its error says how long it took and who was in the way.
/// - **A transaction is all or nothing.** A lease that ends without a commit rolls back. A commit that fails is rolled
///   back. After an I/O error, above all a failed sync, the connection is closed too, because a repeated sync may
///   report success for lost data.
/// - **The log stays bounded.** A thread of the pool copies it into the file beside writers (``LogCopier``), or commits do
///   so, if the user has set `wal_autocheckpoint`. If readers keep a grown log from starting over, writers wait for
///   them. Closing the last pool leaves neither `-wal` nor `-shm`.
///
/// With another `journal_mode`, readers and the writer do wait for each other, within the same deadline.
///
/// A database in memory has a single connection, and reads and writes take turns on it. SQLite's ways to share one
/// between connections (`cache=shared`, the `memdb` file system) have no WAL. With either, on 3.40, a reader beside an
/// open write transaction fails as locked, and so does a writer beside a reader.
///
/// Any thread may call any member. A thread that reads must not start a write in memory, or a second write on a file, inside
/// the first: that throws `misuse`.
package final class ConnectionPool: Sendable {
    /// The place of the pool's database.
    package enum Location: Sendable {
        case file(String)
        /// A private database, which disappears with the pool.
        case memory
    }

    package let location: Location
    package let options: PoolOptions
    /// Whether readers see a snapshot beside the writer, so that ``pinSnapshot(timeout:)`` works.
    package let isWriteAheadLogged: Bool
    /// Whether the database may be written.
    package let isReadOnly: Bool

    let turn: FileTurn
    /// Asks other processes to let this one write; `nil` for a database in memory.
    ///
    /// Only the holder of the turn uses it, which makes it safe to share.
    nonisolated(unsafe) let sign: WaitSign?
    let opening: DatabaseOpening
    let snapshotCount = SnapshotCount()
    /// Copies the log; `nil` if commits do so, or if there is none.
    let copier: LogCopier?
    let readers: ReaderShelf
    let sharing = PinnedSnapshotSharing()
    let others = CommitsOfOthers()
    let traceGeneration = AtomicCell<Int>(0)
    let checkpointNanoseconds = AtomicCell<UInt64>(0)
    /// The last time at which ``lookForFiles()`` has found all files in their places.
    private let lastLookForFiles = AtomicCell<UInt64>(0)
    let state: Locked<State>

    struct State {
        var isClosed = false
        /// The writer; after an I/O error it is `nil` until it is opened again.
        ///
        /// Only the holder of the turn uses it.
        var writer: Connection?
        /// A writer that an I/O error has ended, kept until another connection has opened the log.
        ///
        /// Only the holder of the turn uses it. The log may hold all of a failed commit. A connection that is the first
        /// to open a log takes everything in it for committed. If a connection is open that knows better, the failed
        /// commit is overwritten.
        var brokenWriter: Connection?
        /// Holds the write lock while the writer checkpoints.
        ///
        /// Only the holder of the turn uses it.
        var logGuardian: Connection?
        /// Whether another pool has to remove the files of a log that reading has made.
        var leavesLog = false
        /// The observers of commits, by their owners.
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
    /// - Throws: `cannotOpen` if there is no file or no access to it, `notADatabase` and `corrupt` for a file that
    ///   SQLite cannot read, `misuse` for a pragma that would break the pool.
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
        let commitsCopy = opening.pagesCopiedByCommits != nil
        let isCopied = opening.isWriteAheadLogged && !isReadOnly && !commitsCopy && options.checkpointPages > 0
        copier = isCopied ? LogCopier(opening, turn, snapshotCount, options) : nil
        if isReadOnly { readers.adopt(first) }
    }

    // MARK: - Files that were moved

    /// Refuses to go on if the files of the database were removed or replaced since the pool was opened.
    ///
    /// - Throws: `readOnlyMoved`.
    package func requireFilesInPlace() throws(SQLiteError) { try opening.files?.require(.waitForReader) }

    /// Calls ``requireFilesInPlace()``, unless that was done in the last fifty milliseconds.
    ///
    /// A read takes only a few microseconds.
    func lookForFiles() throws(SQLiteError) {
        guard let files = opening.files else { return }
        let now = BusyWait.now()
        guard now &- lastLookForFiles.load(ordering: .relaxed) > 50_000_000 else { return }
        try files.require(.waitForReader)
        lastLookForFiles.store(now, ordering: .relaxed)
    }

    deinit {
        // Leases and snapshots keep the pool alive, so everything is idle now. The writer closes last, so that it
        // empties the log.
        copier?.stop()
        readers.close()
        sharing.close()
        others.close()
        closeWriter()
        if isReadOnly { removeOwnLog() }
        opening.removeTemporaryFolder()
    }

    /// Closes every connection, and empties the write-ahead log if this was the last one of the file.
    ///
    /// New leases throw `misuse` from now on. The call waits for a write in progress. Connections that are still leased
    /// for reading, and pinned snapshots, close when they are returned. A second call does nothing.
    ///
    /// - Throws: `busy` if a write did not end within `timeout`; the writer then closes when the write ends.
    package func close(timeout: Double? = nil) throws(SQLiteError) {
        state.withLock { $0.isClosed = true }
        copier?.stop()
        readers.close()
        others.close()
        try sharing.turn(timeout: timeout ?? options.timeout) { sharing.close() }
        guard !isReadOnly else { return removeOwnLog() }
        _ = try turn.take(timeout: timeout ?? options.timeout, cancellation: nil)
        defer { turn.giveBack() }
        closeWriter()
    }

    /// Closes a pool that only reads while another one writes to the file: the other one empties and removes the log.
    ///
    /// - Throws: The errors of ``close(timeout:)``.
    package func closeBesideWriter() throws(SQLiteError) {
        state.withLock { $0.leavesLog = true }
        try close()
    }

    private func removeOwnLog() {
        if !state.withLock({ $0.leavesLog }) { opening.removeOwnLog() }
    }

    /// Closes the writer for good.
    ///
    /// Only the holder of the turn may call it.
    func closeWriter() {
        closeLogGuardian()
        let (writer, broken) = state.withLock { state in
            defer { (state.writer, state.brokenWriter) = (nil, nil) }
            return (state.writer, state.brokenWriter)
        }
        var opening = opening
        if let files = opening.files, !files.areThere {
            // The log is copied into its own database, wherever that is now. SQLite does not do so by itself when it
            // closes.
            if files.isLogStranded, let writer { _ = try? Self.copy(writer, .truncate) }
            // The log at the path may be that of another database.
            writer?.leaveLogOnClose()
            broken?.leaveLogOnClose()
        }
        // Another connection that can empty the log takes its place, if the disk permits it.
        let successor = broken == nil ? nil : try? opening.openWriter()
        broken?.close()
        successor?.close()
        writer?.close()
    }

    /// Opens another connection in the writer's place for the next write.
    ///
    /// Only the holder of the turn may call it.
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

    /// The number of times that the database was found changed by other writers, above all other processes.
    ///
    /// It counts all their commits before the call began; several may count as one. It is always 0 in memory and
    /// without a write-ahead log. It costs some nanoseconds, and does not wait.
    package var commitsOfOthers: UInt64 { others.count }

    /// The number of connections that read, or are kept for reading, without pinned ones.
    package var readerCount: Int { readers.connectionCount }

    /// The number of threads that wait for a connection to read with.
    package var waitingReaders: Int { readers.waiterCount }

    /// The number of threads of this process that wait for their turn to write.
    package var waitingWriters: Int { turn.waiterCount }

    // MARK: - Tracing

    /// Reports the statements of every connection, from its next lease on, to `handler`; `nil` stops that.
    ///
    /// Plans are available for statements that are prepared from then on.
    package func setTrace(_ handler: TraceHandler?, detail: TraceDetail = []) {
        state.withLock { state in
            state.trace = handler
            state.traceDetail = detail
        }
        traceGeneration.add(1, ordering: .releasing)
    }

    /// Installs the present trace handler in a connection that is being leased.
    func updateTrace(of connection: Connection) {
        let generation = traceGeneration.load(ordering: .acquiring)
        guard connection.traceGeneration != generation else { return }
        let (handler, detail) = state.withLock { ($0.trace, $0.traceDetail) }
        connection.setTrace(handler, detail: detail)
        connection.traceGeneration = generation
    }

    /// Traps if a statement is still lent, because it would use a connection that belongs to another thread.
    func checkReturned(_ connection: Connection) {
        precondition(
            connection.lentStatementCount == 0,
            "a Statement outlived the lease of its connection; end its scope before that of the lease"
        )
    }
}
