import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// Checks the history of a file by itself and against the rows.
///
/// If the changes are replayed, they must lead to the existing rows. Rows from before the history's beginning are not
/// checked, and neither is anything that depends on transactions that were purged or picked out.
struct HistoryVerification {
    private let mapping: SQLMapping
    private let connection: Connection
    /// The keys at the history's beginning; `nil` if it is not known which rows are older than the history.
    private let baseline: HistoryBaseline?

    init(of mapping: SQLMapping, since baseline: HistoryBaseline?, on connection: Connection) {
        self.mapping = mapping
        self.baseline = baseline
        self.connection = connection
    }

    func run(_ report: inout VerificationReport) throws {
        try checkTransactions(&report)
        try checkCounters(&report)
        let holes = try HistoryHoles(connection)
        for table in mapping.tables {
            try checkOrder(of: table, except: holes, in: &report)
            try checkOutcome(of: table, except: holes, in: &report)
            // Otherwise the history does not reach back to its beginning, or transactions in between are missing.
            guard holes.missing == 0 else { continue }
            try checkOrigin(table, &report)
            if let last = baseline?.lastKey(of: table) { try checkVersions(table, after: last, &report) }
        }
    }

    private func keys(_ query: String) throws -> [String] { try connection.strings(SQL(query)) }

    // MARK: - The history by itself

    private func checkTransactions(_ report: inout VerificationReport) throws {
        report.add(
            "ACHANGE",
            rows: try keys(
                """
                SELECT Z_PK FROM ACHANGE AS c WHERE NOT EXISTS (SELECT 1 FROM ATRANSACTION WHERE Z_PK = c.ZTRANSACTIONID)
                """
            ),
            "of no transaction"
        )
        report.add(
            "ACHANGE",
            rows: try keys("SELECT Z_PK FROM ACHANGE WHERE ZCHANGETYPE IS NULL OR NOT (ZCHANGETYPE IN (0, 1, 2))"),
            "of no kind that is known"
        )
        for column in ["ZAUTHORTS", "ZBUNDLEIDTS", "ZCONTEXTNAMETS", "ZPROCESSIDTS"] {
            report.add(
                "ATRANSACTION",
                rows: try keys(
                    """
                    SELECT Z_PK FROM ATRANSACTION AS t WHERE \(column) NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM ATRANSACTIONSTRING WHERE Z_PK = t.\(column))
                    """
                ),
                "whose \(column) is no text of ATRANSACTIONSTRING"
            )
        }
    }

    private func checkCounters(_ report: inout VerificationReport) throws {
        for counter in HistorySchema.Counter.allCases {
            let largest = try connection.firstInt64(SQL("SELECT MAX(Z_PK) FROM \(counter.table)")) ?? 0
            let number = SQL("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(counter.rawValue)")
            let last = try connection.firstInt64(number) ?? 0
            guard last < largest else { continue }
            report.add("Z_PRIMARYKEY: the counter of \(counter.name) is \(last), but there is a row \(largest)")
        }
    }

    // MARK: - The history against the rows

    private func changes(of table: SQLTable) -> String {
        let numbers = table.entities.map { "\($0.number)" }.joined(separator: ", ")
        return "SELECT * FROM ACHANGE WHERE ZENTITY IN (\(numbers))"
    }

    /// Checks that nothing is inserted twice, or changed or deleted after its deletion.
    ///
    /// If there is a hole between two changes, it is not known what happened in between.
    private func checkOrder(of table: SQLTable, except holes: HistoryHoles, in report: inout VerificationReport) throws
    {
        report.add(
            "history of \(table.name.raw)",
            rows: try keys(
                """
                SELECT DISTINCT ZENTITYPK FROM (SELECT ZENTITYPK, ZCHANGETYPE AS kind, LAG(ZCHANGETYPE) OVER
                (PARTITION BY ZENTITYPK, stretch ORDER BY Z_PK) AS former FROM (\(holes.stretches(changes(of: table)))))
                WHERE former NOT NULL AND (kind = 0) <> (former = 2) ORDER BY 1
                """
            ),
            "inserted although there, or changed although deleted"
        )
    }

