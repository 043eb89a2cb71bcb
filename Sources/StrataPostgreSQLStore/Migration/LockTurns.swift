import Foundation
import StrataPostgreSQL

/// How a migration takes its locks: it waits for a second at most, then others get their turn, and it is tried again.
///
/// Whoever waits for a table keeps all others from it. A deadlock is tried again as well: a save takes its tables in another order.
struct LockTurns {
    /// For how many seconds a table is waited for before others get their turn.
    static let wait = 1.0

    private let connection: Connection
    private let end: ContinuousClock.Instant

    /// - Parameters:
    ///   - connection: What takes the locks.
    ///   - timeout: For how many seconds others may keep them.
    init(_ connection: Connection, timeout: Double) {
        self.connection = connection
        end = .now + .seconds(timeout)
    }

    private static let limit = "SET LOCAL lock_timeout = \(Int(wait * 1000))"

    /// Runs `body` in a transaction, which it may commit or roll back, and which is open afterwards if it does neither.
    ///
    /// - Parameters:
    ///   - settings: Statements that begin the transaction.
    ///   - before: Run before each transaction.
    ///   - body: Is run again, in a new transaction, if it had to wait for too long.
    /// - Returns: What `body` returns.
    /// - Throws: ``PostgreSQLError``: 55P03 if the time is over; what `body` throws.
    func transaction<R>(
        _ settings: [String] = [],
        before: () throws -> Void = {},
        _ body: () throws -> R
    ) throws -> R {
        let begin = ["BEGIN ISOLATION LEVEL READ COMMITTED", Self.limit, PostgreSQLEngine.workSetting] + settings
        return try run(begin.joined(separator: "; "), back: "ROLLBACK", before, body)
    }

    /// Runs `body` in the transaction that is open, and goes back to where that was if it had to wait for too long.
    ///
    /// - Parameter body: As in ``transaction(_:_:)``.
    /// - Returns: What `body` returns.
    /// - Throws: As ``transaction(_:_:)``.
    func savepoint<R>(_ body: () throws -> R) throws -> R {
        try run("SAVEPOINT strata_place; \(Self.limit)", back: "ROLLBACK TO SAVEPOINT strata_place", {}, body)
    }

    private func run<R>(
        _ begin: String,
        back: String,
        _ before: () throws -> Void,
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
