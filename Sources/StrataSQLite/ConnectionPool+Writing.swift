import StrataLocks

/// The writer connection inside a write transaction, which belongs to the caller until the end of the scope.
///
/// It rolls back at the end of the scope unless ``commit()`` has succeeded.
package struct WriteLease: ~Copyable {
    package let connection: Connection
    private let pool: ConnectionPool
    /// The number of rows that the connection has changed before.
    private let changes: Int

    init(connection: Connection, pool: ConnectionPool) {
        self.connection = connection
        self.pool = pool
        changes = connection.totalChangeCount
    }

    deinit {
        pool.endWriting(connection)
    }

    /// Makes the changes durable and visible to others.
    ///
    /// - Parameter beforeNextWriter: Called when the changes are durable, and before another writer of this process
    ///   gets its turn. So data beside the database sees commits in their order. It must not use the pool.
    /// - Throws: The error that kept SQLite from committing. All changes are then rolled back. After an I/O error the
    ///   pool opens a new connection for the next write.
    package consuming func commit(beforeNextWriter: () -> Void = {}) throws(SQLiteError) {
        try pool.commit(connection, hasChanges: connection.totalChangeCount != changes, beforeNextWriter)
    }

    /// Undoes the changes now rather than at the end of the scope.
    package consuming func rollBack() {}

    /// Goes on as if the lease had been asked for without a time-out and a cancellation.
    package borrowing func forgetLimits() {
        connection.setCancellation(nil)
        connection.busyWait.timeout = pool.options.timeout
    }
}

extension WriteLease? {
    /// Commits the lease, which is used up; see ``WriteLease/commit(beforeNextWriter:)``.
    package mutating func commit(_ beforeNextWriter: () -> Void) throws(SQLiteError) {
        guard let lease = take() else {
            throw SQLiteError(code: .misuse, message: "the transaction has ended", operation: .commit)
        }
        try lease.commit(beforeNextWriter: beforeNextWriter)
    }
}

extension ConnectionPool {
    /// Leases the writer connection, inside a transaction that already holds SQLite's write lock.
    ///
    /// - Parameters:
    ///   - timeout: Seconds to wait for other threads and other processes together; ``PoolOptions/timeout`` by default.
    ///   - cancellation: Ends the wait, and the statements of the lease, from another thread.
    /// - Returns: The lease, which rolls back at the end of its scope unless it has committed.
    /// - Throws: `busy` at the deadline, with a ``SQLiteError/wait`` that says whether a thread or a process was in
    ///   the way.
    ///   `interrupt` on cancellation, `readOnly` if the pool was opened so, and `misuse` inside another write of this
    ///   thread or after ``close(timeout:)``.
    package func writer(
        timeout: Double? = nil,
        cancellation: Cancellation? = nil
    ) throws(SQLiteError) -> WriteLease {
        guard !isReadOnly else {
            throw SQLiteError(code: .readOnly, message: "the database is open for reading only", operation: .begin)
        }
        if cancellation?.isCancelled == true { throw .cancelled(.waitForWriter) }
        let timeout = timeout ?? options.timeout
        var waited = try turn.take(timeout: timeout, cancellation: cancellation)
        let lease = WriteLease(connection: try writerConnection(), pool: self)
        let connection = lease.connection
        updateTrace(of: connection)
        if let cancellation { connection.setCancellation(cancellation) }
        if let sign { waited += sign.deferToOthers(atMost: timeout - waited, cancellation) }
        connection.busyWait.timeout = max(timeout - waited, 0)
        do {
            _ = connection.busyWait.takeWaited()
            try beginImmediate(connection)
            connection.leaseWait = waited + connection.busyWait.takeWaited()
        } catch {
            var error = error
            error.operation = .begin
            // The error's wait includes the waits for other threads, and for processes that went first.
            error.wait?.seconds += waited
            throw error
        }
        // This check needs the lock: nothing may be written to a file that can no longer be opened by its path.
        try opening.files?.require(.begin)
        return lease
    }

    private func beginImmediate(_ connection: Connection) throws(SQLiteError) {
        guard let sign else { return try connection.run(.beginImmediate) }
        connection.busyWait.sign = sign
        defer {
            connection.busyWait.sign = nil
            sign.takeDown()
        }
        try connection.run(.beginImmediate)
    }

    /// Runs `body` inside a write transaction: commits if it returns, rolls back if it throws.
    ///
    /// See ``writer(timeout:cancellation:)``.
    package func write<R>(
        timeout: Double? = nil,
        cancellation: Cancellation? = nil,
        _ body: (Connection) throws -> R
    ) throws -> R {
        let lease = try writer(timeout: timeout, cancellation: cancellation)
        let result = try body(lease.connection)
        try lease.commit()
        return result
    }

    /// Leases the writer connection without a transaction, for statements that SQLite does not allow in one.
    ///
    /// Examples are `VACUUM` and some pragmas.
    package func writeWithoutTransaction<R>(timeout: Double? = nil, _ body: (Connection) throws -> R) throws -> R {
        guard !isReadOnly else {
            throw SQLiteError(code: .readOnly, message: "the database is open for reading only", operation: .begin)
        }
        let timeout = timeout ?? options.timeout
        let waited = try turn.take(timeout: timeout, cancellation: nil)
        let lease = WriteLease(connection: try writerConnection(), pool: self)
        try opening.files?.require(.begin)
        updateTrace(of: lease.connection)
        lease.connection.busyWait.timeout = max(timeout - waited, 0)
        return try body(lease.connection)
    }

    /// The writer.
    ///
    /// If an I/O error has closed the last one, it is opened again.
    ///
    /// If this throws, it returns the turn.
    private func writerConnection() throws(SQLiteError) -> Connection {
        do {
            try checkOpen(.waitForWriter)
            if let writer = state.withLock({ $0.writer }) { return writer }
            var opening = opening
            let writer = try opening.openWriter()
            let broken = state.withLock { state in
                defer { (state.writer, state.brokenWriter) = (writer, nil) }
                return state.brokenWriter
            }
            broken?.close()
            return writer
        } catch {
            turn.giveBack()
            throw error
        }
    }

    fileprivate func commit(_ connection: Connection, hasChanges: Bool, _ beforeNextWriter: () -> Void)
        throws(SQLiteError)
    {
        checkReturned(connection)
        do {
            try opening.files?.require(.commit)
            let commits = connection.log.commits
            // A commit that changes no row, such as that of a new table, counts as one of another writer. That costs a few
            // reads.
            if hasChanges { others.beginCommit() }
            defer { if hasChanges { others.endCommit(connection.log.commits &- commits) } }
            try connection.run(.commit)
        } catch {
            endTransaction(connection)
            var error = error
            error.operation = .commit
            throw error
        }
        beforeNextWriter()
        noteCommit()
        if let copier { copier.noteCommit(connection.log.pages) } else { checkpointIfDue(connection) }
    }

    fileprivate func endWriting(_ connection: Connection) {
        checkReturned(connection)
        connection.setCancellation(nil)
        endTransaction(connection)
        // A database in memory exists only in its connection.
        if (connection.isBroken || connection.isInTransaction) && !isMemory {
            connection.leaveLogOnClose()
            if connection.isInTransaction { closeWriter() } else { replaceWriter() }
        }
        if state.withLock({ $0.isClosed }) { closeWriter() }
        turn.giveBack()
    }
}
