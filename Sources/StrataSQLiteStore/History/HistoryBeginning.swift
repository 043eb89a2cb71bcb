import StrataSQLite

/// The beginning of a file's history, even if its first transactions were picked out.
///
/// A purge removes all old transactions, so the oldest one that is left shows how far it went. If older ones were
/// picked out, a table of ours keeps the number from which on nothing was purged, and the number of the oldest
/// transaction that was left. This note counts only as long as that transaction is the oldest. It may be purged, for
/// instance by Apple's framework, which does not know the table. Then the rows alone show the beginning again.
struct HistoryBeginning {
    let connection: Connection

    private static let table = "ASTRATAHISTORY"

    /// The number of the oldest remaining transaction; that of the next one if there is none.
    func oldest() throws -> Int64 {
        try connection.firstInt64("SELECT MIN(Z_PK) FROM ATRANSACTION")
            ?? HistoryCounters.last(.transaction, connection) + 1
    }

    /// The number from which on no transaction was purged.
    func number() throws -> Int64 {
        let oldest = try oldest()
        guard try connection.firstInt64(SQL("SELECT 1 FROM sqlite_schema WHERE name = '\(Self.table)'")) != nil else {
            return oldest
        }
        let statement = try connection.statement(SQL("SELECT ZFIRST FROM \(Self.table) WHERE ZOLDEST = ?"))
        try statement.bind(oldest, at: 1)
        return try statement.step() ? min(statement[0].int64, oldest) : oldest
    }

    /// Keeps the present answer before transactions are picked out, in the write transaction that does so.
    func keep(_ number: Int64) throws {
        let oldest = try oldest()
        guard number < oldest else { return }
        try connection.execute(
            """
            CREATE TABLE IF NOT EXISTS \(Self.table) ( Z_PK INTEGER PRIMARY KEY, ZFIRST INTEGER, ZOLDEST INTEGER )
            """
        )
        let statement = try connection.statement(
            SQL(
                """
                INSERT INTO \(Self.table) (Z_PK, ZFIRST, ZOLDEST) VALUES (1, ?, ?)
                ON CONFLICT (Z_PK) DO UPDATE SET ZFIRST = excluded.ZFIRST, ZOLDEST = excluded.ZOLDEST
                """
            )
        )
        try statement.bind(number, at: 1)
        try statement.bind(oldest, at: 2)
        try statement.run()
    }
}
