import Foundation
import StrataKeys
import StrataPostgreSQL

/// The commit of a transaction that has changed the tables of a store, and that has ``OpenPostgreSQLStore/lockShape(of:_:)``.
///
/// If the connection breaks during the commit, then another connection finds out the result from the store itself.
struct ShapeCommit {
    private let connection: Connection
    private let target: ConnectionTarget
    private let pool: ConnectionPool
    private let session: LostSession

    /// Asks for the number of the transaction, by which the session can be found after its connection is lost.
    init(on connection: Connection, to target: ConnectionTarget, pool: ConnectionPool) throws {
        self.connection = connection
        self.target = target
        self.pool = pool
        let found = try connection.query(
            "SELECT pg_catalog.pg_current_xact_id()::text, pg_catalog.pg_backend_pid()::bigint"
        )
        session = LostSession(process: found[0].int64(1), transaction: found[0].string(0))
    }

    /// Commits the transaction.
    ///
    /// - Parameter hasHappened: Whether another connection sees the changes of the transaction.
    /// - Throws: ``PostgreSQLError`` if nothing was committed; `migration` (134110) if no server answers within the
    ///   time-out.
    func commit(_ hasHappened: (Connection) throws -> Bool) throws {
        do {
            try connection.commit()
        } catch let error as PostgreSQLError where [.connection, .deadline].contains(error.kind) || error.leavesDoubt {
            guard try findOutcome(after: error, hasHappened) else {
                throw PostgreSQLError(.rolledBack, "the transaction was rolled back: \(error.message)")
            }
        }
    }

    private func findOutcome(after error: PostgreSQLError, _ hasHappened: (Connection) throws -> Bool) throws -> Bool {
        let end = ContinuousClock.now + .seconds(max(pool.timeout, 5))
        var last = error
        while ContinuousClock.now < end {
            do {
                let asking = try pool.open(timeout: 5)
                // The server may still wait in the old session.
                switch try session.end(asking) {
                case .gone:
                    // A connection that gets the lock sees the result.
                    try asking.command("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 1000")
                    try OpenPostgreSQLStore.lockShape(of: target, asking)
                    return try hasHappened(asking)
                case .ended: break
                case .waitsForStandby: last = LostSession.unconfirmed
                }
            } catch let other as PostgreSQLError {
                last = other
            }
            usleep(50_000)
        }
        throw CocoaError.described(
            .migration,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The connection to the store \(target.place) was lost while its migration was committed, and nobody could be asked whether it was. Either all of it was, or nothing: add the store again.",
                NSUnderlyingErrorKey: last,
            ]
        ).marked(.environment)
    }
}
