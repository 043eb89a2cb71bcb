import Foundation
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// The part of a fetch that PostgreSQL answers.
struct FetchStatement {
    /// The text after the columns: FROM and all that follows.
    let tail: String
    /// The part of it from WHERE on, which determines the rows if nothing is joined and there is no window; otherwise
    /// `nil`.
    let restriction: String?
    let parameters: [PostgreSQLValue]
    /// Whether the server returns exactly the rows that match; otherwise the predicate has to be evaluated.
    let isFilterExact: Bool
    /// Whether the server returns the rows in the requested order.
    let isSorted: Bool
    /// Whether it fails, with 22003, for sums that are too large; see ``RowQueries/attempt(_:_:otherwise:)``.
    let mayOverflow: Bool
    /// The most rows that can be returned; `nil` if that is unknown.
    let mostRows: Int?

    /// Whether one answer needs no transaction.
    var standsAlone: Bool { isExact && !mayOverflow }

    /// Whether the returned rows are the answer, within its window.
    var isExact: Bool { isFilterExact && isSorted }
}

extension RowQueries {
    /// Writes a fetch in SQL, or a weaker condition that all of its rows satisfy.
    ///
    /// - Parameters:
    ///   - plan: The fetch.
    ///   - entity: The mapping of its entity.
    ///   - isOrdered: Whether the order matters.
    ///   - addsUp: Whether the server computes sums that may be too large for it.
    ///   - condition: A condition in SQL, without values, that the rows satisfy as well.
    /// - Returns: The statement.
    /// - Throws: `persistentStoreUnsupportedRequestType` (134091) if SQL cannot express the plan.
    func statement(
        _ plan: FetchPlan,
        _ entity: EntityMapping,
        isOrdered: Bool = true,
        addsUp: Bool = true,
        also condition: String? = nil
    ) throws -> FetchStatement {
        let reach = SQLReach(mapping, addsUp: addsUp)
        var predicate = plan.predicate
        var isFilterExact = true
        if let given = plan.predicate.map({ FoldedText.rewritten($0, of: plan.layout, in: mapping) }) {
            let approximation = ConditionApproximation(given, layout: plan.layout, says: reach.says)
            isFilterExact = approximation.isExact
            predicate = ResolvedPredicate(
                condition: approximation.condition,
                variableCount: given.variableCount,
                schema: given.schema
            )
        }
        let sort = isOrdered ? plan.sort : nil
        let saysOrder = sort?.terms.allSatisfy { reach.sorts($0, [plan.layout]) } ?? true
        let isExact = isFilterExact && saysOrder
        let said = plan.with(
            predicate: predicate,
            sort: saysOrder ? sort : nil,
            limit: isExact ? plan.limit : 0,
            offset: isExact ? plan.offset : 0
        )
        var compiled = try QueryCompiler.compile(said, for: entity, in: mapping)
        // Rows that are equal in the order come in the order of insertion, as in the process.
        if isOrdered, compiled.order == nil { compiled.order = "t0.\(naming.key)" }
        var conditions: [String] = []
        if !plan.coversHierarchy { conditions.append(entityCondition(plan)) }
        if let condition = compiled.condition { conditions.append("(\(condition))") }
        if let condition { conditions.append("(\(condition))") }
        var parameters = compiled.bindings.map { PostgreSQLValue($0) }
        if let condition = predicate?.condition, let area = area(of: condition, for: entity, binding: &parameters) {
            conditions.append(area)
        }
        let restriction = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
        var tail = " FROM \(entity.table) AS t0\(compiled.joins)\(restriction)"
        if let order = compiled.order { tail += " ORDER BY " + order }
        if said.limit > 0 {
            parameters.append(.int8(Int64(said.limit)))
            tail += " LIMIT $\(parameters.count)"
        }
        if said.offset > 0 {
            parameters.append(.int8(Int64(said.offset)))
            tail += " OFFSET $\(parameters.count)"
        }
        return FetchStatement(
            tail: tail,
            restriction: compiled.joins.isEmpty && !plan.isWindowed ? restriction : nil,
            parameters: parameters,
            isFilterExact: isFilterExact,
            isSorted: saysOrder,
            mayOverflow: predicate?.condition.mayOverflow ?? false,
            mostRows: said.limit > 0 ? said.limit : predicate?.condition.mostRows
        )
    }

