import Foundation

// One statement of a batch may be hours of work, without a word of the server's. A server that has been stopped is as silent. So at the end of
// each time-out the server is asked, on another connection, whether it is at work.
extension ConnectionPool {
    /// For how many seconds one statement may work at most.
    private static let mostWork = 86_400.0

    /// For how many seconds the server may take to tell.
    private static let answerTime = 5.0

    /// Runs `body`, whose statements may take longer than the server may be silent, as long as it says that it is at work.
    ///
    /// Behind a pooler nobody knows which session to ask about, and the time-out is the limit.
    ///
    /// - Parameters:
    ///   - connection: What runs them.
    ///   - body: Runs them.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws.
    package func letWork<R>(_ connection: Connection, _ body: () throws -> R) rethrows -> R {
        guard !connection.isPooled else { return try body() }
        let end = ContinuousClock.now + .seconds(Self.mostWork)
        connection.isAtWork = { [weak self] connection in
            ContinuousClock.now < end && self?.isAtWork(connection) == true
        }
        defer { connection.isAtWork = nil }
        return try body()
    }

    /// Whether the server says that it runs a statement for a connection.
    ///
    /// One that waits for a lock counts: that has a limit of its own.
    private func isAtWork(_ connection: Connection) -> Bool {
        // One that nobody has used for long may turn out to be lost.
        for _ in 0..<2 {
            guard let asking = try? spare(opening: Self.answerTime) else { return false }
            asking.patience = Self.answerTime
            defer { takeBack(asking) }
            guard asking.timeline == connection.timeline else { return false }
            let found = try? asking.query(
                "SELECT 1 FROM pg_catalog.pg_stat_activity WHERE pid = $1 AND state = 'active'",
                [.int8(Int64(connection.serverProcess))]
            )
            if let found { return found.rowCount == 1 }
        }
        return false
    }
}
