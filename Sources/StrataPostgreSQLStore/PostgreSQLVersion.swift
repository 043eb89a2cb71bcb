import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataPredicates
import StrataRows

/// One version of a store, which stays readable for as long as this is held, and its connection lives.
///
/// Holds a transaction open on a connection of its own. Any thread may read; reads take turns.
final class PostgreSQLVersion: ForwardingRowSource, @unchecked Sendable {
    // @unchecked Sendable: the connection is used by whoever has the turn; the rest is constant.
    private let database: OpenDatabase
    private let connection: Connection
    private let turn = FairSemaphore(permits: 1)
    private let isEnded = Mutex(false)

    /// How many versions of one store may be held at a time: each keeps a process of the server, and old rows from being cleared away.
    static let most = 16

    /// Whether it is a replica's version.
    let isOfReplica: Bool

    /// Holds on to the newest version, of a replica if that is allowed and one has caught up.
    static func newest(_ database: OpenDatabase, mayBeReplica: Bool) throws -> PostgreSQLVersion {
        if mayBeReplica, let connection = try database.replicas?.heldConnection(database) {
            return PostgreSQLVersion(database, connection, isOfReplica: true)
        }
        let connection = try database.pool.open()
        if connection.isPooled { try database.requireSame(connection) }
        try connection.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        // A version is what the first statement sees. The session is new, so that no migration has ended it; from here on migrations wait, as
        // they lock the table of metadata.
        if connection.isPooled {
            try connection.query("SELECT 1 FROM strata_store")
        } else {
            try database.requireSame(try StoreMetadata.read(connection, database.place))
        }
        try connection.mayIdleInTransaction()
        return PostgreSQLVersion(database, connection, isOfReplica: false)
    }

    private init(_ database: OpenDatabase, _ connection: Connection, isOfReplica: Bool) {
        self.database = database
        self.connection = connection
        self.isOfReplica = isOfReplica
    }

    /// Lets go of the version, which cannot be read any more.
    func end() { isEnded.withLock { $0 = true } }

    /// Runs `body` on the connection of the version.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if the version is gone: the store was removed, or the server has ended the connection.
    func read<R>(_ body: (Connection) throws -> R) throws -> R {
        guard case .acquired = turn.acquire(timeout: database.pool.timeout) else {
            throw PostgreSQLError(.deadline, "others have read the version for \(database.pool.timeout) s")
        }
        defer {
            connection.settleCancel()
            turn.release()
        }
        guard !isEnded.withLock({ $0 }) else { throw gone("the store was removed from its coordinator", nil) }
        guard !connection.isBroken, !connection.isIdle else { throw gone(ending, nil) }
        do {
            // A statement that fails, or is cancelled, must not end the transaction, and with it the version.
            try connection.command("SAVEPOINT strata")
            do {
                let result = try body(connection)
                try connection.command("RELEASE SAVEPOINT strata")
                return result
            } catch {
                connection.settleCancel()
                if !connection.isBroken { try connection.command("ROLLBACK TO SAVEPOINT strata") }
                throw error
            }
        } catch let error as PostgreSQLError where error.kind == .connection || connection.isBroken {
            throw gone(ending, error)
        }
    }

    private var ending: String {
        isOfReplica
            ? "the replica that it was of has gone, or has had to give it up to follow its primary"
            : "the server has ended its transaction"
    }

    private func gone(_ reason: String, _ underlying: PostgreSQLError?) -> CocoaError {
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey:
                "The query generation of the store \(database.place) cannot be read any more: \(reason). Pin the context anew to read the newest version."
        ]
        userInfo[NSUnderlyingErrorKey] = underlying
        return CocoaError(.persistentStoreOperation, userInfo: userInfo).marked(.environment)
    }

    var reading: any RowReading { PostgreSQLReading(database, at: self) }
}

extension Connection {
    /// Lets the open transaction idle for as long as it likes: the server's limit is meant for those that write.
    func mayIdleInTransaction() throws {
        try command("SET LOCAL idle_in_transaction_session_timeout = 0")
    }
}
