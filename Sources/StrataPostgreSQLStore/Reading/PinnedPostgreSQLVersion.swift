import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataPredicates
import StrataRows

/// One version of a store.
///
/// It can be read while it is held, while its connection exists, and until it is too old.
///
/// It keeps a transaction open on a separate connection. Any thread may read. If that connection is in use, then a
/// thread reads on a connection of the pool, with the same snapshot. If none is free at once, then the reads take
/// turns. The version exists as long as its own connection does. If a read on another connection fails, then it is
/// repeated on that one.
final class PinnedPostgreSQLVersion: PostgreSQLSource, @unchecked Sendable {
    // @unchecked Sendable: only the thread that has the turn uses `held`; the rest is constant, or protected by a
    // mutex.
    private let database: OpenPostgreSQLStore
    /// The connection; `nil` once the version has ended.
    private var held: Connection?
    /// The connections to the same server.
    private let pool: ConnectionPool
    /// The exported snapshot on that server; `nil` if only one connection has it.
    private let snapshot: PinnedSnapshotName?
    private let age: PinnedVersionAge?
    private let turn = FairSemaphore(permits: 1)
    private let isEnded = Locked(false)

    /// Whether it is a replica's version.
    let isOfReplica: Bool

    /// Holds the newest version, of a replica if that is allowed and one has caught up.
    ///
    /// - Parameters:
    ///   - database: The store.
    ///   - mayBeReplica: Whether it may be a replica's version.
    ///   - limit: The number of seconds after which the version ends; `nil` for never.
    /// - Returns: The version.
    /// - Throws: ``PostgreSQLError``; the errors of ``OpenPostgreSQLStore/requireSame(_:)-(Connection)``.
    static func newest(_ database: OpenPostgreSQLStore, mayBeReplica: Bool, ageLimit limit: Double? = nil) throws
        -> PinnedPostgreSQLVersion
    {
        do {
            return try held(database, mayBeReplica: mayBeReplica, limit)
        } catch is PinnedSnapshot.CannotBeShared {
            database.sharesVersions.store(false, ordering: .relaxed)
            return try held(database, mayBeReplica: mayBeReplica, limit)
        }
    }

    private static func held(_ database: OpenPostgreSQLStore, mayBeReplica: Bool, _ limit: Double?) throws
        -> PinnedPostgreSQLVersion
    {
        if mayBeReplica, let held = try database.replicas?.heldSnapshot(database, for: limit) {
            return PinnedPostgreSQLVersion(database, held, isOfReplica: true)
        }
        let connection = try database.pool.lend()
        do {
            return try held(of: database, on: connection, ageLimit: limit)
        } catch let error as PostgreSQLError where error.kind == .connection {
            // A connection that was not used for a while was lost: a migration, or the server, had ended it.
            database.pool.closeIdle()
            return try held(of: database, on: try database.pool.lend(), ageLimit: limit)
        }
    }

    private static func held(of database: OpenPostgreSQLStore, on connection: Connection, ageLimit limit: Double?)
        throws
        -> PinnedPostgreSQLVersion
    {
        if connection.isPooled || database.form == .portable { try database.requireSame(connection) }
        do {
            let begun = try StoreMetadata.beginReading(connection)
            if !connection.isPooled, !connection.isKnown {
                try database.requireSame(try StoreMetadata.read(connection, database.place))
            }
            let isShared = database.sharesVersions.load(ordering: .relaxed)
            let held = try PinnedSnapshot(
                on: connection,
                pool: database.pool,
                for: limit,
                isShared: isShared,
                begun: begun
            )
            return PinnedPostgreSQLVersion(database, held, isOfReplica: false)
        } catch let error as PostgreSQLError where error.sqlState == "42P01" {
            // The store does not exist any more.
            try database.requireSame(StoreMetadata?.none)
            throw error
        }
    }

    private init(_ database: OpenPostgreSQLStore, _ held: PinnedSnapshot, isOfReplica: Bool) {
        self.database = database
        self.held = held.connection
        pool = held.pool
        snapshot = held.exported
        age = held.age
        self.isOfReplica = isOfReplica
    }

    deinit { letGo() }

    /// Gives the connection back; called by the thread that has the turn, or that releases the version last.
    private func letGo() {
        guard let connection = held else { return }
        held = nil
        pool.giveBackInBackground(connection)
    }

    /// Ends the version, which cannot be read any more.
    func end() {
        isEnded.withLock { $0 = true }
        // If a thread is reading, then it gives the connection back afterwards.
        guard case .acquired = turn.acquire(timeout: 0) else { return }
        letGo()
        turn.release()
    }

    /// The number of threads that wait for the connection of the version, for tests that control it.
    var waiterCount: Int { turn.waiterCount }

    // MARK: - Reading

