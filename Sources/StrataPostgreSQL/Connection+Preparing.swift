import CStrataPostgreSQL

// Statements are prepared when they are used first, and stay prepared, so the server parses each of them once.
extension Connection {
    /// The name of a prepared statement; a new statement is prepared, which needs the pipeline mode.
    ///
    /// - Returns: The name, and the statement if it is new.
    /// - Throws: ``PostgreSQLError``.
    func prepare(_ sql: String, _ types: [UInt32]) throws -> (String, preparing: PreparedStatements.Key?) {
        let key = PreparedStatements.Key(schema: schema, sql: sql, types: types)
        if let name = prepared.use(key) { return (name, nil) }
        let name = prepared.add(key)
        guard PQsendPrepare(handle, name, sql, Int32(types.count), types) == 1 else { throw lost() }
        return (name, key)
    }

    /// Whether statements are prepared and kept.
    var preparesStatements: Bool { prepares && prelude == nil }

    /// The name of a prepared statement that is about to be used; `nil` if it is not prepared.
    func preparedName(_ sql: String, _ values: [PostgreSQLValue]) -> String? {
        guard preparesStatements else { return nil }
        return prepared.use(PreparedStatements.Key(schema: schema, sql: sql, types: values.map(\.type.rawValue)))
    }

    /// Whether a statement is yet to be prepared.
    func isNew(_ sql: String, _ values: [PostgreSQLValue]) -> Bool {
        preparesStatements
            && !prepared.contains(PreparedStatements.Key(schema: schema, sql: sql, types: values.map(\.type.rawValue)))
    }

    /// Notes that a statement could not be prepared.
    ///
    /// - Parameters:
    ///   - key: The statement.
    ///   - failure: The reason, if this is the first statement that failed.
    func forget(_ key: PreparedStatements.Key, after failure: PostgreSQLError?) {
        prepared.remove(key)
        if failure?.isNameTaken == true { prepared.hasUnknown = true }
    }

    /// Prepares all statements anew when they are used next.
    package func forgetPrepared() { prepared.removeAll() }

    /// Makes the server drop the statements that were not used for long: many of them in one round trip.
    ///
    /// Inside a transaction they stay, because the first error there ends the transaction.
    ///
    /// - Throws: ``PostgreSQLError`` if the connection was lost.
    func dropSuperfluous() throws {
        guard prepared.hasSuperfluous, isIdle, PQpipelineStatus(handle) == PQ_PIPELINE_OFF else { return }
        let drops = prepared.hasUnknown ? ["DEALLOCATE ALL"] : prepared.removeSuperfluous().map { "DEALLOCATE \($0)" }
        if prepared.hasUnknown { prepared.forgetAll() }
        do {
            try commandAlone(drops.joined(separator: "; "))
        } catch let error as PostgreSQLError where error.kind == .server && !isBroken {
            // Something else has dropped them, such as a reset of the session.
        }
    }
}
