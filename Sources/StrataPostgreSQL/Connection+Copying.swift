import CStrataPostgreSQL

// COPY takes many rows in a fifth less time than an INSERT does that selects them from arrays. But it cannot be sent together with other
// statements, so it has round trips of its own: for its begin, and for its end.
extension Connection {
    /// Has a table take in rows, in the transaction that is open.
    ///
    /// - Parameters:
    ///   - sql: COPY … FROM STDIN (FORMAT binary).
    ///   - body: Makes the rows, and hands them to the function that it is given. The server works on them meanwhile.
    /// - Throws: ``PostgreSQLError``, and what `body` throws. The transaction has to be rolled back then.
    package func copy(_ sql: String, _ body: (_ send: (CopiedRows) throws -> Void) throws -> Void) throws {
        try settle()
        try requireUsable()
        onStatement?(sql)
        guard PQsendQuery(handle, sql) == 1 else { throw lost() }
        staysInSingleRowMode = false
        guard let begun = try nextResult() else { throw noAnswer }
        guard PQresultStatus(begun.result) == PGRES_COPY_IN else {
            while try nextResult() != nil {}
            throw error(of: begun)
        }
        do {
            try CopiedRows.header.withUnsafeBytes { try put($0) }
            try body { rows in try rows.bytes.withBytes { try put($0) } }
            try CopiedRows.trailer.withUnsafeBytes { try put($0) }
        } catch {
            // The server forgets what it has got. What it says to that is no news.
            if !isBroken, (try? endCopy("there are no more rows")) != nil { _ = try? results() }
            throw error
        }
        try endCopy(nil)
        _ = try results()
    }

    /// Hands bytes to the server; waits only for those before them.
    private func put(_ bytes: UnsafeRawBufferPointer) throws {
        // So that one piece waits to be sent at most.
        try sendAll()
        while true {
            let taken = PQputCopyData(handle, bytes.baseAddress, Int32(bytes.count))
            guard taken >= 0 else { throw lost() }
            if taken > 0 { break }
            try sendAll()
        }
        guard PQflush(handle) >= 0 else { throw lost() }
    }

    private func endCopy(_ failure: String?) throws {
        while true {
            let taken = PQputCopyEnd(handle, failure)
            guard taken >= 0 else { throw lost() }
            if taken > 0 { return }
            try sendAll()
        }
    }
}
