import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// Removes old transactions, in a write transaction.
struct HistoryPurge {
    let connection: Connection

    /// Removes the transactions before a bound, their changes, and texts that are no longer in use.
    ///
    /// The counters stay, so that no number is given again.
    ///
    /// - Returns: How many transactions were removed.
    func purge(before bound: HistoryBound) throws -> Int {
        let (column, value): (String, SQLBinding) =
            switch bound {
            case .number(let number): ("Z_PK", .integer(number))
            case .time(let seconds): ("ZTIMESTAMP", .double(seconds))
            }
        // All transactions after the first one that stays remain as well. So a clock that was set back leaves no gap in the numbers.
        let first = try connection.statement(SQL("SELECT MIN(Z_PK) FROM ATRANSACTION WHERE NOT \(column) < ?"))
        try first.bind(value, at: 1)
        let end = try first.step() ? first[0].optionalInt64 ?? .max : .max
        try run("DELETE FROM ACHANGE WHERE ZTRANSACTIONID < ?", end)
        try run("DELETE FROM ATRANSACTION WHERE Z_PK < ?", end)
        let count = connection.changeCount
        guard count > 0 else { return 0 }
        try connection.run(
            """
            DELETE FROM ATRANSACTIONSTRING AS s WHERE NOT EXISTS (SELECT 1 FROM ATRANSACTION WHERE ZAUTHORTS = s.Z_PK)
            AND NOT EXISTS (SELECT 1 FROM ATRANSACTION WHERE ZBUNDLEIDTS = s.Z_PK)
            AND NOT EXISTS (SELECT 1 FROM ATRANSACTION WHERE ZCONTEXTNAMETS = s.Z_PK)
            AND NOT EXISTS (SELECT 1 FROM ATRANSACTION WHERE ZPROCESSIDTS = s.Z_PK)
            """
        )
        return Int(count)
    }

    private func run(_ sql: SQL, _ number: Int64) throws {
        let statement = try connection.statement(sql)
        try statement.bind(number, at: 1)
        try statement.run()
    }
}