    /// Runs `body` on a connection that sees the version.
    ///
    /// - Parameters:
    ///   - control: Stops the wait for others who read the version, and is set back before `body` runs again.
    ///   - body: Reads; runs again if a connection of the pool was lost.
    /// - Returns: The result of `body`.
    /// - Throws: `persistentStoreOperation` (134070) if the version is gone: the store was removed, the version is too
    ///   old, or the server has ended the connection.
    func read<R>(control: FetchControl? = nil, _ body: (Connection) throws -> R) throws -> R {
        if case .acquired = turn.acquire(timeout: 0) { return try readInTurn(control, body) }
        let start = ContinuousClock.now
        try requireReadable()
        let position = control?.position
        if let answer = try readBeside(body) { return answer }
        if let position { control?.goBack(to: position) }
        let rest = database.pool.timeout - (ContinuousClock.now - start) / .seconds(1)
        switch turn.acquire(timeout: max(rest, 0), cancellation: control?.cancellation) {
        case .acquired: return try readInTurn(control, body)
        case .cancelled: throw PostgreSQLError(.cancelled, "the request was cancelled")
        case .timedOut:
            throw PostgreSQLError(.deadline, "others have read the version for \(database.pool.timeout) s")
        }
    }

    /// Reads on the connection of the version, with the turn, and gives the turn back.
    private func readInTurn<R>(_ control: FetchControl?, _ body: (Connection) throws -> R) throws -> R {
        defer {
            held?.awaitCancel()
            if isOver || held?.isBroken == true { letGo() }
            turn.release()
        }
        try requireReadable()
        guard let held, !held.isBroken, !held.isIdle else { throw gone(ending, nil) }
        do {
            let position = control?.position
            do {
                return try readOnce(held, body)
            } catch let error as PostgreSQLError where error.isStale && !held.isBroken {
                // The connection is older than the version: it may have prepared statements for columns that were
                // altered since.
                held.forgetPrepared()
                if let position { control?.goBack(to: position) }
                return try readOnce(held, body)
            }
        } catch let error as PostgreSQLError where error.kind == .connection || held.isBroken {
            throw gone(ending, error)
        }
    }

    /// Reads on the connection of the version, which stays in its transaction if the read fails.
    private func readOnce<R>(_ held: Connection, _ body: (Connection) throws -> R) throws -> R {
        do {
            // This is sent with the first statement.
            if let idling { try held.post(idling, isKept: false) }
            return try body(held)
        } catch {
            held.awaitCancel()
            if !held.isBroken {
                let back = "ROLLBACK TO SAVEPOINT \(PinnedSnapshot.savepoint)"
                try held.command([back, idling].compactMap(\.self).joined(separator: "; "))
            }
            throw error
        }
    }

    /// Reads on a connection of the pool while others use that of the version.
    ///
    /// - Returns: The result of `body`; `nil` if no connection that sees the version was available at once, or if it
    ///   was lost.
    private func readBeside<R>(_ body: (Connection) throws -> R) throws -> R? {
        guard let snapshot, let connection = try? pool.lease(waiting: 0, opening: 1) else { return nil }
        defer { pool.give(back: connection) }
        guard let begun = try? begin(snapshot, connection) else { return nil }
        let outcome = Result { try body(connection) }
        // This check comes before the result is used.
        guard let seen = try? connection.answer(begun), seen.rowCount > 0 else { return nil }
        do {
            let result = try outcome.get()
            // This is sent with the statements that are not sent yet.
            _ = try connection.answer(try connection.post("COMMIT", isKept: false))
            return result
        } catch let error as PostgreSQLError where error.kind == .connection || error.isTransient || error.isStale {
            // The connection was lost, a replica has cancelled the read, or a prepared statement does not fit its tables
            // any more. The connection of the version shows whether the version is gone too.
            return nil
        }
    }

    /// Makes a connection of the pool see the version.
    private func begin(_ snapshot: PinnedSnapshotName, _ connection: Connection) throws -> PostedStatement {
        // The session joins those that a migration ends. A replica has no such sessions; there the metadata of the
        // version itself was checked.
        if !isOfReplica { try database.requireSame(connection) }
        return try snapshot.begin(on: connection)
    }

    // MARK: - The end

    private var isOver: Bool { age?.isOver == true || isEnded.withLock { $0 } }

    /// The statement that limits how long the server waits for the next read, since the server's wait begins anew each
    /// time; `nil` if there is no limit.
    private var idling: String? {
        age.map { "SET LOCAL idle_in_transaction_session_timeout = \($0.restInMilliseconds)" }
    }

    private func requireReadable() throws {
        if isEnded.withLock({ $0 }) { throw gone("the store was removed from its coordinator", nil) }
        if age?.isOver == true { throw gone(ending, nil) }
    }

    /// The reason why the connection is gone.
    private var ending: String {
        // The server may have been the first to notice.
        if let age, age.isOver {
            return "it is older than the \(age.limit) s that NSPostgreSQLPinnedVersionAgeOption allows"
        }
        return isOfReplica
            ? "the replica that it was of has gone, or has had to give it up to follow its primary"
            : "the server has ended its transaction"
    }

    private func gone(_ reason: String, _ underlying: PostgreSQLError?) -> CocoaError {
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey:
                "The query generation of the store \(database.place) cannot be read any more: \(reason). Pin the context anew to read the newest version."
        ]
        userInfo[NSUnderlyingErrorKey] = underlying
        return CocoaError.described(.persistentStoreOperation, userInfo: userInfo).marked(.environment)
    }

    var reading: PostgreSQLReading { PostgreSQLReading(database, at: self) }
}