    /// Checks that rows that were last inserted or changed exist, and that rows that were last deleted do not.
    ///
    /// If a hole follows a change, that cannot be known.
    private func checkOutcome(of table: SQLTable, except holes: HistoryHoles, in report: inout VerificationReport)
        throws
    {
        let changes = holes.stretches(changes(of: table))
        let last = """
            SELECT k, e, kind FROM (SELECT ZENTITYPK AS k, ZENTITY AS e, ZCHANGETYPE AS kind, stretch, MAX(Z_PK)
            FROM (\(changes)) GROUP BY ZENTITYPK) WHERE stretch = \(holes.lastStretch)
            """
        let row = "SELECT 1 FROM \(table.name) WHERE Z_PK = l.k"
        report.add(
            table.name.raw,
            rows: try keys("SELECT k FROM (\(last)) AS l WHERE kind = 2 AND EXISTS (\(row)) ORDER BY k"),
            "deleted according to the history"
        )
        report.add(
            table.name.raw,
            rows: try keys("SELECT k FROM (\(last)) AS l WHERE kind <> 2 AND NOT EXISTS (\(row)) ORDER BY k"),
            "missing although in the history"
        )
        report.add(
            table.name.raw,
            rows: try keys(
                """
                SELECT k FROM (\(last)) AS l JOIN \(table.name) AS t ON t.Z_PK = k WHERE kind <> 2 AND t.Z_ENT <> e ORDER BY k
                """
            ),
            "of another entity than in the history"
        )
    }

    /// Checks that all rows come from an insertion, unless they existed when the history began.
    ///
    /// If the keys of that moment were not kept, rows with keys below all inserted ones count as older.
    private func checkOrigin(_ table: SQLTable, _ report: inout VerificationReport) throws {
        let inserts = "SELECT ZENTITYPK FROM (\(changes(of: table))) WHERE ZCHANGETYPE = 0"
        let last = baseline?.lastKey(of: table).map(String.init) ?? "(SELECT MIN(ZENTITYPK) FROM (\(inserts)))"
        report.add(
            table.name.raw,
            rows: try keys(
                """
                SELECT Z_PK FROM \(table.name) WHERE Z_PK > \(last) AND NOT (Z_PK IN (\(inserts))) ORDER BY Z_PK
                """
            ),
            "without an insertion in the history"
        )
    }

    /// Checks that the history has a change of each row whose version is not that of a new row.
    ///
    /// Only rows that were inserted since the history began are checked.
    ///
    /// A row that was deleted in between comes back with a higher version.
    private func checkVersions(_ table: SQLTable, after last: Int, _ report: inout VerificationReport) throws {
        let changes = changes(of: table)
        report.add(
            table.name.raw,
            rows: try keys(
                """
                SELECT Z_PK FROM \(table.name) WHERE Z_PK > \(last) AND Z_OPT > 1
                AND Z_PK IN (SELECT ZENTITYPK FROM (\(changes)) WHERE ZCHANGETYPE = 0)
                AND NOT (Z_PK IN (SELECT ZENTITYPK FROM (\(changes)) WHERE ZCHANGETYPE <> 0)) ORDER BY Z_PK
                """
            ),
            "changed without an update in the history"
        )
    }
}

/// The transactions that a history lacks.
///
/// The first ones may have been purged, and others may have been picked out anywhere.
private struct HistoryHoles {
    /// The number of numbers without a transaction.
    let missing: Int64
    /// Whether numbers after the oldest remaining transaction are missing.
    private let areThere: Bool

    init(_ connection: Connection) throws {
        let last = try HistoryCounters.last(.transaction, connection)
        let oldest = try HistoryBeginning(connection: connection).oldest()
        let count = try connection.firstInt64("SELECT COUNT(*) FROM ATRANSACTION") ?? 0
        missing = last - count
        areThere = last - oldest + 1 != count
    }

    /// The changes that a query returns, each with its stretch.
    ///
    /// The stretch is the count of missing numbers before the change's transaction. No number is missing between two
    /// changes of one stretch.
    func stretches(_ changes: String) -> String {
        guard areThere else { return "SELECT *, 0 AS stretch FROM (\(changes))" }
        return """
            SELECT c.*, s.stretch FROM (\(changes)) AS c LEFT JOIN (SELECT Z_PK AS number,
            Z_PK - ROW_NUMBER() OVER (ORDER BY Z_PK) AS stretch FROM ATRANSACTION) AS s ON s.number = c.ZTRANSACTIONID
            """
    }

    /// The stretch after which no number is missing.
    var lastStretch: Int64 { areThere ? missing : 0 }
}
