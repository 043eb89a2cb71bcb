import Foundation
import StrataPostgreSQL

/// Takes the locks of a migration: it waits for a second at most, then others may proceed, and it tries again.
///
/// A wait for a table keeps all others from it. After a deadlock it tries again too, because a save takes its tables in
/// another order.
struct LockTurns {
    /// How many seconds to wait for a table before others may proceed.
    static let wait = 1.0

    private let connection: Connection
    private let end: ContinuousClock.Instant

    private let limit: String

    /// Makes the turns for a connection.
    ///
    /// - Parameters:
    ///   - connection: The connection that takes the locks.
    ///   - timeout: How many seconds others may keep them.
    ///   - wait: How many seconds to wait for a table before others may proceed.
    init(_ connection: Connection, timeout: Double, wait: Double = Self.wait) {
        self.connection = connection
        end = .now + .seconds(timeout)
        limit = "SET LOCAL lock_timeout = \(Int(wait * 1000))"
    }

    /// Runs `body` in a transaction.
    ///
    /// It may commit or roll back; if it does neither, then the transaction stays open.
    ///
    /// - Parameters:
    ///   - settings: Statements that begin the transaction.
    ///   - before: Runs before each transaction.
    ///   - body: Runs again, in a new transaction, if it had to wait for too long.
    /// - Returns: The result of `body`.
    /// - Throws: ``PostgreSQLError``: 55P03 if the time is over; the errors of `body`.
    func transaction<R>(
        _ settings: [String] = [],
        before: () throws -> Void = {},
        _ body: () throws -> R
    ) throws -> R {
        let begin = ["BEGIN ISOLATION LEVEL READ COMMITTED", limit, PostgreSQLEngine.workSetting] + settings
        return try run(begin.joined(separator: "; "), back: "ROLLBACK", before: before, body)
    }

    /// Runs `body` in the transaction that is open.
    ///
    /// If it had to wait for too long, then its changes are undone and it runs again.
    ///
    /// - Parameter body: As in ``transaction(_:_:)``.
    /// - Returns: The result of `body`.
    /// - Throws: The errors of ``transaction(_:_:)``.
    func savepoint<R>(_ body: () throws -> R) throws -> R {
        try run("SAVEPOINT strata_place; \(limit)", back: "ROLLBACK TO SAVEPOINT strata_place", before: {}, body)
    }

    private func run<R>(
        _ begin: String,
        back: String,
        before: () throws -> Void,
        _ body: () throws -> R
    ) throws -> R {
        while true {
            try before()
            do {
                try connection.command(begin)
                return try body()
            } catch let error as PostgreSQLError
                where ["55P03", "40P01"].contains(error.sqlState) && !connection.isBroken && .now < end
            {
                try connection.command(back)
                usleep(UInt32.random(in: 50_000..<200_000))
            }
        }
    }
}
