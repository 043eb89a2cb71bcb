import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// Reads rows on one connection that its user holds, and on which a transaction of one snapshot is open.
///
/// It is used by one thread at a time.
final class SnapshotSource: RowSource, @unchecked Sendable {
    // @unchecked Sendable: the user of the connection uses it on one thread at a time.
    private let queries: RowQueries
    private let connection: Connection

    init(_ queries: RowQueries, _ connection: Connection) {
        self.queries = queries
        self.connection = connection
    }

    /// Runs `body`, whose statements may each take a number of seconds; a transaction has to be open.
    ///
    /// - Throws: ``PredicateEvaluationError`` if a statement takes longer.
    func limited<R>(to seconds: Double?, _ control: FetchControl?, _ body: () throws -> R) throws -> R {
        guard let seconds else { return try body() }
        let start = ContinuousClock.now
        do {
            // This is sent with the first statement.
            let milliseconds = Int(max(1, min(seconds * 1000, 2e9)))
            try connection.post("SET LOCAL statement_timeout = \(milliseconds)", isKept: false)
            let result = try body()
            // This is sent with the statements that are not sent yet.
            _ = try connection.answer(try connection.post("SET LOCAL statement_timeout TO DEFAULT", isKept: false))
            return result
        } catch let error as PostgreSQLError
            where error.sqlState == "57014" && control?.cancellation.isCancelled != true
            && .now - start >= .seconds(seconds * 0.9)
        {
            // Otherwise another role has cancelled the statement, or the role has a shorter limit.
            throw PredicateEvaluationError.exceedsLimit(seconds)
        }
    }

    func rows(for plan: FetchPlan) throws -> [Row] { try rows(for: plan, nil) }

    func references(for plan: FetchPlan) throws -> [ObjectReference] { try references(for: plan, nil) }

    /// Works as ``rows(for:)``, with the plan's statement if that was made before.
    func rows(for plan: FetchPlan, _ statement: FetchStatement?) throws -> [Row] {
        guard let entity = queries.mapping.entity(plan.layout) else { return [] }
        return try queries.rows(of: plan, for: entity, statement: statement, on: connection, source: self)
    }

    /// Works as ``references(for:)``, with the plan's statement if that was made before.
    func references(for plan: FetchPlan, _ statement: FetchStatement?) throws -> [ObjectReference] {
        guard let entity = queries.mapping.entity(plan.layout) else { return [] }
        return try queries.references(of: plan, for: entity, statement: statement, on: connection, source: self)
    }

    func count(for plan: FetchPlan) throws -> Int {
        guard let entity = queries.mapping.entity(plan.layout) else { return 0 }
        return try queries.count(of: plan, for: entity, on: connection, source: self)
    }

    func values(for plan: DictionaryPlan) throws -> FetchedValues {
        try dictionaries(plan) {
            try queries.values(of: $0, for: $1, on: connection)
        } otherwise: {
            try computedValues(for: plan)
        }
    }

    func count(for plan: DictionaryPlan) throws -> Int {
        // Without groups there is one result for each row.
        guard plan.grouping != nil else { return try count(for: plan.rows) }
        return try dictionaries(plan) {
            try queries.count(of: $0, for: $1, on: connection)
        } otherwise: {
            try computedValues(for: plan).count
        }
    }

    /// Lets the database compute results, or the process if the database cannot.
    private func dictionaries<R>(
        _ plan: DictionaryPlan,
        _ body: (DictionaryPlan, EntityMapping) throws -> R,
        otherwise: () throws -> R
    ) throws -> R {
        guard let (said, entity) = queries.said(plan) else { return try otherwise() }
        guard said.mayOverflow else { return try body(said, entity) }
        return try queries.attempt(connection, { try body(said, entity) }, otherwise: otherwise)
    }

    func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? {
        guard let entity = queries.mapping.entity(layout) else { return nil }
        return try queries.row(key, of: entity, on: connection)
    }

    func rows(forKeys keys: [Int64], in layout: EntityLayout, control: FetchControl?) throws -> [Row] {
        guard let entity = queries.mapping.entity(layout) else { return [] }
        return try queries.rows(keys, of: entity, on: connection)
    }

    func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        guard let entity = queries.mapping.entity(modelNumber: owner.entity) else { return [] }
        return try queries.members(in: relationship, of: entity, ownedBy: owner.key, on: connection)
    }

    func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], control: FetchControl?) throws
        -> Memberships
    {
        guard let owner = owners.first, let entity = queries.mapping.entity(modelNumber: owner.entity) else {
            return Memberships()
        }
        return try queries.memberships(in: relationship, of: entity, ownedBy: owners, on: connection)
    }
}
