import CStrataSQLite
import Foundation
import StrataLocks

// A checkpoint copies the write-ahead log into the file. SQLite 3.7.0 to 3.51.2 can damage the file if the log starts
// over while a checkpoint begins: it reads the length of the old log, and then takes the new one for a log of that
// length of which nothing is copied. That takes two processes that checkpoint and one that commits. So the log must not
// start over during a checkpoint. A separate connection sees to that, because a transaction cannot checkpoint. Here that
// connection has SQLite's write lock, and no process commits meanwhile. For a `LogCopier` it reads.

extension ConnectionPool {
    /// The extent of a checkpoint.
    package enum CheckpointMode: Sendable {
        /// The checkpoint copies as much of the log as readers allow, without waiting for them.
        case passive
        /// The checkpoint waits for readers, so that the next write starts the log over.
        case restart
        /// The checkpoint does the same as `restart`, and truncates the log file to no bytes.
        case truncate

        var rawValue: Int32 {
            switch self {
            case .passive: SQLITE_CHECKPOINT_PASSIVE
            case .restart: SQLITE_CHECKPOINT_RESTART
            case .truncate: SQLITE_CHECKPOINT_TRUNCATE
            }
        }
    }

    /// Copies the write-ahead log into the database file.
    ///
    /// - Returns: Whether all of the log was copied.
    /// - Throws: `busy` if writers or readers prevented it until the deadline.
    @discardableResult
    package func checkpoint(_ mode: CheckpointMode, timeout: Double? = nil) throws -> Bool {
        try writeWithoutTransaction(timeout: timeout) { connection in
            // Without a log there is nothing to copy.
            guard isWriteAheadLogged else { return true }
            guard let copier else { return try checkpoint(mode, connection) }
            return try copier.paused { try checkpoint(mode, connection) }
        }
    }

    private func checkpoint(_ mode: CheckpointMode, _ connection: Connection) throws(SQLiteError) -> Bool {
        let isComplete = try copyLog(connection, timeout: connection.busyWait.timeout, waitsForCopies: true)
        guard mode != .passive else { return isComplete }
        return try Self.retrying(for: connection.busyWait.timeout) { () throws(SQLiteError) in
            try Self.copy(connection, mode).isComplete
        }
    }

    /// Calls `copy` again while another process copies, which SQLite does not wait for.
    private static func retrying(
        for seconds: Double,
        _ copy: () throws(SQLiteError) -> Bool
    ) throws(SQLiteError) -> Bool {
        let start = BusyWait.now()
        while true {
            do throws(SQLiteError) {
                return try copy()
            } catch {
                guard error.code == .busy, Double(BusyWait.now() &- start) / 1e9 < seconds else { throw error }
                Schedule.sleep(microseconds: .random(in: 1_000...2_000))
            }
        }
    }

    /// Copies the log and truncates its file to no bytes, if no reader or writer prevents it.
    ///
    /// It is for data that is already committed. A reader in another process may keep the log, and nothing is lost by
    /// that.
    package func emptyLogIfUnread() { _ = try? checkpoint(.truncate, timeout: Self.copyPatience) }

    /// Checkpoints after a commit, if the user has asked for that, and the log has grown enough.
    ///
    /// Only the holder of the turn may call it. The commit is already durable in the log, so a failed checkpoint does
    /// it no harm: the log stays, and the next commit tries again. After an I/O error, it does so on a new connection.
    func checkpointIfDue(_ connection: Connection) {
        let pages = connection.log.pages
        guard isWriteAheadLogged, let step = opening.pagesCopiedByCommits, step > 0,
            connection.upkeep.isCopyDue(pages, step: step)
        else { return }
        FaultPoint.checkpointBegan.pass()
        defer { FaultPoint.checkpointEnded.pass() }
        let start = BusyWait.now()
        defer { checkpointNanoseconds.add(BusyWait.now() &- start, ordering: .relaxed) }
        // The process that is writing at this moment will checkpoint, or this connection will after its next commit.
        let copied = try? copyLog(connection, timeout: Self.copyPatience, waitsForCopies: false)
        guard copied != nil else { return }
        connection.upkeep.noteCopy(pages)
        let limit = options.restartPages
        let patience = connection.upkeep.restartPatience(pages, limit: limit, timeout: options.timeout)
        guard let patience, snapshotCount.value == 0 else { return }
        connection.busyWait.timeout = patience
        _ = try? Self.copy(connection, .restart)
    }

