import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataPredicates
import StrataRows

/// One version of a store, which stays readable for as long as this is held, its connection lives, and it is not too old.
///
/// Holds a transaction open on a connection of its own. Any thread may read. Whoever finds that connection taken reads on one of the pool,
/// which is given the same snapshot; where there is none at once, reads take turns. The version is there as long as its own connection is:
/// a reader beside it that fails asks there.
final class PostgreSQLVersion: ForwardingRowSource, @unchecked Sendable {
    // @unchecked Sendable: `held` is used by whoever has the turn; the rest is constant, or behind its mutex.
    private let database: OpenDatabase
    /// The connection; `nil` once the version was let go of.
    private var held: Connection?
    /// What leads to the same server.
    private let pool: ConnectionPool
    /// The name of the snapshot there; `nil` if only one connection has it.
    private let snapshot: ExportedSnapshot?
    private let age: VersionAge?
    private let turn = FairSemaphore(permits: 1)
    private let isEnded = Mutex(false)

    /// Whether it is a replica's version.
    let isOfReplica: Bool

    /// Holds on to the newest version, of a replica if that is allowed and one has caught up.
    ///
    /// - Parameters:
    ///   - database: The store.
    ///   - mayBeReplica: Whether a replica's version will do.
    ///   - limit: After how many seconds it is given up; `nil` for never.
    /// - Returns: The version.
    /// - Throws: ``PostgreSQLError``; what ``OpenDatabase/requireSame(_:)-(Connection)`` throws.
    static func newest(_ database: OpenDatabase, mayBeReplica: Bool, ageLimit limit: Double? = nil) throws
        -> PostgreSQLVersion
    {
        do {
            return try held(database, mayBeReplica: mayBeReplica, limit)
        } catch is HeldSnapshot.CannotBeShared {
            database.sharesVersions.store(false, ordering: .relaxed)
            return try held(database, mayBeReplica: mayBeReplica, limit)
        }
    }

    private static func held(_ database: OpenDatabase, mayBeReplica: Bool, _ limit: Double?) throws -> PostgreSQLVersion
    {
        if mayBeReplica, let held = try database.replicas?.heldSnapshot(database, for: limit) {
            return PostgreSQLVersion(database, held, isOfReplica: true)
        }
        let connection = try database.pool.lend()
        do {
            return try held(database, connection, limit)
        } catch let error as PostgreSQLError where error.kind == .connection {
            // One that nobody had used for a while was lost: a migration, or the server, had ended it.
            database.pool.closeIdle()
            return try held(database, try database.pool.lend(), limit)
        }
    }

    private static func held(_ database: OpenDatabase, _ connection: Connection, _ limit: Double?) throws
        -> PostgreSQLVersion
    {
        if connection.isPooled { try database.requireSame(connection) }
        do {
            let begun = try StoreMetadata.beginReading(connection)
            if !connection.isPooled, !connection.isKnown {
                try database.requireSame(try StoreMetadata.read(connection, database.place))
            }
            let isShared = database.sharesVersions.load(ordering: .relaxed)
            let held = try HeldSnapshot(connection, database.pool, for: limit, isShared: isShared, begun)
            return PostgreSQLVersion(database, held, isOfReplica: false)
        } catch let error as PostgreSQLError where error.sqlState == "42P01" {
            // There is no store any more.
            try database.requireSame(StoreMetadata?.none)
            throw error
        }
    }

    private init(_ database: OpenDatabase, _ held: HeldSnapshot, isOfReplica: Bool) {
        self.database = database
        self.held = held.connection
        pool = held.pool
        snapshot = held.exported
        age = held.age
        self.isOfReplica = isOfReplica
    }

    deinit { letGo() }

    /// Gives the connection back, by whoever has the turn, or is the last to know the version.
    private func letGo() {
        guard let connection = held else { return }
        held = nil
        pool.takeBack(connection)
    }

    /// Lets go of the version, which cannot be read any more.
    func end() {
        isEnded.withLock { $0 = true }
        // Whoever reads lets go of it afterwards.
        guard case .acquired = turn.acquire(timeout: 0) else { return }
        letGo()
        turn.release()
    }

    /// How many wait for the connection of the version, for tests that script it.
    var waiterCount: Int { turn.waiterCount }

    // MARK: - Reading

