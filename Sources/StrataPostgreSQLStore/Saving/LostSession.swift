import StrataPostgreSQL

/// The session of the server that was to commit a transaction, and whose connection is lost.
struct LostSession {
    let process: Int64
    /// The number of the transaction.
    let transaction: String

    /// The state of the session.
    enum State {
        /// It has ended, or has begun something else.
        case gone
        /// It was still there, and was asked to end.
        case ended(waitedForLock: Bool)
        /// The transaction is committed on this server, which waits for a standby to confirm that.
        case waitsForStandby
    }

    /// Ends the session if the server still works in it for a client that is no longer connected.
    ///
    /// A session that waits for a standby is left alone. If it were ended, the transaction would count as committed
    /// although the standby may lack it and may replace the server.
    func end(_ connection: Connection) throws -> State {
        let found = try connection.query(
            """
            SELECT CASE WHEN wait_event = 'SyncRep' THEN NULL ELSE pg_catalog.pg_terminate_backend(pid) END, wait_event_type = 'Lock'
            FROM pg_catalog.pg_stat_activity WHERE pid = $1 AND backend_xid = $2::text::xid8::xid
            """,
            [.int8(process), .text(transaction)]
        )
        guard found.rowCount > 0 else { return .gone }
        return found[0].isNull(0) ? .waitsForStandby : .ended(waitedForLock: found[0].optionalInt64(1) == 1)
    }

    /// Whether commits on the server wait for standbys.
    static func mayWaitForStandby(_ connection: Connection) throws -> Bool {
        try connection.query("SELECT pg_catalog.current_setting('synchronous_standby_names')")[0].string(0) != ""
    }

    /// The error for a commit that no standby has confirmed.
    static let unconfirmed = PostgreSQLError(
        .server,
        "the transaction is committed on this server, and no standby has confirmed it (synchronous_standby_names)"
    )
}
