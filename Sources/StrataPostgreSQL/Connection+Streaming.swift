import CStrataPostgreSQL
import StrataLocks

// Rows of answers that may be larger than memory are handed out as they arrive.
extension Connection {
    /// Runs a statement, and hands out its rows as they arrive; `body` returns false to get no more.
    ///
    /// - Parameters:
    ///   - sql: The statement.
    ///   - parameters: Its values.
    ///   - mostRows: The most rows that can arrive; `nil` if that is not known. If there are few, then they all arrive
    ///     at once.
    ///   - body: Called with each row, which is valid during the call.
    /// - Throws: ``PostgreSQLError``, and what `body` throws.
    package func each(
        _ sql: String,
        _ parameters: [PostgreSQLValue] = [],
        mostRows: Int? = nil,
        body: (ResultRow) throws -> Bool
    ) throws {
        if let mostRows, mostRows <= WorkSize.heldRows {
            let result = try query(sql, parameters)
            for row in result.rows { guard try body(row) else { break } }
            return
        }
        // Otherwise the prelude would be in the pipeline of the statement.
        if unreviewed != nil { try readPostedAnswers() }
        guard !needsPrelude else {
            try command("BEGIN READ ONLY")
            do { try each(sql, parameters, body: body) } catch {
                awaitCancel()
                if !isBroken { try? rollback() }
                throw error
            }
            // All answers were read, so there is nothing left to cancel.
            if !isBroken { try rollback() }
            return
        }
        try requireUsable()
        var hasRows = false
        do {
            try stream(sql, binding: parameters, hasRows: &hasRows, body)
        } catch let error as PostgreSQLError where error.isStale && !isBroken {
            forgetPrepared()
            // If a transaction is open, then the error has ended it as well.
            guard isIdle, !hasRows else { throw error }
            try stream(sql, binding: parameters, hasRows: &hasRows, body)
        }
    }

    /// Sends a statement, and hands out its rows as they arrive.
    ///
    /// Posted statements are sent first, and a new statement is prepared, in the same round trip.
    ///
    /// - Parameters:
    ///   - sql: The statement.
    ///   - parameters: Its values.
    ///   - hasRows: Becomes true once a row was handed out.
    ///   - body: The function that ``each(_:_:mostRows:body:)`` takes.
    /// - Throws: ``PostgreSQLError``, and what `body` throws.
    private func stream(
        _ sql: String,
        binding parameters: [PostgreSQLValue],
        hasRows: inout Bool,
        _ body: (ResultRow) throws -> Bool
    ) throws {
        let earlier = removePosted()
        let isPiped = !earlier.isEmpty || isNew(sql, parameters)
        if isPiped, earlier.isEmpty {
            try dropSuperfluous()
            guard PQenterPipelineMode(handle) == 1 else { throw lost() }
        }
        let (_, preparing) = try send(sql, parameters)
        var refusal: PostgreSQLError?
        if isPiped {
            guard PQpipelineSync(handle) == 1 else { throw lost() }
            refusal = try readAnswers(to: earlier)
            if let preparing, try readAnswer(after: &refusal) == nil { forget(preparing, after: refusal) }
        }
        var failure: (any Error)? = refusal
        // In a pipeline libpq applies this mode to the statement whose answer comes next, and leaves it at the end of
        // that answer.
        if refusal == nil { RowChunks.begin(handle) }
        staysInSingleRowMode = !isPiped
        var wantsMore = true
        while let result = try nextAnswer(after: failure) {
            switch PQresultStatus(result) {
            case PGRES_SINGLE_TUPLE, PGRES_TUPLES_OK, RowChunks.status:
                // The last result has no rows, unless all rows arrived at once.
                defer { PQclear(result) }
                let count = PQntuples(result)
                guard count > 0, wantsMore else { continue }
                hasRows = true
                do {
                    for row in 0..<count where wantsMore {
                        wantsMore = try body(ResultRow(result: result, row: row, owner: nil))
                    }
                } catch {
                    failure = error
                    wantsMore = false
                }
                if !wantsMore { canceller.cancel() }
            case PGRES_COMMAND_OK, PGRES_PIPELINE_ABORTED: PQclear(result)
            default:
                let result = QueryResult(result)
                // The cancel that ends an unwanted statement is no failure.
                if wantsMore { failure = failure ?? error(of: result) }
            }
        }
        if isPiped { try leavePipeline(failure) }
        if !wantsMore { awaitCancel() }
        if let failure { throw failure }
    }
}
