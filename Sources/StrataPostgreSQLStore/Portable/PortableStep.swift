import Foundation
import StrataPostgreSQL

/// The two kinds of steps that a migration of a portable store has: a statement that changes one table, and a transaction that changes rows.
///
/// Each may be run again.
enum PortableStep {
    /// The most attempts of a step that the server ends in favour of others.
    private static let mostAttempts = 20

    /// Runs `body`, and again, after a random pause, if the server has ended its transaction in favour of others.
    ///
    /// A step may take long, so the number of attempts is the limit, and not a time.
    static func repeating<R>(_ body: () throws -> R) throws -> R {
        var attempt = 1
        while true {
            do { return try body() } catch let error as PostgreSQLError
                where error.isTransient && attempt < mostAttempts
            {
                usleep(UInt32.random(in: 0..<UInt32(1000 << min(attempt, 8))))
                attempt += 1
            }
        }
    }

    /// Runs a statement that is a separate transaction.
    static func statement(_ sql: String, on connection: Connection) throws {
        try repeating {
            // Behind a pooler, only a query is sent with the settings of the store.
            if connection.isPooled { try connection.query(sql) } else { try connection.command(sql) }
        }
    }

    /// Runs a statement that makes something unless it is there, even if another process does the same at this moment.
    static func creation(_ sql: String, on connection: Connection) throws {
        do { try statement(sql, on: connection) } catch let error as PostgreSQLError
            where ["23505", "42P06", "42P07", "42710"].contains(error.sqlState) && !connection.isBroken
        {
            // The server has looked before the other process had finished: it is there now.
        }
    }

    /// Runs `body` in a transaction during which no other process can take the lease over.
    ///
    /// - Parameters:
    ///   - connection: A connection without a transaction.
    ///   - lease: The lease of the migration.
    ///   - body: Runs again, in a new transaction, if the server has ended the transaction in favour of others.
    /// - Returns: The result of `body`.
    /// - Throws: ``ShapeLease/Lost`` if another process has taken the migration over; ``PostgreSQLError``; the errors of `body`.
    static func transaction<R>(on connection: Connection, _ lease: ShapeLease, _ body: () throws -> R) throws -> R {
        try repeating {
            do {
                try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED; \(PostgreSQLEngine.workSetting)")
                guard try lease.isHeld() else { throw ShapeLease.Lost() }
                let result = try body()
                try connection.commit()
                return result
            } catch {
                if !connection.isBroken, !connection.isIdle { try? connection.rollback() }
                throw error
            }
        }
    }
}
