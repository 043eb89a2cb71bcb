import StrataPostgreSQL

/// The settings of a session for a store, or, behind a pooler, of each transaction.
struct SessionSettings {
    let values: [PostgreSQLValue]

    init(_ target: ConnectionTarget, timeout: Double) {
        // The limit ends before the client gives up, so that the server reports the cause: a lock.
        let wait = timeout - min(timeout / 20, 0.5)
        let milliseconds = String(Int(max(1, min(wait * 1000, 2e9))))
        let idle = String(Int(max(10_000, min(timeout * 1000, 2e9))))
        values = [.text("\(target.quotedSchema), pg_temp"), .text(milliseconds), .text(idle)]
    }

    /// The expressions that make the settings.
    ///
    /// - Parameter isLocal: Whether they end with the transaction.
    /// - Returns: The expressions, whose parameters are ``values``.
    func sql(isLocal: Bool) -> String {
        """
        pg_catalog.set_config('search_path', $1, \(isLocal)), pg_catalog.set_config('lock_timeout', $2, \(isLocal)),
        pg_catalog.set_config('idle_in_transaction_session_timeout', $3, \(isLocal))
        """
    }

    /// The expressions that make the settings which do not depend on the store; a pooler closes the connection to the client itself.
    static let ofConnection = "\(keepalives), \(clientCheck)"

    /// Makes the server check after a minute whether the machine of a silent client still exists.
    ///
    /// Otherwise the locks and the version of the client would stay for two hours. A socket of the same machine has
    /// no such settings.
    private static let keepalives = [("idle", 60), ("interval", 10), ("count", 3)].map { name, most in
        let setting = "tcp_keepalives_\(name)"
        return """
            CASE WHEN pg_catalog.current_setting('\(setting)')::int > \(most)
            THEN pg_catalog.set_config('\(setting)', '\(most)', false) END
            """
    }.joined(separator: ", ")

    /// Makes the server check every few seconds whether the client of a long statement still exists.
    ///
    /// Otherwise the statement of a killed process would run to its end, and keep its locks. PostgreSQL has this
    /// since 14, and refuses it on systems that cannot detect it.
    private static let clientCheck = """
        CASE WHEN pg_catalog.current_setting('client_connection_check_interval', true) = '0' AND pg_catalog.version() LIKE '%linux%'
        THEN pg_catalog.set_config('client_connection_check_interval', '5s', false) END
        """
}

extension OpenPostgreSQLStore {
    /// The pool of connections to a database; each of them sees only the store's schema.
    ///
    /// - Parameters:
    ///   - target: The database and the schema.
    ///   - size: The most connections in use at a time.
    ///   - timeout: How many seconds to wait for a connection or for the server.
    ///   - openingTimeout: How many seconds to wait for a new connection, if that is less.
    ///   - budget: The connections that the stores of the server have together; `nil` for no limit.
    /// - Returns: The pool.
    static func pool(
        _ target: ConnectionTarget,
        size: Int,
        timeout: Double,
        openingTimeout: Double = .infinity,
        budget: ConnectionBudget? = nil
    ) -> ConnectionPool {
        let sharing = budget.map { budget in
            ConnectionPool.Sharing(budget) { connection in try takeOver(connection, for: target, timeout: timeout) }
        }
        return ConnectionPool(target, size: size, timeout: timeout, openingTimeout: openingTimeout, sharing: sharing) {
            connection in
            let settings = SessionSettings(target, timeout: timeout)
            if try target.isPooled ?? connection.isBehindPooler() {
                connection.isPooled = true
                connection.beginTransactions(with: prelude(settings))
            } else {
                try connection.query(
                    "SELECT \(settings.sql(isLocal: false)), \(SessionSettings.ofConnection)",
                    settings.values
                )
            }
            try ServerIdentity.read(connection)
        }
    }

    /// Makes each transaction behind a pooler lock the metadata before its first read, which decides what the transaction sees.
    ///
    /// Without a pooler, a transaction begins with its first statement anyway.
    static func lockFirst(_ connection: Connection, for target: ConnectionTarget, timeout: Double) {
        guard connection.isPooled else { return }
        let settings = SessionSettings(target, timeout: timeout)
        connection.beginTransactions(
            with: TransactionPrelude(
                lock: "LOCK TABLE \(target.quotedSchema).strata_store IN ACCESS SHARE MODE",
                "SELECT \(settings.sql(isLocal: true))",
                settings.values
            )
        )
    }

    /// Makes a connection serve a portable store: each of its transactions reads the metadata, as behind a pooler.
    static func servePortable(_ connection: Connection, for target: ConnectionTarget, timeout: Double) {
        connection.isPortable = true
        guard !connection.isPooled else { return }
        connection.isPooled = true
        connection.beginTransactions(with: prelude(SessionSettings(target, timeout: timeout)))
    }

    private static func prelude(_ settings: SessionSettings) -> TransactionPrelude {
        TransactionPrelude("SELECT \(settings.sql(isLocal: true))", settings.values)
    }

    /// Makes a session that has served the store of another schema serve a store: it shows the other schema, has the other time-outs, and gives up its
    /// advisory locks, by which a migration would find it.
    ///
    /// Stores leave nothing else in a session: their transactions make all other settings for themselves only, and none of them makes temporary tables
    /// or listens on a session of a pool. Behind a pooler nothing is left in the session at all.
    ///
    /// - Parameters:
    ///   - connection: The session, without a transaction.
    ///   - target: The database and the schema of the store.
    ///   - timeout: The time-out of the store.
    /// - Throws: ``PostgreSQLError``.
    static func takeOver(_ connection: Connection, for target: ConnectionTarget, timeout: Double) throws {
        let settings = SessionSettings(target, timeout: timeout)
        connection.isPortable = false
        guard !connection.isPooled else {
            connection.beginTransactions(with: prelude(settings))
            connection.serverRun = connection.serverRun?.withTable(nil)
            return
        }
        let found = try connection.query(
            "SELECT pg_catalog.pg_advisory_unlock_all(), \(ServerIdentity.table(in: "$4")), \(settings.sql(isLocal: false))",
            settings.values + [.text(target.schema)]
        )
        connection.serverRun = connection.serverRun?.withTable(found.rowCount > 0 ? found[0].optionalInt64(1) : nil)
    }
}
