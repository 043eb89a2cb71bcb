import Foundation
import StrataKeys
import StrataPostgreSQL

/// The features of a server that the store relies on, and that a server with PostgreSQL's protocol may lack.
///
/// Each is tried when a store is opened, whatever the server calls itself: a function may exist and do nothing, or may
/// be forbidden to the role. Features that the store can do without are tried when they are used first.
enum ServerCapabilities {
    private struct Capability {
        /// The name of the feature in messages.
        let name: String
        /// An expression that is true if the feature works.
        let sql: String
    }

    /// The features without which no process can save, or find out the result of a save.
    ///
    /// A replica gives no numbers to transactions.
    private static let needed = [
        Capability(
            name: "numbers of transactions, and what has become of them (pg_current_xact_id, pg_xact_status)",
            sql: """
                CASE WHEN pg_catalog.pg_is_in_recovery() THEN true
                ELSE pg_catalog.pg_xact_status(pg_catalog.pg_current_xact_id()) = 'in progress' END
                """
        ),
        // `CASE` makes the server take the lock before it looks for it.
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

    /// The statement that tests all of them.
    static let statement = "SELECT " + needed.map(\.sql).joined(separator: ", ")

    /// The server lacks one of them.
    struct Missing: Error {}

    /// Checks the answer.
    ///
    /// - Throws: ``Missing``.
    static func requireAll(_ answer: QueryResult) throws {
        guard needed.indices.allSatisfy({ answer[0].int64($0) != 0 }) else { throw Missing() }
    }

    /// The error for foreign keys in a portable store.
    static func noForeignKeys(_ place: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreOpen,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(place) cannot have foreign keys (NSPostgreSQLForeignKeysOption): it is portable, and so relies on no constraints that wait for the end of a transaction."
            ]
        ).marked(.environment)
    }

    /// Checks the answer.
    ///
    /// - Throws: `persistentStoreOpen` (134080) with the names of the missing features.
    static func require(_ answer: QueryResult, _ place: String) throws {
        try require(needed.indices.map { answer[0].int64($0) != 0 }, place)
    }

    /// Tests each feature alone, because the server has refused to answer for all.
    ///
    /// - Throws: The errors of ``require(_:_:)-(QueryResult,_)``.
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
