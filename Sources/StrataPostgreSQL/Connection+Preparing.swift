import CStrataPostgreSQL

// Statements are prepared when they are used first, and stay so, that the server parses each of them once.
extension Connection {
    /// The name of a prepared statement, which may be about to be prepared: that needs the pipeline mode.
    ///
    /// - Returns: The name, and the statement if it is new.
    /// - Throws: ``PostgreSQLError``.
    func prepare(_ sql: String, _ types: [UInt32]) throws -> (String, preparing: PreparedStatements.Key?) {
        let key = PreparedStatements.Key(sql: sql, types: types)
        if let name = prepared.use(key) { return (name, nil) }
        let name = prepared.add(key)
        guard PQsendPrepare(handle, name, sql, Int32(types.count), types) == 1 else { throw lost() }
        return (name, key)
    }

    /// Whether statements are prepared that are kept.
    var preparesStatements: Bool { prepares && prelude == nil }

    /// The name of a statement that is prepared and about to be used; `nil` if it is not.
    func preparedName(_ sql: String, _ values: [PostgreSQLValue]) -> String? {
        guard preparesStatements else { return nil }
        return prepared.use(PreparedStatements.Key(sql: sql, types: values.map(\.type.rawValue)))
    }

    /// Whether a statement is yet to be prepared.
    func isNew(_ sql: String, _ values: [PostgreSQLValue]) -> Bool {
        preparesStatements && !prepared.contains(PreparedStatements.Key(sql: sql, types: values.map(\.type.rawValue)))
    }

    /// Notes that a statement could not be prepared.
    ///
    /// - Parameters:
    ///   - key: The statement.
    ///   - failure: Why, if it is the first that has failed.
    func forget(_ key: PreparedStatements.Key, after failure: PostgreSQLError?) {
        prepared.remove(key)
        if failure?.isNameTaken == true { prepared.hasStrangers = true }
    }

    /// Prepares all statements anew when they are used next.
    package func forgetPrepared() { prepared.removeAll() }

    /// Has the server drop the statements that nobody has used for long: one round trip, for many of them.
    ///
    /// Inside a transaction they stay, as one that fails ends with its first error.
    ///
    /// - Throws: ``PostgreSQLError`` of a connection that was lost.
    func dropSuperfluous() throws {
        guard prepared.hasSuperfluous, isIdle, PQpipelineStatus(handle) == PQ_PIPELINE_OFF else { return }
        let drops = prepared.hasStrangers ? ["DEALLOCATE ALL"] : prepared.takeSuperfluous().map { "DEALLOCATE \($0)" }
        if prepared.hasStrangers { prepared.forgetAll() }
        do {
            try commandAlone(drops.joined(separator: "; "))
        } catch let error as PostgreSQLError where error.kind == .server && !isBroken {
            // Somebody else has dropped them, such as a reset of the session.
        }
    }
}
