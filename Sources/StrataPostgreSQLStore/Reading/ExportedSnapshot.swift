import StrataPostgreSQL

/// The name by which other connections see what the transaction of one sees, for as long as that transaction is open.
///
/// The server uses names again after a crash, and another server has the same ones. So the session that has given it is named as well: as long
/// as that one is there, the name is its own.
struct ExportedSnapshot: Sendable {
    private let name: String
    /// The session: the number of its process, and when it has begun, in microseconds.
    private let process: Int64
    private let start: Int64

    /// What tells an exported snapshot, in a transaction of one moment that is outside of any savepoint.
    static let columns = """
        pg_catalog.pg_export_snapshot(), pg_catalog.pg_backend_pid()::bigint,
        (SELECT \(begun) FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()))
        """

    private static let begun = "(EXTRACT(epoch FROM backend_start) * 1000000)::bigint"

    /// Takes the answer apart; `nil` if the server does not tell enough.
    init?(_ row: ResultRow, from column: Int) {
        guard let name = row.optionalString(column), let process = row.optionalInt64(column + 1),
            let start = row.optionalInt64(column + 2)
        else { return nil }
        self.name = name
        self.process = process
        self.start = start
    }

    /// Begins a transaction that sees the same, together with the first statement in it.
    ///
    /// - Parameter connection: Another connection.
    /// - Returns: What has a row if it does; if not, what it sees may be anything. There is no answer if the session is gone, or of another server.
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
