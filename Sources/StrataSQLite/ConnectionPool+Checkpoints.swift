import CStrataSQLite

extension ConnectionPool {
    /// How far a checkpoint goes.
    package enum CheckpointMode: Sendable {
        /// Copies what no reader is in the way of; waits for nobody.
        case passive
        /// Waits for readers, so that the next write starts the log over.
        case restart
        /// As `restart`, and cuts the log file to no bytes.
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
    /// - Throws: `busy` if writers or readers were in the way until the deadline.
    @discardableResult
    package func checkpoint(_ mode: CheckpointMode, timeout: Double? = nil) throws -> Bool {
        try writeWithoutTransaction(timeout: timeout) { try Self.checkpoint($0, mode) }
    }

    /// Checkpoints after a commit, if the log has grown enough.
    ///
    /// By the holder of the turn.
    ///
    /// The commit is durable in the log already, so a checkpoint that fails takes nothing from it: the log stays, and the
    /// next commit tries again, after an I/O error on a new connection.
    func checkpointIfDue(_ connection: Connection) {
        let pages = connection.log.pages
        // Fewer pages than at the last time: the log has started over.
        if pages < connection.checkpointedPages { connection.checkpointedPages = 0 }
        guard isWriteAheadLogged, opening.checkpointPages > 0,
            pages - connection.checkpointedPages >= opening.checkpointPages
        else { return }
        connection.checkpointedPages = pages
        let isOverdue = pages >= options.restartPages
        connection.busyWait.timeout = Self.restartPatience
        _ = try? Self.checkpoint(connection, isOverdue ? .restart : .passive)
    }

    /// How long a commit waits for readers to leave a log that has grown too long, in seconds.
    private static let restartPatience = 0.05

    private static func checkpoint(_ connection: Connection, _ mode: CheckpointMode) throws(SQLiteError) -> Bool {
        var pagesInLog: Int32 = 0
        var pagesCopied: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(connection.handle, nil, mode.rawValue, &pagesInLog, &pagesCopied)
        guard code == SQLITE_OK else { throw connection.failure(code, .checkpoint, sql: nil) }
        return pagesInLog == pagesCopied
    }
}
