import CStrataPostgreSQL

/// A statement that was sent with others, and its answer once that was taken.
///
/// Belongs to the thread that uses its connection.
package final class PostedStatement {
    /// What the connection has to forget if the statement cannot be prepared.
    fileprivate let preparing: PreparedStatements.Key?
    fileprivate var result: QueryResult?
    /// Whether the server has told that it has carried the statement out.
    package var isDone: Bool { result != nil }

    fileprivate init(preparing: PreparedStatements.Key?) { self.preparing = preparing }
}

// Statements whose answers nobody has to see before the next one is made are sent together, and take one round trip. After one that fails
// the server carries out none of them, up to the last.
extension Connection {
    /// As much as may wait to be sent, in bytes, before the next statement is made.
    private static let mostUnsent = 1 << 16

    /// Whether statements were posted whose answers were not taken.
    package var hasPosted: Bool { !posted.isEmpty }

    /// Sends a statement, together with those that come before the next answer is taken.
    ///
    /// What is large is on its way while the caller makes the next statement.
    ///
    /// - Parameters:
    ///   - sql: The statement.
    ///   - parameters: Its values.
    ///   - isKept: Whether the statement stays prepared for the next time.
    ///   - mayWait: Whether the server may take long for it, since it waits for others or has much to do. Of several such statements each has
    ///     the time that one may take: the server does not keep the answer to one of them until it has the next.
    /// - Returns: What tells the answer.
    /// - Throws: ``PostgreSQLError``: if the server takes nothing more in time.
    @discardableResult
    package func post(
        _ sql: String,
        _ parameters: [PostgreSQLValue] = [],
        isKept: Bool = true,
        mayWait: Bool = false
    ) throws -> PostedStatement {
        if needsPrelude {
            let begun = try postPrelude(after: sql.hasPrefix("BEGIN") ? sql : nil)
            if let begun { return begun }
        }
        // Nothing is committed before one knows what was written to.
        if unreviewed != nil, sql == "COMMIT" { try settle() }
        return try postAlone(sql, parameters, isKept: isKept, mayWait: mayWait)
    }

    @discardableResult
    func postAlone(
        _ sql: String,
        _ parameters: [PostgreSQLValue] = [],
        isKept: Bool = true,
        mayWait: Bool = false
    ) throws -> PostedStatement {
        try requireUsable()
        if posted.isEmpty {
            try dropSuperfluous()
            guard PQenterPipelineMode(handle) == 1 else { throw lost() }
            unsent = 0
            hasSlowAnswer = false
            if staysInSingleRowMode {
                // libpq leaves the mode with the first statement, whatever that is.
                staysInSingleRowMode = false
                try postAlone("", isKept: false)
            }
        }
        if hasSlowAnswer, mayWait || unsent > Self.mostUnsent {
            guard PQsendFlushRequest(handle) == 1 else { throw lost() }
            hasSlowAnswer = false
        }
        if unsent > Self.mostUnsent {
            // One large statement waits at most, whatever the number of rows; answers are read meanwhile, so that the server never waits.
            try sendAll()
            unsent = 0
        }
        do {
            let (count, preparing) = try send(sql, parameters, isKept: isKept)
            let statement = PostedStatement(preparing: preparing)
            unsent += count
            posted.append(statement)
            if mayWait || count > Self.mostUnsent { hasSlowAnswer = true }
            if unsent > Self.mostUnsent, PQflush(handle) < 0 { throw lost() }
            return statement
        } catch {
            isBroken = true
            throw error
        }
    }

    /// Has the server begin with what was posted so far, while the caller makes what comes next.
    package func sendPosted() throws {
        guard hasPosted else { return }
        try requireUsable()
        guard PQflush(handle) >= 0 else { throw lost() }
    }

    /// Has the server send the answers to all that was posted so far, while it goes on with what is posted next.
    ///
    /// - Parameter atOnce: Whether it begins with what was posted now, or together with what comes next.
    /// - Throws: ``PostgreSQLError`` of a connection that was lost.
    package func requestAnswers(atOnce: Bool) throws {
        guard requested < posted.count else { return }
        try requireUsable()
        guard PQsendFlushRequest(handle) == 1, !atOnce || PQflush(handle) >= 0 else { throw lost() }
        hasSlowAnswer = false
        requested = posted.count
    }

    /// The answer to a statement; takes those of all that were posted if it is not there yet, or of those that were requested.
    package func answer(_ statement: PostedStatement) throws -> QueryResult {
        if statement.result == nil {
            // If nothing was posted since, all answers are taken, which ends the pipeline.
            let isRequested = requested < posted.count && posted.prefix(requested).contains { $0 === statement }
            if isRequested { try takeRequested() } else { try settle() }
        }
        guard let result = statement.result else { throw noAnswer }
        return result
    }

    /// Takes the answers that were requested.
    ///
    /// Those to what was posted since stay with the server.
    private func takeRequested() throws {
        let statements = posted.prefix(requested)
        posted.removeFirst(requested)
        requested = 0
        try requireUsable()
        if let failure = try take(statements) { throw failure }
    }

    /// Takes the answers to all statements that were posted.
    ///
    /// - Throws: What the first of them that failed has failed with.
    package func settle() throws {
        guard hasPosted else { return }
        let statements = takePosted()
        try requireUsable()
        guard PQpipelineSync(handle) == 1 else { throw lost() }
        let failure = try take(statements)
        try leavePipeline(failure)
        try reviewPosted(failure)
        if let failure { throw failure }
    }

    /// What was posted, whose answers the caller takes.
    func takePosted() -> ArraySlice<PostedStatement> {
        defer { (posted, requested) = ([], 0) }
        return posted[...]
    }

    /// Takes what ends the pipeline, after the answers to all that was sent.
    ///
    /// - Parameter failure: What one of them has failed with.
    /// - Throws: That, or ``PostgreSQLError`` of a connection that was lost, if the end has not come.
    func leavePipeline(_ failure: (any Error)?) throws {
        guard let end = try nextResult(after: failure), PQresultStatus(end.result) == PGRES_PIPELINE_SYNC,
            PQexitPipelineMode(handle) == 1
        else { throw failure ?? lost() }
    }

    /// Takes the answers to statements.
    ///
    /// - Returns: What the first of them that failed has failed with.
    func take(_ statements: ArraySlice<PostedStatement>) throws -> PostgreSQLError? {
        var failure: PostgreSQLError?
        for statement in statements {
            if let key = statement.preparing, try take(&failure) == nil { forget(key, after: failure) }
            statement.result = try take(&failure)
        }
        return failure
    }

    /// The answer to one message; `nil` if it failed, or if another one before it did.
    func take(_ failure: inout PostgreSQLError?) throws -> QueryResult? {
        var answer: QueryResult?
        while let result = try nextResult(after: failure) {
            switch PQresultStatus(result.result) {
            case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: answer = result
            case PGRES_PIPELINE_ABORTED: break
            default: failure = failure ?? error(of: result)
            }
            if isBroken { throw failure ?? lost() }
        }
        return answer
    }

    /// Ends the transaction that is open, and what was posted in it, whatever becomes of that.
    package func rollback() throws {
        if hasPosted { try? settle() }
        try command("ROLLBACK")
    }
}