    /// Runs `body` on a connection that sees the version.
    ///
    /// - Parameters:
    ///   - control: Goes back if `body` is run again.
    ///   - wait: Stops the wait for others who read the version.
    ///   - body: Reads; is run again if a connection of the pool was lost.
    /// - Returns: What `body` returns.
    /// - Throws: `persistentStoreOperation` (134070) if the version is gone: the store was removed, the version is too old, or the server has
    ///   ended the connection.
    func read<R>(
        _ control: FetchControl? = nil,
        _ wait: Cancellation? = nil,
        _ body: (Connection) throws -> R
    ) throws -> R {
        if case .acquired = turn.acquire(timeout: 0) { return try readInTurn(control, body) }
        let start = ContinuousClock.now
        try requireReadable()
        let position = control?.position
        if let answer = try readBeside(body) { return answer }
        if let position { control?.goBack(to: position) }
        let rest = database.pool.timeout - (ContinuousClock.now - start) / .seconds(1)
        switch turn.acquire(timeout: max(rest, 0), cancellation: wait) {
        case .acquired: return try readInTurn(control, body)
        case .cancelled: throw PostgreSQLError(.cancelled, "the request was cancelled")
        case .timedOut:
            throw PostgreSQLError(.deadline, "others have read the version for \(database.pool.timeout) s")
        }
    }

    /// Reads on the connection of the version, by whoever has the turn, and gives that back.
    private func readInTurn<R>(_ control: FetchControl?, _ body: (Connection) throws -> R) throws -> R {
        defer {
            held?.settleCancel()
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
                // The connection was in use before the version: it may have prepared statements for columns that were altered since.
                held.forgetPrepared()
                if let position { control?.goBack(to: position) }
                return try readOnce(held, body)
            }
        } catch let error as PostgreSQLError where error.kind == .connection || held.isBroken {
            throw gone(ending, error)
        }
    }

    /// Reads on the connection of the version, which stays in its transaction if that fails.
    private func readOnce<R>(_ held: Connection, _ body: (Connection) throws -> R) throws -> R {
        do {
            // Sent with the first statement.
            if let idling { try held.post(idling, isKept: false) }
            return try body(held)
        } catch {
            held.settleCancel()
            if !held.isBroken {
                let back = "ROLLBACK TO SAVEPOINT \(HeldSnapshot.savepoint)"
                try held.command([back, idling].compactMap(\.self).joined(separator: "; "))
            }
            throw error
        }
    }

    /// Reads on a connection of the pool while others have that of the version.
    ///
    /// - Returns: What `body` returns; `nil` if no connection was free at once, or none could be had that sees the version, or it was lost.
    private func readBeside<R>(_ body: (Connection) throws -> R) throws -> R? {
        guard let snapshot, let connection = try? pool.take(waiting: 0, opening: 1) else { return nil }
        defer { pool.give(back: connection) }
        guard let begun = try? begin(snapshot, connection) else { return nil }
        let outcome = Result { try body(connection) }
        // Before anybody sees it.
        guard let seen = try? connection.answer(begun), seen.rowCount > 0 else { return nil }
        do {
            let result = try outcome.get()
            // With what is left to be sent.
            _ = try connection.answer(try connection.post("COMMIT", isKept: false))
            return result
        } catch let error as PostgreSQLError where error.kind == .connection || error.isTransient {
            // Lost, or thrown out by a replica: the connection of the version tells whether that is gone as well.
            return nil
        }
    }

    /// Lets a connection of the pool see the version.
    private func begin(_ snapshot: ExportedSnapshot, _ connection: Connection) throws -> PostedStatement {
        // The session joins those that a migration ends. A replica has none: there the version itself has the metadata that was looked at.
        if !isOfReplica { try database.requireSame(connection) }
        return try snapshot.begin(on: connection)
    }

    // MARK: - The end

    private var isOver: Bool { age?.isOver == true || isEnded.withLock { $0 } }

    /// What tells the server how long it may wait for the next read, which would begin anew otherwise; `nil` if there is no limit.
    private var idling: String? {
        age.map { "SET LOCAL idle_in_transaction_session_timeout = \($0.restInMilliseconds)" }
    }

    private func requireReadable() throws {
        if isEnded.withLock({ $0 }) { throw gone("the store was removed from its coordinator", nil) }
        if age?.isOver == true { throw gone(ending, nil) }
    }

    /// Why the connection is gone.
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

    var reading: any RowReading { PostgreSQLReading(database, at: self) }
}
