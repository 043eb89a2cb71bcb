import CStrataPostgreSQL

// COPY takes a fifth less time for many rows than an INSERT that selects them from arrays. But it cannot be sent
// together with other statements, so it needs two more round trips: one to begin, and one to end.
extension Connection {
    /// Copies rows into a table, in the transaction that is open.
    ///
    /// - Parameters:
    ///   - sql: COPY … FROM STDIN (FORMAT binary).
    ///   - body: Makes the rows, and hands them to the function that it is given. The server works on them meanwhile.
    /// - Throws: ``PostgreSQLError``, and what `body` throws. The transaction has to be rolled back then.
    package func copy(_ sql: String, _ body: (_ send: (CopiedRows) throws -> Void) throws -> Void) throws {
        try readPostedAnswers()
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
            // The server discards the rows that it has received. Its answer says only that, so it is ignored.
            if !isBroken, (try? endCopy("there are no more rows")) != nil { _ = try? results() }
            throw error
        }
        try endCopy(nil)
        _ = try results()
    }

    /// The most bytes of one message.
    ///
    /// A row may be larger than the longest possible message; the server joins the parts, wherever they are cut.
    private static let mostCopied = 1 << 24

    /// Hands bytes to the server; waits only until the bytes before them are sent.
    private func put(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            // At most one message waits to be sent.
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
