import Foundation
import StrataKeys
import StrataPostgreSQL

/// What the store relies on, and what a server that speaks PostgreSQL's protocol may lack all the same.
///
/// Each is tried when a store is opened, whatever the server calls itself: a function may be there and do nothing, or may be
/// forbidden to the role. What the store can do without is tried when it is used first.
enum ServerCapabilities {
    private struct Capability {
        /// What a message calls it.
        let name: String
        /// An expression that is true where it is there.
        let sql: String
    }

    /// Those without which nobody can save, or find out what has become of a save.
    ///
    /// A server that only follows gives no numbers to transactions.
    private static let needed = [
        Capability(
            name: "numbers of transactions, and what has become of them (pg_current_xact_id, pg_xact_status)",
            sql: """
                CASE WHEN pg_catalog.pg_is_in_recovery() THEN true
                ELSE pg_catalog.pg_xact_status(pg_catalog.pg_current_xact_id()) = 'in progress' END
                """
        ),
        // By `CASE` the lock is taken before it is looked for.
        Capability(
            name: "advisory locks that pg_locks shows",
            sql: """
                CASE WHEN pg_catalog.pg_try_advisory_xact_lock(\(AdvisoryLocks.trial), pg_catalog.pg_backend_pid()) THEN EXISTS (
                SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND classid = \(AdvisoryLocks.trial)
                AND objid::bigint = pg_catalog.pg_backend_pid() AND pid = pg_catalog.pg_backend_pid() AND granted) ELSE false END
                """
        ),
        Capability(
            name: "settings of plans (enable_seqscan, plan_cache_mode, jit)",
            sql: """
                pg_catalog.current_setting('enable_seqscan', true) IS NOT NULL
                AND pg_catalog.current_setting('plan_cache_mode', true) IS NOT NULL
                AND pg_catalog.current_setting('jit', true) IS NOT NULL
                """
        ),
    ]

    /// What asks for all of them.
    static let statement = "SELECT " + needed.map(\.sql).joined(separator: ", ")

    /// Looks at the answer.
    ///
    /// - Throws: `persistentStoreOpen` (134080) with the names of what is missing.
    static func require(_ answer: QueryResult, _ place: String) throws {
        try require(needed.indices.map { answer[0].int64($0) != 0 }, place)
    }

    /// Asks for each of them alone, as the server has refused to answer for all.
    ///
    /// - Throws: As ``require(_:_:)-(QueryResult,_)``.
    static func requireEach(_ connection: Connection, _ place: String) throws {
        try require(needed.map { try isThere($0, connection) }, place)
    }

    private static func require(_ areThere: [Bool], _ place: String) throws {
        let missing = zip(needed, areThere).filter { !$0.1 }.map(\.0.name)
        if !missing.isEmpty { throw failure(missing, place) }
    }

    private static func isThere(_ capability: Capability, _ connection: Connection) throws -> Bool {
        do {
            return try connection.query("SELECT \(capability.sql)").firstInt64 == 1
        } catch let error as PostgreSQLError where error.kind == .server && !connection.isBroken {
            return false
        }
    }

    static func failure(_ missing: [String], _ place: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreOpen,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(place) cannot be opened: the server has not, or does not let the role use, \(missing.joined(separator: "; "))."
            ]
        ).marked(.environment)
    }
}
