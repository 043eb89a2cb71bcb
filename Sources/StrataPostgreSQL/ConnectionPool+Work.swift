import Foundation

// One statement of a batch may work for hours, and the server sends nothing meanwhile. A server that has stopped is
// silent too. So at the end of each time-out another connection asks the server whether it is at work.
extension ConnectionPool {
    /// The most seconds that one statement may work.
    private static let mostWork = 86_400.0

    /// How many seconds the server may take to answer.
    private static let answerTime = 5.0

    /// Runs `body`, whose statements may outlast the time-out as long as the server says that it is at work.
    ///
    /// Behind a pooler it is unknown which session works for the connection, so the time-out is the limit.
    ///
    /// - Parameters:
    ///   - connection: The connection that runs the statements.
    ///   - body: Runs the statements.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`.
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
    /// A statement that waits for a lock counts too, because that wait has a separate limit.
    private func isAtWork(_ connection: Connection) -> Bool {
        // A connection that was not used for long may turn out to be lost. Statements that work may have the whole budget of
        // connections, so the question does not count in it.
        for _ in 0..<2 {
            guard let asking = try? spare(opening: Self.answerTime, countsInBudget: false) else { return false }
            asking.patience = Self.answerTime
            defer { giveBackInBackground(asking) }
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