    /// The condition that a point of the row is in the rectangle which another condition implies; `nil` if there is no
    /// rectangle.
    ///
    /// An index serves this form.
    ///
    /// - Parameters:
    ///   - condition: The condition that the rows have to satisfy as well.
    ///   - entity: The mapping of their entity.
    ///   - parameters: The values of the statement; those of the rectangle are added.
    /// - Returns: The condition.
    private func area(
        of condition: ResolvedCondition,
        for entity: EntityMapping,
        binding parameters: inout [PostgreSQLValue]
    ) -> String? {
        let boxes = boxes(of: entity)
        guard !boxes.isEmpty else { return nil }
        let bounds = condition.bounds
        for box in boxes {
            guard let x = bounds[box.sides.x], let y = bounds[box.sides.y],
                [x.lower, x.upper, y.lower, y.upper].allSatisfy(\.isFinite)
            else { continue }
            let first = parameters.count + 1
            parameters += [x.lower, y.lower, x.upper, y.upper].map { .float8($0) }
            return box.contains(firstParameter: first, "t0")
        }
        return nil
    }

    /// The condition of a fetch, with its values, as the end of an UPDATE or DELETE of the table `t0`.
    ///
    /// The result is `nil` if the process has to examine the rows, or if other tables determine them.
    func condition(_ plan: FetchPlan, _ entity: EntityMapping) throws -> (sql: String, parameters: [PostgreSQLValue])? {
        guard !plan.isWindowed, plan.timeLimit == nil else { return nil }
        let statement = try statement(plan, entity, isOrdered: false)
        guard statement.standsAlone, let restriction = statement.restriction else { return nil }
        return (restriction, statement.parameters)
    }

    /// A query for the keys of free rows, which locks the rows and passes by those that others have locked.
    ///
    /// - Parameters:
    ///   - plan: The rows, in their order and with their limit.
    ///   - entity: The mapping of their entity.
    ///   - isFree: The condition, in SQL without values, that a row is free.
    ///   - strength: The strength of the locks.
    /// - Returns: The query; `nil` if the process has to examine the rows.
    /// - Throws: `persistentStoreUnsupportedRequestType` (134091) if SQL cannot express the plan.
    func free(_ plan: FetchPlan, _ entity: EntityMapping, where isFree: String, strength: String) throws
        -> (sql: String, parameters: [PostgreSQLValue])?
    {
        guard plan.timeLimit == nil else { return nil }
        let statement = try statement(plan, entity, also: isFree)
        guard statement.standsAlone else { return nil }
        return (
            "SELECT t0.\(naming.key)\(statement.tail) \(strength) OF t0 SKIP LOCKED", statement.parameters
        )
    }

    /// Reports the statement of a fetch to instruments, without its values, and returns it.
    func reported(_ sql: String) -> String {
        if let tally = OperationTally.current { tally.pointee.statement = sql }
        return sql
    }

    /// Answers a fetch with its statement; if sums in it are too large for PostgreSQL, then with a statement that
    /// leaves them to the process.
    private func answer<R>(
        to plan: FetchPlan,
        for entity: EntityMapping,
        known: FetchStatement?,
        on connection: Connection,
        isOrdered: Bool = true,
        _ body: (FetchStatement) throws -> R
    ) throws -> R {
        let statement = try known ?? statement(plan, entity, isOrdered: isOrdered)
        guard statement.mayOverflow else { return try body(statement) }
        let position = plan.control?.position
        return try attempt(connection) {
            try body(statement)
        } otherwise: {
            if let position { plan.control?.goBack(to: position) }
            return try body(try self.statement(plan, entity, isOrdered: isOrdered, addsUp: false))
        }
    }

    /// Runs `body` in the open transaction, and `otherwise` instead if a sum is too large.
    func attempt<R>(_ connection: Connection, _ body: () throws -> R, otherwise: () throws -> R) throws -> R {
        // Each of these is sent with the following statement.
        try connection.post("SAVEPOINT strata_sum", isKept: false)
        do {
            let result = try body()
            try connection.post("RELEASE SAVEPOINT strata_sum", isKept: false)
            return result
        } catch let error as PostgreSQLError where error.sqlState == "22003" {
            try connection.command("ROLLBACK TO SAVEPOINT strata_sum; RELEASE SAVEPOINT strata_sum")
        }
        return try otherwise()
    }

    /// The condition that distinguishes the plan's entities from the others of their hierarchy.
    func entityCondition(_ plan: FetchPlan) -> String {
        let numbers = plan.entityNumbers.compactMap { mapping.entity(modelNumber: $0)?.number }
        if numbers.isEmpty { return "FALSE" }
        return numbers.count == 1
            ? "t0.\(naming.entity) = \(numbers[0])"
            : "t0.\(naming.entity) IN (\(numbers.map(String.init).joined(separator: ", ")))"
    }

    /// The whole rows of a fetch.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - entity: The mapping of its entity.
    ///   - statement: The statement, if it was already made from the plan; otherwise `nil`.
    ///   - connection: The connection that reads; in a transaction of one snapshot if something has to be evaluated in
    ///     the process.
    ///   - source: Reads the same snapshot, for evaluation.
    /// - Returns: The rows.
    /// - Throws: Errors of PostgreSQL, and `fileReadCorruptFile` (259) for a row that contradicts the model.
    func rows(
        of plan: FetchPlan,
        for entity: EntityMapping,
        statement: FetchStatement?,
        on connection: Connection,
        source: any RowSource
    ) throws -> [Row] {
        try answer(to: plan, for: entity, known: statement, on: connection) {
            try rows(of: plan, for: entity, saidBy: $0, on: connection, source: source)
        }
    }

