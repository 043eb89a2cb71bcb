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
            let failure = error(of: begun)
            while try nextResult(after: failure) != nil {}
            throw failure
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

    /// The most bytes of one message: a row may be larger than the longest message there can be, and the server joins what is cut anywhere.
    private static let mostCopied = 1 << 24

    /// Hands bytes to the server; waits only for those before them.
    private func put(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            // So that one message waits to be sent at most.
            try sendAll()
            let message = rest.prefix(Self.mostCopied)
            let taken = PQputCopyData(
                handle,
                UnsafeRawBufferPointer(rebasing: message).baseAddress,
                Int32(message.count)
            )
            guard taken >= 0 else { throw lost() }
            if taken > 0 { rest = rest.dropFirst(message.count) }
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
