import CStrataPostgreSQL

/// The statements that begin each transaction behind a pooler which gives every transaction to a free session of the
/// server.
///
/// Without a pooler a session gets these settings only once.
package struct TransactionPrelude {
    /// A statement that takes locks before anything is read; `nil` for none.
    let lock: String?
    /// Whether transactions that only read take no locks.
    let locksWritersOnly: Bool
    let sql: String
    let parameters: [PostgreSQLValue]
    /// The last column of the answer when it was reviewed last.
    var accepted: String?
    /// Whether only transactions that read were accepted with it.
    var isForReadersOnly = false
    /// Reviews the server behind the connection, inside the transaction, when that column has another value; `nil` if
    /// nothing depends on it.
    ///
    /// The result says whether later transactions that write may rely on it too.
    let review: ((Connection) throws -> Bool)?

    package init(
        lock: String? = nil,
        locksWritersOnly: Bool = false,
        _ sql: String,
        _ parameters: [PostgreSQLValue],
        review: ((Connection) throws -> Bool)? = nil
    ) {
        self.lock = lock
        self.locksWritersOnly = locksWritersOnly
        self.sql = sql
        self.parameters = parameters
        self.review = review
    }

    /// The statement that takes locks in a transaction; `nil` for none.
    ///
    /// - Parameter begin: The statement that begins the transaction.
    /// - Returns: The statement.
    fileprivate func lock(after begin: String) -> String? {
        locksWritersOnly && Connection.onlyReads(begin) ? nil : lock
    }

    fileprivate func accepts(_ answer: QueryResult, fromReader isReader: Bool) -> Bool {
        review == nil || Self.reviewed(in: answer) == accepted && (isReader || !isForReadersOnly)
    }

    fileprivate static func reviewed(in answer: QueryResult) -> String? {
        answer.rowCount == 1 ? answer[0].optionalString(answer.columnCount - 1) : nil
    }
}

// Behind a pooler nothing is prepared, and settings last for one transaction only. A statement that is not part of a
// transaction is sent together with the prelude, and the two form a transaction.
extension Connection {
    /// Whether a pooler between here and the server answers for it.
    ///
    /// In that case the process number that the connection was given differs from that of the process which works for
    /// it.
    package func isBehindPooler() throws -> Bool {
        let found = try command("SELECT pg_catalog.pg_backend_pid()")
        return found.rowCount == 1 && found[0].string(0) != String(PQbackendPID(handle))
    }

    /// Begins each transaction with the prelude from now on, and prepares no statements.
    package func beginTransactions(with prelude: TransactionPrelude) { self.prelude = prelude }

    /// Gives the connection up: what is behind it has changed, so its facts about the server do not hold any more.
    package func giveUp() { isBroken = true }

    /// Whether the next statement begins a transaction that needs the prelude.
    var needsPrelude: Bool { prelude != nil && posted.isEmpty && isIdle }

    /// Sends the prelude of a transaction, after its BEGIN or alone.
    ///
    /// - Parameter begin: The BEGIN statement; `nil` if the next statement is a separate transaction.
    /// - Returns: The BEGIN statement as it was sent.
    /// - Throws: ``PostgreSQLError``.
    @discardableResult
    func postPrelude(after begin: String?) throws -> PostedStatement? {
        guard let prelude else { return nil }
        onlyReads = begin.map(Self.onlyReads) ?? true
        let begun = try begin.map { try postAlone($0) }
        if let begin, let lock = prelude.lock(after: begin) { try postAlone(lock, mayWait: true) }
        unreviewed = try postAlone(prelude.sql, prelude.parameters)
        return begun
    }

    /// Begins a transaction.
    ///
    /// - Parameter sql: A text that begins with BEGIN. The statements after that in the same text follow the prelude.
    /// - Returns: The answer to the last statement of the text.
    /// - Throws: ``PostgreSQLError``, and what the review throws.
    func begin(_ sql: String) throws -> QueryResult {
        let parts = sql.split(separator: ";", maxSplits: 1)
        onlyReads = Self.onlyReads(sql)
        let begun = try commandAlone(
            ([String(parts[0])] + (prelude?.lock(after: sql).map { [$0] } ?? [])).joined(separator: "; ")
        )
        if let prelude { try review(try query(prelude.sql, prelude.parameters)) }
        return parts.count > 1 ? try commandAlone(String(parts[1])) : begun
    }

    fileprivate static func onlyReads(_ begin: String) -> Bool { begin.contains("READ ONLY") }

    /// Reviews the server behind the connection, in a separate transaction.
    private func look() throws {
        _ = try begin("BEGIN READ ONLY")
        try commandAlone("ROLLBACK")
    }

    /// Runs a statement as a separate transaction; it must only read, or be harmless when it runs twice.
    func queryAfterPrelude(_ sql: String, _ parameters: [PostgreSQLValue]) throws -> QueryResult {
        if let prelude, prelude.review != nil, prelude.accepted == nil { try look() }
        for _ in 0..<3 {
            try postPrelude(after: nil)
            let first = unreviewed
            unreviewed = nil
            let statement = try postAlone(sql, parameters)
            let outcome = Result { try answer(statement) }
            guard !isBroken, let first, let found = try? answer(first), let prelude,
                !prelude.accepts(found, fromReader: true)
            else {
                return try outcome.get()
            }
            // The transaction ended before its prelude was reviewed. So the server is reviewed in another transaction,
            // and the statement runs again.
            try look()
        }
        throw PostgreSQLError(.connection, "what is behind the connection changes again and again")
    }

    /// Reviews the answer to the prelude of the transaction that is open.
    private func review(_ answer: QueryResult) throws {
        guard let prelude, !prelude.accepts(answer, fromReader: onlyReads) else { return }
        let isForWriters = try prelude.review?(self) ?? true
        self.prelude?.accepted = TransactionPrelude.reviewed(in: answer)
        self.prelude?.isForReadersOnly = !isForWriters
    }

    /// Reviews the prelude of a transaction whose first statements are answered now.
    ///
    /// - Parameter failure: The error of one of them.
    /// - Throws: The error of the review.
    func reviewPosted(_ failure: PostgreSQLError?) throws {
        guard let first = unreviewed else { return }
        unreviewed = nil
        guard !isBroken, let found = try? answer(first), let prelude,
            !prelude.accepts(found, fromReader: onlyReads)
        else { return }
        if failure == nil, !isIdle { return try review(found) }
        // The statement has failed, and the change of the server may be the reason.
        if !isIdle { try commandAlone("ROLLBACK") }
        try look()
        if failure == nil { throw PostgreSQLError(.connection, "what is behind the connection has changed") }
    }
}
