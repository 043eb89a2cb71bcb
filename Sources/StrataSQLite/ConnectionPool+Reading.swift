import StrataLocks

/// A connection for reading, which belongs to the caller until the end of the scope.
package struct ReadLease: ~Copyable {
    package let connection: Connection
    private let pool: ConnectionPool

    init(connection: Connection, pool: ConnectionPool) {
        self.connection = connection
        self.pool = pool
    }

    deinit {
        pool.endReading(connection)
    }
}

extension ConnectionPool {
    /// Leases a connection for reading.
    ///
    /// - Parameters:
    ///   - isSnapshot: Opens a read transaction, so that all statements of the lease see the same commit.
    ///   - timeout: Seconds to wait for a free connection and for locks; ``PoolOptions/timeout`` by default.
    ///   - cancellation: Ends the wait, and the statements of the lease, from another thread.
    /// - Returns: The lease, which gives the connection back at the end of its scope.
    /// - Throws: `busy` at the deadline, `interrupt` on cancellation, `misuse` after ``close(timeout:)``.
    package func reader(
        isSnapshot: Bool = false,
        timeout: Double? = nil,
        cancellation: Cancellation? = nil
    ) throws(SQLiteError) -> ReadLease {
        if cancellation?.isCancelled == true { throw .cancelled(.waitForReader) }
        let timeout = timeout ?? options.timeout
        let connection: Connection
        if isMemory {
            let waited = try turn.take(timeout: timeout, cancellation: cancellation)
            guard let writer = state.withLock({ $0.writer }) else {
                turn.giveBack()
                throw .closed(.waitForReader)
            }
            connection = writer
            connection.leaseWait = waited
        } else {
            connection = try fileReader(timeout: timeout, cancellation: cancellation)
        }
        updateTrace(of: connection)
        connection.busyWait.timeout = timeout
        if let cancellation { connection.setCancellation(cancellation) }
        // From here on the lease returns the connection, even if BEGIN fails.
        let lease = ReadLease(connection: connection, pool: self)
        try lookForFiles()
        if isSnapshot { try connection.run(.begin) }
        return lease
    }

    /// Runs `body` with a connection for reading.
    ///
    /// See ``reader(isSnapshot:timeout:cancellation:)``.
    package func read<R>(
        isSnapshot: Bool = false,
        timeout: Double? = nil,
        cancellation: Cancellation? = nil,
        _ body: (Connection) throws -> R
    ) throws -> R {
        let lease = try reader(isSnapshot: isSnapshot, timeout: timeout, cancellation: cancellation)
        return try body(lease.connection)
    }

    private func fileReader(timeout: Double, cancellation: Cancellation?) throws(SQLiteError) -> Connection {
        let (grant, waited) = try readers.take(timeout: timeout, cancellation: cancellation)
        switch grant {
        case .idle(let connection):
            connection.leaseWait = waited
            return connection
        case .mayOpen:
            do {
                let connection = try opening.openReader()
                connection.leaseWait = waited
                return connection
            } catch {
                readers.discard(nil)
                throw error
            }
        }
    }

    fileprivate func endReading(_ connection: Connection) {
        checkReturned(connection)
        connection.setCancellation(nil)
        endTransaction(connection)
        if isMemory {
            turn.giveBack()
            return
        }
        if connection.isBroken || connection.isInTransaction {
            readers.discard(connection)
        } else {
            readers.putBack(connection)
        }
    }

    /// Ends the transaction of a lease, whatever its state is.
    ///
    /// Read transactions have nothing to lose.
    func endTransaction(_ connection: Connection) {
        guard connection.isInTransaction else { return }
        // If the rollback fails, the transaction stays open. The caller checks that next.
        try? connection.run(.rollback)
    }
}
