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
        try copyIn(sql) {
            try CopiedRows.header.withUnsafeBytes { try put($0) }
            try body { rows in try rows.bytes.withBytes { try put($0) } }
            try CopiedRows.trailer.withUnsafeBytes { try put($0) }
        }
    }

    /// Copies rows that are bytes already into a table, in the transaction that is open.
    ///
    /// - Parameters:
    ///   - sql: COPY … FROM STDIN.
    ///   - body: Hands the bytes to the function that it is given, cut anywhere.
    /// - Throws: ``PostgreSQLError``, and what `body` throws. The transaction has to be rolled back then.
    package func copyBytes(
        _ sql: String,
        _ body: (_ send: (UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {
        try copyIn(sql) { try body { try put($0) } }
    }

    private func copyIn(_ sql: String, _ body: () throws -> Void) throws {
        try beginCopy(sql, PGRES_COPY_IN)
        do { try body() } catch {
            // The server discards the rows that it has received. Its answer says only that, so it is ignored.
            if !isBroken, (try? endCopy("there are no more rows")) != nil { _ = try? results() }
            throw error
        }
        try endCopy(nil)
        _ = try results()
    }

    /// Copies rows out of the database, in the transaction that is open.
    ///
    /// The server may be silent for as long as ``patience`` between two rows.
    ///
    /// - Parameters:
    ///   - sql: COPY … TO STDOUT.
    ///   - body: Called with the bytes of each row, which are valid during the call. If it throws, then the connection
    ///     is given up, because the rest of the rows is not read.
    /// - Throws: ``PostgreSQLError``, and what `body` throws.
    package func copyOut(_ sql: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        try beginCopy(sql, PGRES_COPY_OUT)
        while true {
            var row: UnsafeMutablePointer<CChar>?
            let count = PQgetCopyData(handle, &row, 1)
            defer { PQfreemem(row) }
            switch count {
            case 0: try receiveMore()
            case -1:
                _ = try results()
                return
            case ..<0: throw lost()
            default:
                do { try body(UnsafeRawBufferPointer(start: row, count: Int(count))) } catch {
                    giveUp()
                    throw error
                }
            }
        }
    }

    private func beginCopy(_ sql: String, _ status: ExecStatusType) throws {
        try readPostedAnswers()
        try requireUsable()
        onStatement?(sql)
        guard PQsendQuery(handle, sql) == 1 else { throw lost() }
        staysInSingleRowMode = false
        guard let begun = try nextResult() else { throw noAnswer }
        guard PQresultStatus(begun.result) == status else {
            let failure = error(of: begun)
            while try nextResult(after: failure) != nil {}
            throw failure
        }
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
