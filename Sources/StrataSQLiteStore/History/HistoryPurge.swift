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
    /// - Returns: The number of removed transactions.
    func purge(before bound: HistoryBound) throws -> Int {
        let (column, value): (String, SQLBinding) =
            switch bound {
            case .number(let number): ("Z_PK", .integer(number))
            case .time(let seconds): ("ZTIMESTAMP", .double(seconds))
            }
        // All transactions after the first one that stays remain as well. So a clock that was set back leaves no gap in
        // the numbers.
        let first = try connection.statement(SQL("SELECT MIN(Z_PK) FROM ATRANSACTION WHERE NOT \(column) < ?"))
        try first.bind(value, at: 1)
        let end = try first.step() ? first[0].optionalInt64 ?? .max : .max
        try run("DELETE FROM ACHANGE WHERE ZTRANSACTIONID < ?", end)
        try run("DELETE FROM ATRANSACTION WHERE Z_PK < ?", end)
        let count = connection.changeCount
        if count > 0 { try removeTexts() }
        return count
    }

    /// Removes single transactions, their changes, and texts that are no longer in use.
    ///
    /// The counters stay, and so does the beginning of the history.
    ///
    /// - Parameter numbers: The numbers, each higher than the one before.
    /// - Returns: The number of removed transactions.
    /// - Throws: Errors of SQLite.
    func pickOut(_ numbers: [Int64]) throws -> Int {
        let beginning = HistoryBeginning(connection: connection)
        let first = try beginning.number()
        var count = 0
        var start = 0
        while start < numbers.count {
            var end = start + 1
            while end < numbers.count, numbers[end] == numbers[end - 1] + 1 { end += 1 }
            let (lowest, highest) = (numbers[start], numbers[end - 1])
            try run("DELETE FROM ACHANGE WHERE ZTRANSACTIONID BETWEEN ? AND ?", lowest, highest)
            try run("DELETE FROM ATRANSACTION WHERE Z_PK BETWEEN ? AND ?", lowest, highest)
            count += connection.changeCount
            start = end
        }
        guard count > 0 else { return 0 }
        try removeTexts()
        try beginning.keep(first)
        return count
    }

    /// Removes the texts that no transaction uses any more.
    private func removeTexts() throws {
        try connection.run(
            """
            DELETE FROM ATRANSACTIONSTRING AS s WHERE NOT EXISTS (SELECT 1 FROM ATRANSACTION WHERE ZAUTHORTS = s.Z_PK)
            AND NOT EXISTS (SELECT 1 FROM ATRANSACTION WHERE ZBUNDLEIDTS = s.Z_PK)
            AND NOT EXISTS (SELECT 1 FROM ATRANSACTION WHERE ZCONTEXTNAMETS = s.Z_PK)
            AND NOT EXISTS (SELECT 1 FROM ATRANSACTION WHERE ZPROCESSIDTS = s.Z_PK)
            """
        )
    }

    private func run(_ sql: SQL, _ numbers: Int64...) throws {
        let statement = try connection.statement(sql)
        for (index, number) in numbers.enumerated() { try statement.bind(number, at: index + 1) }
        try statement.run()
    }
}
