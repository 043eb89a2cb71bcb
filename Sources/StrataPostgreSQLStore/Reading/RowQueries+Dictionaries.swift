import Foundation
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// Results of fetches for dictionaries that PostgreSQL computes; ``SQLReach`` decides which.
extension RowQueries {
    /// The plan in the form that PostgreSQL computes, and the mapping of its entity; `nil` if the process has to
    /// compute it.
    func said(_ plan: DictionaryPlan) -> (plan: DictionaryPlan, entity: EntityMapping)? {
        var said = plan
        said.rows = plan.rows.with(
            predicate: plan.rows.predicate.map { FoldedText.rewritten($0, of: plan.rows.layout, in: mapping) },
            sort: plan.rows.sort,
            limit: plan.rows.limit,
            offset: plan.rows.offset
        )
        guard let entity = mapping.entity(plan.rows.layout), SQLReach(mapping).says(said) else { return nil }
        return (said, entity)
    }

    /// Whether one statement gives the results, so that no transaction is needed.
    func standsAlone(_ plan: DictionaryPlan) -> Bool { said(plan).map { !$0.plan.mayOverflow } ?? false }

    /// The dictionary results that a fetch asks for.
    func values(of plan: DictionaryPlan, for entity: EntityMapping, on connection: Connection) throws -> FetchedValues {
        let query = try compile(plan, entity, isOrdered: true)
        var results = FetchedValues(width: plan.columns.count)
        let control = plan.rows.control
        var counter = RowCounter(control)
        try connection.each(query.sql, query.parameters) { row in
            try control?.cancellation.check()
            for (selected, column) in zip(query.columns, plan.columns) {
                results.append(try value(of: selected, selecting: column.expression, in: row, plan: plan))
            }
            counter.count()
            return true
        }
        counter.finish()
        return results
    }

    /// The number of dictionary results that a fetch of groups asks for.
    func count(of plan: DictionaryPlan, for entity: EntityMapping, on connection: Connection) throws -> Int {
        let query = try compile(plan, entity, isOrdered: false)
        let result = try connection.query("SELECT pg_catalog.count(*) FROM (\(query.sql)) AS r", query.parameters)
        return Int(result.firstInt64 ?? 0)
    }

    /// A statement with its window.
    private struct DictionaryStatement {
        var sql: String
        var parameters: [PostgreSQLValue]
        let columns: [SelectedColumn]
    }

    private func compile(_ plan: DictionaryPlan, _ entity: EntityMapping, isOrdered: Bool) throws
        -> DictionaryStatement
    {
        var plan = plan
        if isOrdered, plan.grouping == nil, plan.rows.sort == nil {
            // The order of insertion, as in the process.
            let key = ResolvedSort(terms: [], variableCount: plan.variableCount)
            plan.rows = plan.rows.with(
                predicate: plan.rows.predicate,
                sort: key,
                limit: plan.rows.limit,
                offset: plan.rows.offset
            )
        }
        let compiled = try QueryCompiler.compile(
            plan,
            for: entity,
            in: mapping,
            entityCondition: plan.rows.coversHierarchy ? nil : entityCondition(plan.rows),
            isOrdered: isOrdered
        )
        var statement = DictionaryStatement(
            sql: compiled.text,
            parameters: compiled.bindings.map { PostgreSQLValue($0) },
            columns: compiled.columns
        )
        for (word, number) in [("LIMIT", plan.limit), ("OFFSET", plan.offset)] where number > 0 {
            statement.parameters.append(.int8(Int64(number)))
            statement.sql += " \(word) $\(statement.parameters.count)"
        }
        return statement
    }

    private func value(
        of column: SelectedColumn,
        selecting expression: ResolvedExpression,
        in row: ResultRow,
        plan: DictionaryPlan
    ) throws -> FetchedValue {
        switch column {
        case .value(let position, let type):
            guard !row.isNull(position) else { return .null }
            guard case .attribute(_, let attribute) = expression, type == .decimal else {
                return .plain(PredicateValue(row, at: position, as: type))
            }
            guard let decimal = row.decimal(position) else {
                throw PostgreSQLBoundary.damaged(
                    place,
                    "\"\(attribute.name)\" of a row of \(plan.rows.layout.name), or of one that it leads to, is no number that a Decimal can hold."
                )
            }
            return .decimal(decimal)
        // Such a store has no files for large values.
        case .tagged(let position): return row.isNull(position) ? .null : .plain(.data(row.data(position)))
        case .object(let position, let entityPosition, let declared):
            guard let key = row.optionalInt64(position) else { return .null }
            var number = declared.number
            if let entityPosition { number = modelNumber(row.int64(entityPosition), number) }
            let reference = ObjectReference(key: key, entity: number)
            return .object(reference, root: declared.rootNumber, store: plan.rows.storeNumber)
        }
    }
}

extension PredicateValue {
    /// The value in a column of a result, for an expression of a type.
    fileprivate init(_ row: ResultRow, at position: Int, as type: ResolvedType) {
        switch type {
        case .bool, .integer: self = .int(row.int64(position))
        // An aggregate of decimals is computed from their doubles.
        case .double, .decimal: self = .number(row.double(position))
        case .date: self = .date(row.double(position))
        case .string, .uri: self = .string(row.string(position))
        case .uuid: self = row.uuid(position).map { .uuid($0) } ?? .null
        case .data, .transformable: self = .data(row.data(position))
        case .null, .composite, .reference, .entity: self = .null
        }
    }
}
