import StrataPostgreSQL

/// The identity of the server that a session has reached: its cluster, its timeline, the end of its log, and its run.
enum ServerIdentity {
    /// The timeline of a primary; null for a replica.
    ///
    /// The control file shows a promotion late. The name of the current log file begins with the timeline.
    private static let timeline = """
        CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL
        ELSE pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 1, 8) END
        """

    /// The number that a cluster was given when it was made; its replicas share it.
    private static let system = "(SELECT system_identifier FROM pg_catalog.pg_control_system())"

    /// The end of the log of a primary; null for a replica.
    private static let position = """
        CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL
        ELSE pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')::bigint END
        """

    /// The start time of the server.
    private static let start = "EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time())::text"

    /// The number of the database, which differs from that of an earlier database of the same name.
    private static let database = """
        (SELECT oid::bigint FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
        """

    /// The number of the table with the store's metadata, which differs from that of an earlier table of the same name;
    /// null if there is no such table.
    ///
    /// - Parameter schema: The expression of the schema's name.
    /// - Returns: The expression of the number.
    static func table(in schema: String) -> String {
        """
        (SELECT c.oid::bigint FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relname = 'strata_store' AND n.nspname = \(schema))
        """
    }

    /// The start time of the server, and its own processes, all of which end when one process crashes; and the database
    /// and the store in it.
    ///
    /// Any role may see the numbers of these processes.
    private static let run = [
        start,
        """
        (SELECT pg_catalog.array_agg(pid::bigint) FROM pg_catalog.pg_stat_activity WHERE datid IS NULL AND usesysid IS NULL)
        """,
        database, table(in: "pg_catalog.current_schema()"),
    ]

    /// Asks a new session, and notes its answers; facts that the server does not report stay unknown.
    static func read(_ connection: Connection) throws {
        if let found = try ask([timeline, system, position] + run, connection) {
            connection.timeline = timeline(found, 0)
            connection.systemIdentifier = found.optionalInt64(1)
            connection.logPosition = found.optionalInt64(2)
            connection.serverRun = run(found, 3)
            return
        }
        connection.timeline = try ask([timeline], connection).flatMap { timeline($0, 0) }
        connection.systemIdentifier = try ask([system], connection)?.optionalInt64(0)
        connection.logPosition = try ask([position], connection)?.optionalInt64(0)
        connection.serverRun = try ask(run, connection).flatMap { run($0, 0) }
    }

    /// Asks an open session for the run again; if the server does not answer, then the session keeps its knowledge.
    static func readRun(of connection: Connection) throws {
        guard connection.serverRun != nil else { return }
        connection.serverRun = try ask(run, connection).flatMap { run($0, 0) } ?? connection.serverRun
    }

    // MARK: - Behind a pooler

    /// The facts by which each transaction behind a pooler notices another server; empty if the server did not report
    /// them to a connection.
    ///
    /// A pooler keeps the connections of its clients when the server is started again, or when another server or
    /// database replaces it. A crash of a single process of the server is not noticed.
    static func columns(behind connection: Connection) -> [String] {
        connection.timeline == nil || connection.serverRun == nil ? [] : [timeline, start, database]
    }

    /// Ensures that a pooler still leads to the server that the connection has reached first, in the same run.
    ///
    /// - Throws: ``PostgreSQLError`` of the kind `.connection` otherwise. The connection is given up, so that the next
    ///   one finds out which server there is.
    static func requireSame(behind connection: Connection) throws {
        let columns = columns(behind: connection)
        guard !columns.isEmpty else { return }
        let answer = try connection.query("SELECT \(columns.joined(separator: ", "))")
        if answer.rowCount == 1, timeline(answer[0], 0) == connection.timeline,
            answer[0].optionalString(1) == connection.serverRun?.start,
            answer[0].optionalInt64(2) == connection.serverRun?.database
        {
            return
        }
        connection.giveUp()
        throw PostgreSQLError(
            .connection,
            "the pooler leads to another server or database than before, or the server was started again"
        )
    }

    // MARK: - Asking

    /// `nil` if the server refuses to answer.
    private static func ask(_ columns: [String], _ connection: Connection) throws -> ResultRow? {
        do {
            let found = try connection.query("SELECT \(columns.joined(separator: ", "))")
            return found.rowCount == 1 ? found[0] : nil
        } catch let error as PostgreSQLError where error.kind == .server {
            return nil
        }
    }

    private static func timeline(_ row: ResultRow, _ column: Int) -> Int64? {
        row.optionalString(column).flatMap { Int64($0, radix: 16) }
    }

    private static func run(_ row: ResultRow, _ column: Int) -> ServerRun? {
        guard let start = row.optionalString(column), !row.isNull(column + 1) else { return nil }
        return ServerRun(
            start: start,
            processes: Set(row.int64s(column + 1)),
            database: row.optionalInt64(column + 2),
            table: row.optionalInt64(column + 3)
        )
    }
}
