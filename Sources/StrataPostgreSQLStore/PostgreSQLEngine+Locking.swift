import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLEngine: LockingStore {
    package func beginLocking(
        _ conduct: RowLocking.Conduct,
        _ time: LockingTime,
        holder: AnyObject & Sendable
    ) throws -> (any LockingTransaction)? {
        let database = try openDatabase()
        guard !isReadOnly else { throw readOnlyError }
        guard case .acquired = database.lockingBlocks.acquire(timeout: time.left, cancellation: time.cancellation)
        else {
            try time.cancellation.check()
            throw CocoaError.described(
                .persistentStoreTimeout,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "\(database.pool.size) other blocks had rows of the store \(place) locked, the limit; NSPersistentStoreConnectionPoolMaxSizeKey sets it."
                ]
            ).marked(.deadline)
        }
        do {
            try gate.enter(timeout: min(time.left, database.pool.timeout))
            do { return try begin(on: database, time) } catch {
                gate.leave()
                throw error
            }
        } catch {
            database.lockingBlocks.release()
            throw error
        }
    }

    private func begin(on database: OpenPostgreSQLStore, _ time: LockingTime) throws -> LockingPostgreSQLTransaction {
        try requireNotRetired()
        return try PostgreSQLBoundary.run(.saving, at: place) {
            do {
                return try LockingPostgreSQLTransaction(self, database, time)
            } catch let error as PostgreSQLError where error.kind == .connection {
                // A connection that was not used for long may turn out to be lost, and then so are the others.
                database.pool.closeIdle()
                return try LockingPostgreSQLTransaction(self, database, time)
            }
        }
    }
}

/// A transaction in which rows are locked, on a separate session.
final class LockingPostgreSQLTransaction: LockingTransaction, @unchecked Sendable {
    // @unchecked Sendable: one thread uses it at a time.
    private let engine: PostgreSQLEngine
    private let database: OpenPostgreSQLStore
    private let connection: Connection
    private let time: LockingTime
    /// The limit of the session for waits for locks, which saves have.
    private let lockTimeout: PostgreSQLValue
    private(set) var isOver = false

    /// How many seconds the server waits longer than this process until it ends a transaction that does nothing.
    private static let serverGrace = 1.0

    /// How many seconds a server may take to roll back.
    private static let rollbackPatience = 5.0

    init(_ engine: PostgreSQLEngine, _ database: OpenPostgreSQLStore, _ time: LockingTime) throws {
        self.engine = engine
        self.database = database
        self.time = time
        // Pools have few connections, and reads of the block take one of them.
        connection = try database.pool.lend()
        try database.requireSame(connection)
        try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
        // If this process stops, or its machine is gone, then the server ends the transaction.
        let settings = try connection.query(
            """
            SELECT pg_catalog.current_setting('lock_timeout'),
            pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true)
            """,
            [Self.milliseconds(time.left + Self.serverGrace)]
        )
        lockTimeout = .text(settings.rowCount > 0 ? settings[0].string(0) : "0")
    }

    deinit { rollBack() }

    private static func milliseconds(_ seconds: Double) -> PostgreSQLValue {
        .text(String(Int(max(1, min(seconds * 1000, 2e9)))))
    }

    // MARK: - Fetching

    func rows(for plan: FetchPlan, _ locking: RowLocking) throws -> [Row] {
        guard let entity = database.mapping.entity(plan.layout) else { return [] }
        let cancellation = time.cancellation
        return try OperationTally.timingStore {
            try PostgreSQLBoundary.run(.reading, at: database.place) {
                try cancellation.check()
                let canceller = connection.canceller
                do {
                    let rows = try cancellation.running(stoppedBy: { canceller.cancel() }) {
                        try plan.evaluating { try lockedRows(of: plan, entity, locking) }
                    }
                    // A cancel that comes too late must not hit a later statement.
                    if cancellation.isCancelled { connection.awaitCancel() }
                    OperationTally.current?.pointee.rows += rows.count
                    return rows
                } catch {
                    connection.awaitCancel()
                    throw try goingOn(after: error, plan, entity, locking)
                }
            }
        }
    }

