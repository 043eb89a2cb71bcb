import CStrataPostgreSQL

/// A statement that was sent with others, and its answer once that was received.
///
/// It belongs to the thread that uses its connection.
package final class PostedStatement {
    /// The prepared statement that the connection has to forget if preparing it fails.
    fileprivate let preparing: PreparedStatements.Key?
    fileprivate var result: QueryResult?
    /// Whether the server has reported that it has executed the statement.
    package var isDone: Bool { result != nil }

    fileprivate init(preparing: PreparedStatements.Key?) { self.preparing = preparing }
}

// Statements are sent together, in one round trip, if the next one does not depend on the answer to the one before. If
// one of them fails, then the server executes none of those after it.
extension Connection {
    /// The most bytes that may wait to be sent before the next statement is made.
    private static let mostUnsent = 1 << 16

    /// Whether statements were posted whose answers were not received yet.
    package var hasPosted: Bool { !posted.isEmpty }

    /// Sends a statement, together with those that are posted before the next answer is taken.
    ///
    /// Large statements are sent while the caller makes the next one.
    ///
    /// - Parameters:
    ///   - sql: The statement.
    ///   - parameters: Its values.
    ///   - isKept: Whether the statement stays prepared for the next time.
    ///   - mayWait: Whether the server may take long for it, because it waits for others or has much to do. If there
    ///     are several such statements, then each of them has the time that one may take: the server sends the answer
    ///     to one of them before it begins the next.
    /// - Returns: The statement, which holds the answer later.
    /// - Throws: ``PostgreSQLError`` if the server accepts nothing more in time.
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
        // Nothing is committed before the server behind the connection is known.
        if unreviewed != nil, sql == "COMMIT" { try readPostedAnswers() }
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
            // At most one large statement waits, whatever the number of rows. Answers are read meanwhile, so the server
            // never waits.
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

    /// Sends what was posted so far, so that the server begins while the caller makes the next statement.
    package func sendPosted() throws {
        guard hasPosted else { return }
        try requireUsable()
        guard PQflush(handle) >= 0 else { throw lost() }
    }

    /// Makes the server send the answers to all that was posted so far, while it goes on with what is posted next.
    ///
    /// - Parameter atOnce: Whether the server begins now with what was posted; otherwise it begins together with the
    ///   next statement.
    /// - Throws: ``PostgreSQLError`` if the connection was lost.
    package func requestAnswers(atOnce: Bool) throws {
        guard requested < posted.count else { return }
        try requireUsable()
        guard PQsendFlushRequest(handle) == 1, !atOnce || PQflush(handle) >= 0 else { throw lost() }
        hasSlowAnswer = false
        requested = posted.count
    }

    /// The answer to a statement; if it is not there yet, takes the requested answers, or the answers to all posted
    /// statements.
    package func answer(_ statement: PostedStatement) throws -> QueryResult {
        if statement.result == nil {
            // If nothing was posted since, all answers are read, which ends the pipeline.
            let isRequested = requested < posted.count && posted.prefix(requested).contains { $0 === statement }
            if isRequested { try readRequestedAnswers() } else { try readPostedAnswers() }
        }
        guard let result = statement.result else { throw noAnswer }
        return result
    }

    /// Reads the answers that were requested.
    ///
    /// The answers to statements that were posted since are read later.
    private func readRequestedAnswers() throws {
        let statements = posted.prefix(requested)
        posted.removeFirst(requested)
        requested = 0
        try requireUsable()
        if let failure = try readAnswers(to: statements) { throw failure }
    }

    /// Reads the answers to all statements that were posted.
    ///
    /// - Throws: The error of the first statement that failed.
    package func readPostedAnswers() throws {
        guard hasPosted else { return }
        let statements = removePosted()
        try requireUsable()
        guard PQpipelineSync(handle) == 1 else { throw lost() }
        let failure = try readAnswers(to: statements)
        try leavePipeline(failure)
        try reviewPosted(failure)
        if let failure { throw failure }
    }

    /// Removes and returns the posted statements; the caller reads their answers.
    func removePosted() -> ArraySlice<PostedStatement> {
        defer { (posted, requested) = ([], 0) }
        return posted[...]
    }

    /// Reads the end of the pipeline, after the answers to all that was sent.
    ///
    /// - Parameter failure: The error of one of these statements.
    /// - Throws: That error, or ``PostgreSQLError`` if the connection was lost, when the end does not arrive.
    func leavePipeline(_ failure: (any Error)?) throws {
        guard let end = try nextResult(after: failure), PQresultStatus(end.result) == PGRES_PIPELINE_SYNC,
            PQexitPipelineMode(handle) == 1
        else { throw failure ?? lost() }
    }

    /// Reads the answers to statements.
    ///
    /// - Returns: The error of the first statement that failed.
    func readAnswers(to statements: ArraySlice<PostedStatement>) throws -> PostgreSQLError? {
        var failure: PostgreSQLError?
        for statement in statements {
            if let key = statement.preparing, try readAnswer(after: &failure) == nil { forget(key, after: failure) }
            statement.result = try readAnswer(after: &failure)
        }
        return failure
    }

    /// The answer to one message; `nil` if it failed, or if an earlier one did.
    func readAnswer(after failure: inout PostgreSQLError?) throws -> QueryResult? {
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

    /// Ends the transaction that is open.
    ///
    /// Errors of statements that were posted in it are ignored.
    package func rollback() throws {
        if hasPosted { try? readPostedAnswers() }
        try command("ROLLBACK")
    }
}