    /// The columns that a fetch needs of each row.
    func shape(_ plan: FetchPlan, _ entity: EntityMapping) -> RowShape {
        let isDeep = plan.coversHierarchy || plan.entityNumbers != [entity.layout.number]
        return plan.wantedSlots.map { RowShape(entity, in: mapping, isDeep: isDeep, wanted: $0) }
            ?? shape(entity, isDeep: isDeep)
    }

    /// The whole rows of a fetch whose statement was made.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - entity: The mapping of its entity.
    ///   - statement: The statement, which was made from the plan.
    ///   - connection: The connection that reads, as for ``rows(of:for:statement:on:source:)``.
    ///   - source: Reads the same snapshot, for evaluation.
    ///   - locking: The clause that locks the rows, if the statement is exact.
    /// - Returns: The rows.
    /// - Throws: The errors of ``rows(of:for:statement:on:source:)``.
    func rows(
        of plan: FetchPlan,
        for entity: EntityMapping,
        saidBy statement: FetchStatement,
        on connection: Connection,
        source: any RowSource,
        locking: String = ""
    ) throws -> [Row] {
        guard statement.isExact else {
            return try siftedRows(of: plan, for: entity, statement: statement, on: connection, source: source)
        }
        let shape = shape(plan, entity)
        var rows: [Row] = []
        let stamp = CoarseClock.now
        let control = plan.control
        var counter = RowCounter(control)
        try connection.each(
            reported("SELECT \(shape.plan.columns)\(statement.tail)\(locking)"),
            statement.parameters,
            mostRows: statement.mostRows
        ) {
            result in
            try control?.cancellation.check()
            guard let row = try shape.row(result, stamp: stamp, self) else { throw unknownEntity(result, shape) }
            rows.append(row)
            counter.count()
            return true
        }
        counter.finish()
        return rows
    }

    /// The references of the rows of a fetch.
    func references(
        of plan: FetchPlan,
        for entity: EntityMapping,
        statement: FetchStatement?,
        on connection: Connection,
        source: any RowSource
    ) throws -> [ObjectReference] {
        try answer(to: plan, for: entity, known: statement, on: connection) {
            try references(of: plan, for: entity, saidBy: $0, on: connection, source: source)
        }
    }

    private func references(
        of plan: FetchPlan,
        for entity: EntityMapping,
        saidBy statement: FetchStatement,
        on connection: Connection,
        source: any RowSource
    ) throws -> [ObjectReference] {
        guard statement.isExact else {
            return try sifted(plan, for: entity, statement: statement, on: connection, source: source, needsRows: false)
            {
                ObjectReference(key: $0.key, entity: $0.layout.number)
            }
        }
        var references: [ObjectReference] = []
        var counter = RowCounter(plan.control)
        try connection.each(
            reported("SELECT t0.\(naming.key), t0.\(naming.entity)\(statement.tail)"),
            statement.parameters
        ) { row in
            let number = modelNumber(row.int64(1), 0)
            guard number > 0 else { throw unknownEntity(row, shape(entity)) }
            references.append(ObjectReference(key: row.int64(0), entity: number))
            counter.count()
            return true
        }
        counter.finish()
        return references
    }

    /// The number of rows of a fetch.
    func count(of plan: FetchPlan, for entity: EntityMapping, on connection: Connection, source: any RowSource) throws
        -> Int
    {
        let unordered = plan.unordered
        return try answer(to: unordered, for: entity, known: nil, on: connection, isOrdered: false) { statement in
            guard statement.isExact else {
                // Rows after the window need not be examined.
                let counted = plan.with(
                    predicate: plan.predicate,
                    sort: nil,
                    limit: plan.limit > 0 ? plan.end : 0,
                    offset: 0
                )
                let found: [Void] = try sifted(
                    counted,
                    for: entity,
                    statement: statement,
                    on: connection,
                    source: source,
                    needsRows: false,
                    isQuiet: true
                ) { _ in () }
                return plan.windowed(found.count)
            }
            let sql = reported("SELECT pg_catalog.count(*)\(statement.tail)")
            let result = try connection.query(sql, statement.parameters)
            return plan.windowed(Int(result.firstInt64 ?? 0))
        }
    }
}

extension ResolvedCondition {
    /// The most rows that can satisfy the condition, if it names them; `nil` if it does not.
    fileprivate var mostRows: Int? {
        switch self {
        case .member(.object(let path), let set) where path.variable == 0 && path.steps.isEmpty: set.members.count
        case .and(let parts): parts.compactMap(\.mostRows).min()
        default: nil
        }
    }
}
