import StrataPostgreSQL

/// An exported snapshot: a name by which other connections see the same data as an open transaction.
///
/// The name is valid as long as that transaction is open. The server reuses names after a crash, and another server has
/// the same names. So this also identifies the session that has exported the snapshot. While that session exists, the
/// name belongs to it.
struct PinnedSnapshotName: Sendable {
    private let name: String
    /// The session: the number of its process, and its start, in microseconds.
    private let process: Int64
    private let start: Int64

    /// The columns that export a snapshot, in a transaction of one moment, outside of any savepoint.
    static let columns = """
        pg_catalog.pg_export_snapshot(), pg_catalog.pg_backend_pid()::bigint,
        (SELECT \(begun) FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()))
        """

    private static let begun = "(EXTRACT(epoch FROM backend_start) * 1000000)::bigint"

    /// Reads the answer; `nil` if the server does not report enough.
    init?(_ row: ResultRow, from column: Int) {
        guard let name = row.optionalString(column), let process = row.optionalInt64(column + 1),
            let start = row.optionalInt64(column + 2)
        else { return nil }
        self.name = name
        self.process = process
        self.start = start
    }

    /// Begins a transaction that sees the same data, and posts a check of the session.
    ///
    /// - Parameter connection: Another connection.
    /// - Returns: The check. If its answer has a row, then the transaction sees the same data; if it has none, then it
    ///   may see anything. There is no answer if the session is gone, or belongs to another server.
    /// - Throws: ``PostgreSQLError``.
    func begin(on connection: Connection) throws -> PostedStatement {
        try connection.post("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        // The name cannot be a parameter.
        try connection.post("SET TRANSACTION SNAPSHOT \(connection.literal(name))", isKept: false)
        return try connection.post(
            "SELECT 1 FROM pg_catalog.pg_stat_get_activity($1::int) WHERE \(Self.begun) = $2",
            [.int8(process), .int8(start)]
        )
    }
}
