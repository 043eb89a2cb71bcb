import StrataLocks
import Synchronization

/// One version of the database, readable for as long as it is held, whatever others write, delete and checkpoint.
///
/// It is a read transaction held open on a separate connection, which does not count as a reader, so that a pin blocks
/// no other read. While it is held, the write-ahead log cannot start over and grows with every write.
///
/// If a read fails because of the disk or for lack of memory, SQLite ends the transaction, and with it the version.
/// From then on every read throws ``ResultCode/abortRollback``, because the connection would answer from the newest
/// version.
///
/// Any thread may call any member; reads take turns in the order of asking.
package final class PinnedSnapshot: Sendable {
    private let connection: Connection
    private let pool: ConnectionPool
    private let turn = FairSemaphore(permits: 1)
    private let lost = AtomicCell(false)

    fileprivate init(connection: Connection, pool: ConnectionPool) {
        self.connection = connection
        self.pool = pool
    }

    deinit {
        pool.unpin(connection)
    }

    /// Whether an error has ended the version.
    package var isLost: Bool { lost.load(ordering: .acquiring) }

    /// Leases the connection of the snapshot.
    ///
    /// - Throws: `busy` if another thread reads from this snapshot until the deadline, `interrupt` on cancellation,
    ///   `abortRollback` once the version is lost.
    package func reader(timeout: Double? = nil, cancellation: Cancellation? = nil) throws(SQLiteError)
        -> PinnedSnapshotLease
    {
        if cancellation?.isCancelled == true { throw .cancelled(.waitForReader) }
        switch turn.acquire(timeout: timeout ?? pool.options.timeout, cancellation: cancellation) {
        case .acquired: break
        case .timedOut(let waited): throw .timedOut(.waitForReader, after: waited, blocker: .otherThread)
        case .cancelled: throw .cancelled(.waitForReader)
        }
        guard !isLost else {
            turn.release()
            let message = "the version was lost to an error of an earlier read"
            throw SQLiteError(code: .abortRollback, message: message, operation: .begin)
        }
        pool.updateTrace(of: connection)
        if let cancellation { connection.setCancellation(cancellation) }
        return PinnedSnapshotLease(connection: connection, snapshot: self)
    }

    /// Runs `body` on the connection of the snapshot.
    ///
    /// See ``reader(timeout:cancellation:)``.
    package func read<R>(
        timeout: Double? = nil,
        cancellation: Cancellation? = nil,
        _ body: (Connection) throws -> R
    ) throws -> R {
        let lease = try reader(timeout: timeout, cancellation: cancellation)
        return try body(lease.connection)
    }

    fileprivate func endReading() {
        pool.checkReturned(connection)
        connection.setCancellation(nil)
        // This comes before the next caller may read.
        if !connection.isInTransaction { lost.store(true, ordering: .releasing) }
        turn.release()
    }
}

/// The connection of a ``PinnedSnapshot``, which belongs to the caller until the end of the scope.
///
/// The caller must not end the transaction.
package struct PinnedSnapshotLease: ~Copyable {
    package let connection: Connection
    private let snapshot: PinnedSnapshot

    init(connection: Connection, snapshot: PinnedSnapshot) {
        self.connection = connection
        self.snapshot = snapshot
    }

    deinit {
        snapshot.endReading()
    }
}

extension ConnectionPool {
    /// Pins the present version of the database.
    ///
    /// - Throws: `misuse` if the database cannot have one (in memory, or not in WAL mode, in which a pin would block
    ///   every writer); `full` if ``PoolOptions/maximumSnapshots`` are held already.
    package func pinSnapshot(timeout: Double? = nil) throws(SQLiteError) -> PinnedSnapshot {
        guard isWriteAheadLogged else {
            let message = "only a file in WAL mode can keep a version for its readers"
            throw SQLiteError(code: .misuse, message: message, operation: .pin)
        }
        try checkOpen(.pin)
        let limit = options.maximumSnapshots
        guard snapshotCount.increment(below: limit) else {
            let message = "\(limit) snapshots are pinned, the limit; release one, or raise the limit"
            throw SQLiteError(code: .full, message: message, operation: .pin)
        }
        do {
            let connection = if let idle = readers.removeIdle() { idle } else { try opening.openReader() }
            connection.busyWait.timeout = timeout ?? options.timeout
            updateTrace(of: connection)
            try connection.run(.begin)
            // A transaction has no version before it has read.
            _ = try connection.firstInt64("SELECT 1 FROM sqlite_schema LIMIT 1")
            return PinnedSnapshot(connection: connection, pool: self)
        } catch {
            snapshotCount.decrement()
            throw error
        }
    }

    fileprivate func unpin(_ connection: Connection) {
        endTransaction(connection)
        snapshotCount.decrement()
        if connection.isBroken || connection.isInTransaction { connection.close() } else { readers.adopt(connection) }
    }
}
