import Foundation

// When a wait for a lock ends without success, the error should name the session that has the lock. The server reports
// that only while the wait lasts. So it is asked shortly before the time-out, on another connection, if one is free or
// can be opened in time.
extension ConnectionPool {
    /// The least time-out, in seconds, that leaves time to ask.
    private static let leastTimeout = 0.2

    /// Makes a connection ask which sessions block a statement whose wait is about to time out.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - seconds: How many seconds its statements wait for a lock; `nil` for the time-out.
    package func explainWaits(of connection: Connection, waiting seconds: Double? = nil) {
        let timeout = seconds ?? timeout
        guard !connection.isPooled, timeout >= Self.leastTimeout else { return }
        let rest = min(timeout / 4, 1)
        connection.explanation = WaitExplanation(after: timeout - rest) { [weak self] connection in
            self?.blockers(of: connection, within: rest)
        }
    }

    /// The sessions that block the statement of a connection, in a few words; `nil` if there are none, or if the answer
    /// does not come in time.
    private func blockers(of connection: Connection, within seconds: Double) -> String? {
        guard let asking = try? lease(waiting: 0, opening: seconds) else { return nil }
        defer { give(back: asking) }
        // The connection that asks does not explain its own waits.
        let explanation = asking.explanation
        asking.explanation = nil
        defer { asking.explanation = explanation }
        asking.patience = seconds
        guard asking.timeline == connection.timeline,
            let found = try? asking.query(Self.blockers, [.int8(Int64(connection.serverProcess))]), found.rowCount > 0
        else { return nil }
        return "blocked by " + found.rows.map(Self.described).joined(separator: "; and by ")
    }

    /// The sessions that have the lock, or that are earlier in its queue; the oldest transactions first.
    ///
    /// A prepared transaction has no process.
    private static let blockers = """
        SELECT b.pid::bigint, a.application_name, a.usename::text, a.state, a.wait_event_type = 'Lock',
        pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.xact_start)
        FROM (SELECT DISTINCT pg_catalog.unnest(pg_catalog.pg_blocking_pids($1::int)) AS pid) AS b
        LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = b.pid
        ORDER BY a.xact_start NULLS LAST LIMIT 3
        """

    /// A description of one of them: its process, names and age, but not its statement.
    private static func described(_ row: ResultRow) -> String {
        let process = row.int64(0)
        guard process != 0 else { return "a prepared transaction" }
        var text = "process \(process) of the server"
        let names = [("application", 1), ("role", 2)].compactMap { word, column in
            row.optionalString(column).flatMap { $0.isEmpty ? nil : "\(word) \"\($0)\"" }
        }
        if !names.isEmpty { text += " (\(names.joined(separator: ", ")))" }
        // The server may report nothing more about sessions of other roles.
        if !row.isNull(5) { text += ", whose transaction began \(Int(max(0, row.double(5)))) s ago" }
        if row.optionalString(3)?.hasPrefix("idle in transaction") == true { text += ", and is idle" }
        if row.int64(4) != 0 { text += ", and waits for a lock itself" }
        return text
    }
}
