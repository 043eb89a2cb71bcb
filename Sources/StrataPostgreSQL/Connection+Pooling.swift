import CStrataPostgreSQL

/// What each transaction begins with behind a pooler that gives every transaction to whichever session of the server is free: what a session
/// is told once everywhere else.
package struct TransactionPrelude {
    /// A statement that takes locks before anything is read; `nil` for none.
    let lock: String?
    let sql: String
    let parameters: [PostgreSQLValue]
    /// What the last column of the answer said when it was looked at last.
    var accepted: String?
    /// Looks at what is behind the connection when that column says something else, inside of the transaction; `nil` if nothing depends on it.
    let review: ((Connection) throws -> Void)?

    package init(
        lock: String? = nil,
        _ sql: String,
        _ parameters: [PostgreSQLValue],
        review: ((Connection) throws -> Void)? = nil
    ) {
        self.lock = lock
        self.sql = sql
        self.parameters = parameters
        self.review = review
    }

    fileprivate func accepts(_ answer: QueryResult) -> Bool { review == nil || Self.told(answer) == accepted }

    fileprivate static func told(_ answer: QueryResult) -> String? {
        answer.rowCount == 1 ? answer[0].optionalString(answer.columnCount - 1) : nil
    }
}

// Behind a pooler nothing is prepared, and nothing is set for longer than a transaction. A statement that is not part of one goes together
// with the prelude, and the two are a transaction.
extension Connection {
    /// Whether somebody between here and the server answers in its name.
    ///
    /// Then the number that the connection was given is not that of the process which works for it.
    package func isBehindPooler() throws -> Bool {
        let told = try command("SELECT pg_catalog.pg_backend_pid()")
        return told.rowCount == 1 && told[0].string(0) != String(PQbackendPID(handle))
    }

    /// Begins each transaction with some statements from now on, and prepares none.
    package func beginTransactions(with prelude: TransactionPrelude) { self.prelude = prelude }

    /// Whether the next statement begins a transaction that needs the prelude.
    var needsPrelude: Bool { prelude != nil && posted.isEmpty && isIdle }

    /// Sends what begins a transaction: with the statement that does so by name, or on its own.
    ///
    /// - Parameter begin: The statement; `nil` if what comes next is a transaction of its own.
    /// - Returns: The statement as it was sent.
    /// - Throws: ``PostgreSQLError``.
    @discardableResult
    func postPrelude(after begin: String?) throws -> PostedStatement? {
        guard let prelude else { return nil }
        let begun = try begin.map { try postAlone($0) }
        if begun != nil, let lock = prelude.lock { try postAlone(lock, mayWait: true) }
        unreviewed = try postAlone(prelude.sql, prelude.parameters)
        return begun
    }

    /// Begins a transaction.
    ///
    /// - Parameter sql: Begins with BEGIN. What follows that in the same text comes after the prelude.
    /// - Returns: The answer to the last statement of the text.
    /// - Throws: ``PostgreSQLError``, and what the review throws.
    func begin(_ sql: String) throws -> QueryResult {
        let parts = sql.split(separator: ";", maxSplits: 1)
        let begun = try commandAlone(([String(parts[0])] + (prelude?.lock.map { [$0] } ?? [])).joined(separator: "; "))
        if let prelude { try review(try query(prelude.sql, prelude.parameters)) }
        return parts.count > 1 ? try commandAlone(String(parts[1])) : begun
    }

    /// Looks at what is behind the connection, in a transaction for that alone.
    private func look() throws {
        _ = try begin("BEGIN")
        try commandAlone("ROLLBACK")
    }

    /// Runs a statement that is a transaction of its own: one that reads, or does no harm twice.
    func queryAfterPrelude(_ sql: String, _ parameters: [PostgreSQLValue]) throws -> QueryResult {
        if let prelude, prelude.review != nil, prelude.accepted == nil { try look() }
        for _ in 0..<3 {
            try postPrelude(after: nil)
            let first = unreviewed
            unreviewed = nil
            let statement = try postAlone(sql, parameters)
            let outcome = Result { try answer(statement) }
            guard !isBroken, let first, let told = try? answer(first), let prelude, !prelude.accepts(told) else {
                return try outcome.get()
            }
            // It was over before anybody has looked. So it is looked at in another one, and asked again.
            try look()
        }
        throw PostgreSQLError(.connection, "what is behind the connection changes again and again")
    }

    /// Looks at what the transaction that is open has begun with.
    private func review(_ answer: QueryResult) throws {
        guard let prelude, !prelude.accepts(answer) else { return }
        try prelude.review?(self)
        self.prelude?.accepted = TransactionPrelude.told(answer)
    }

    /// Looks at what a transaction has begun with whose first statements are answered now.
    ///
    /// - Parameter failure: What one of them has failed with.
    /// - Throws: What the review throws.
    func reviewPosted(_ failure: PostgreSQLError?) throws {
        guard let first = unreviewed else { return }
        unreviewed = nil
        guard !isBroken, let told = try? answer(first), let prelude, !prelude.accepts(told) else { return }
        if failure == nil, !isIdle { return try review(told) }
        // It has failed, maybe for that very reason.
        if !isIdle { try commandAlone("ROLLBACK") }
        try look()
        if failure == nil { throw PostgreSQLError(.connection, "what is behind the connection has changed") }
    }
}