    private func lockedRows(of plan: FetchPlan, _ entity: EntityMapping, _ locking: RowLocking) throws -> [Row] {
        // The server reports the cause, so it gives up first.
        connection.patience = max(time.left, database.pool.timeout) + 2 * Self.serverGrace
        defer { connection.patience = max(database.pool.timeout, 1) }
        // These are sent with the query.
        try connection.post("SAVEPOINT strata_rows", isKept: false)
        try connection.post(
            "SELECT pg_catalog.set_config('lock_timeout', $1, true)",
            [Self.milliseconds(time.left)]
        )
        let rows = try database.queries.lockedRows(
            of: plan,
            for: entity,
            locking: locking.clause,
            skips: locking.conduct == .skip,
            on: connection,
            source: SnapshotSource(database.queries, connection)
        )
        // This is sent with the next statement.
        try connection.post("RELEASE SAVEPOINT strata_rows", isKept: false)
        return rows
    }

    /// Lets the transaction go on after an error of a fetch, or ends it if that is impossible.
    ///
    /// - Returns: The error of the fetch.
    private func goingOn(
        after error: any Error,
        _ plan: FetchPlan,
        _ entity: EntityMapping,
        _ locking: RowLocking
    ) throws -> any Error {
        let failure = error as? PostgreSQLError
        if failure?.isTransient == true {
            rollBack()
            return RowLockFailure.deadlock(error)
        }
        do {
            try goBack()
            guard failure?.sqlState == "55P03", locking.conduct == .fail else { return error }
            return RowLockFailure.taken(try lockedByOthers(plan, entity, locking))
        } catch {
            rollBack()
            return failure ?? error
        }
    }

    private func goBack() throws {
        if connection.hasPosted { try? connection.readPostedAnswers() }
        try connection.command("ROLLBACK TO SAVEPOINT strata_rows")
    }

    /// The rows of a fetch that others have locked, as far as they are known.
    private func lockedByOthers(
        _ plan: FetchPlan,
        _ entity: EntityMapping,
        _ locking: RowLocking
    ) throws -> [ObjectReference] {
        let most = RowLockFailure.mostNamed
        let limit = plan.limit > 0 ? min(plan.limit, most) : most
        let first = plan.with(predicate: plan.predicate, sort: plan.sort, limit: limit, offset: plan.offset)
        let queries = database.queries
        let found = try queries.references(
            of: first,
            for: entity,
            statement: nil,
            on: connection,
            source: SnapshotSource(queries, connection)
        )
        let free = Set(
            try queries.lock(
                found.map(\.key),
                of: entity,
                locking: RowLocking(locking.strength, .skip).clause,
                on: connection
            )
        )
        // The free rows are not kept locked.
        try goBack()
        return found.filter { !free.contains($0.key) }
    }

    // MARK: - Saving

    func save(_ changes: StoreChanges, willCommit: (StoreSaveResult) -> Void, didCommit: (StoreSaveResult) -> Void)
        throws -> [StoreConflict]
    {
        guard !engine.isReadOnly else { throw engine.readOnlyError }
        let start = OperationTally.startTiming()
        defer { OperationTally.stopTiming(start) }
        defer { engine.followHistory(of: database) }
        // After a commit, and after an error that has ended the transaction, the session has none.
        defer { if connection.isBroken || connection.isIdle { rollBack() } }
        try PostgreSQLBoundary.run(.saving, at: database.place) {
            _ = try connection.query("SELECT pg_catalog.set_config('lock_timeout', $1, true)", [lockTimeout])
        }
        var write = StoreWrite(of: RepeatableSave(changes), by: engine, to: database)
        return try write.run(inTransactionOf: connection, willCommit: willCommit, didCommit: didCommit)
    }

    func rollBack() {
        guard !isOver else { return }
        isOver = true
        if !connection.isBroken, !connection.isIdle {
            connection.patience = min(database.pool.timeout, Self.rollbackPatience)
            try? connection.rollback()
        }
        connection.patience = max(database.pool.timeout, 1)
        // A connection whose transaction is still open is closed.
        if connection.isIdle { database.pool.giveBackInBackground(connection) }
        engine.gate.leave()
        database.lockingBlocks.release()
    }
}

extension RowLocking {
    /// The clause that locks the rows of the table `t0`, after a space.
    ///
    /// Saves lock rows that they change with the same strength, unless they delete them or change unique values. So
    /// others may relate their rows to a locked one.
    fileprivate var clause: String {
        let rows = strength == .share ? " FOR SHARE OF t0" : " FOR NO KEY UPDATE OF t0"
        return switch conduct {
        case .wait: rows
        case .fail: rows + " NOWAIT"
        case .skip: rows + " SKIP LOCKED"
        }
    }
}