    /// Returns the time that copies of the log have taken since the last call, in nanoseconds.
    ///
    /// Any thread may call it. If two do so at the same time, one gets the time.
    package func takeCheckpointTime() -> Int64 {
        if let copier { return copier.takeTime() }
        guard checkpointNanoseconds.load(ordering: .relaxed) > 0 else { return 0 }
        return Int64(checkpointNanoseconds.exchange(0, ordering: .relaxed))
    }

    /// Returns the first error since the last call that has kept the log from being copied beside writers.
    ///
    /// Any thread may call it.
    package func takeCheckpointFailure() -> SQLiteError? { copier?.takeFailure() }

    /// The longest time that a commit waits for the write lock of another process, in seconds.
    private static let copyPatience = 0.02

    /// Copies as much of the log as readers allow, while no connection can write.
    ///
    /// If `waitsForCopies`, then it waits until other processes do not copy.
    private func copyLog(
        _ connection: Connection,
        timeout: Double,
        waitsForCopies: Bool
    ) throws(SQLiteError) -> Bool {
        let guardian = try logGuardian()
        defer { if guardian.isBroken || guardian.isInTransaction { closeLogGuardian() } }
        guardian.busyWait.timeout = timeout
        return try Self.retrying(for: waitsForCopies ? timeout : 0) { () throws(SQLiteError) in
            try guardian.run(.beginImmediate)
            // While this call waits to try again, other processes may write.
            defer { endTransaction(guardian) }
            return try Self.copy(connection, .passive).isComplete
        }
    }

    /// The result of a copy.
    struct CopiedPages {
        let pagesInLog: Int32
        /// The pages that are in the file, by this copy and earlier ones.
        let pagesCopied: Int32

        /// Whether all of the log is in the file.
        var isComplete: Bool { pagesInLog == pagesCopied }
    }

    /// Copies the log, while another connection keeps it from starting over.
    static func copy(_ connection: Connection, _ mode: CheckpointMode) throws(SQLiteError) -> CopiedPages {
        var pagesInLog: Int32 = 0
        var pagesCopied: Int32 = 0
        // A checkpoint that gets no write lock would continue as a passive one.
        if mode != .passive { connection.busyWait.interrupted = connection.handle }
        defer { connection.busyWait.interrupted = nil }
        var code = sqlite3_wal_checkpoint_v2(connection.handle, nil, mode.rawValue, &pagesInLog, &pagesCopied)
        if code == SQLITE_INTERRUPT { code = SQLITE_BUSY }
        guard code == SQLITE_OK else { throw connection.failure(code, .checkpoint, sql: nil) }
        return CopiedPages(pagesInLog: pagesInLog, pagesCopied: pagesCopied)
    }

    // MARK: - The guardian

    /// The connection that keeps others from writing, opened when it is first needed.
    ///
    /// Only the holder of the turn may call it.
    private func logGuardian() throws(SQLiteError) -> Connection {
        if let known = state.withLock({ $0.logGuardian }) { return known }
        let guardian = try opening.openLogGuardian()
        state.withLock { $0.logGuardian = guardian }
        return guardian
    }

    /// Closes the guardian.
    ///
    /// Only the holder of the turn may call it, or any caller once the pool is idle.
    func closeLogGuardian() {
        let guardian = state.withLock { state in
            defer { state.logGuardian = nil }
            return state.logGuardian
        }
        guardian?.close()
    }
}
