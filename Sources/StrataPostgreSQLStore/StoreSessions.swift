import Foundation
import StrataPostgreSQL

/// The sessions that have read the model of a store, and rely on it.
///
/// Each of them shares a lock with all others, for which no session ever waits. A migration finds the sessions by this
/// lock.
enum StoreSessions {
    /// The expression that makes a session one of them.
    ///
    /// - Parameter schema: The SQL text of the parameter with the name of the schema.
    /// - Returns: The function call.
    static func join(schema: String) -> String {
        "pg_catalog.pg_advisory_lock_shared(\(AdvisoryLocks.sessions), pg_catalog.hashtext(\(schema)))"
    }

    /// Makes a session one of them by a statement without a table, because a statement with a table may be executed in another session.
    static func joinHere(_ target: ConnectionTarget, _ connection: Connection) throws {
        try connection.query("SELECT \(join(schema: "$1"))", [.text(target.schema)])
    }

    /// How many seconds a session may take to end.
    private static let patience = 10.0

    /// Ends all of them except this one, and waits until they are gone.
    ///
    /// - Throws: ``PostgreSQLError``: 42501 if one belongs to a role that this one may not end, `.deadline` if one does
    ///   not end.
    static func endOthers(of target: ConnectionTarget, _ connection: Connection) throws {
        // Each transaction of a portable store reads the metadata instead.
        if connection.isPortable { return }
        let end = ContinuousClock.now + .seconds(patience)
        repeat {
            let ended = try connection.query(
                """
                SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_locks
                WHERE locktype = 'advisory' AND objsubid = 2 AND classid = \(AdvisoryLocks.sessions)
                AND objid::bigint = (pg_catalog.hashtext($1)::bigint & 4294967295)
                AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
                AND pid <> pg_catalog.pg_backend_pid()
                """,
                [.text(target.schema)]
            )
            if ended.rowCount == 0 { return }
            usleep(5_000)
        } while ContinuousClock.now < end
        throw PostgreSQLError(.deadline, "a session that has the store open does not end")
    }
}
