import Foundation
import StrataPredicates
import StrataRows
import StrataSQL
import StrataSQLite

extension RowQueries {
    /// The dictionary results of a fetch.
    func values(of plan: DictionaryPlan, for entity: EntityMapping, on connection: Connection) throws -> FetchedValues {
        let query = try compile(plan, entity, isOrdered: true)
        let fetch = statement(query, plan)
        let statement = try prepare(fetch, connection)
        try fetch.bind(statement)
        var values: [FetchedValue] = []
        var counter = RowCounter(plan.rows.control)
        // Columns of the usual kind are found once, so that the loop over the rows counts no references.
        let plain = query.columns.compactMap { column -> (position: Int, type: ResolvedType)? in
            guard case .value(let position, let type) = column else { return nil }
            return (position, type)
        }
        if plain.count == query.columns.count {
            while try statement.step() {
                for (position, type) in plain { values.append(.plain(PredicateValue(statement[position], type))) }
                counter.count()
            }
        } else {
            while try statement.step() {
                for column in query.columns {
                    values.append(try value(of: column, in: statement, storeNumber: plan.rows.storeNumber))
                }
                counter.count()
            }
        }
        counter.finish()
        return FetchedValues(width: query.columns.count, values: values)
    }

    /// The number of dictionary results of a fetch.
    func count(of plan: DictionaryPlan, for entity: EntityMapping, on connection: Connection) throws -> Int {
        // Without groups there is one result for each row, and rows are counted without their values.
        guard plan.grouping != nil else { return try count(of: plan.rows, for: entity, on: connection) }
        let query = try compile(plan, entity, isOrdered: false)
        let fetch = statement(query, plan, isCounted: true)
        let statement = try prepare(fetch, connection)
        try fetch.bind(statement)
        return try statement.step() ? Int(statement[0].int64) : 0
    }

    private func compile(_ plan: DictionaryPlan, _ entity: EntityMapping, isOrdered: Bool) throws
        -> CompiledDictionaries
    {
        try QueryCompiler.compile(
            plan,
            for: entity,
            in: mapping,
            entityCondition: plan.rows.coversHierarchy ? nil : entityCondition(plan.rows),
            isOrdered: isOrdered
        )
    }

    private func statement(
        _ query: CompiledDictionaries,
        _ plan: DictionaryPlan,
        isCounted: Bool = false
    ) -> FetchStatement {
        var text = query.text
        if plan.limit > 0 || plan.offset > 0 { text += " LIMIT ? OFFSET ?" }
        if isCounted { text = "SELECT COUNT(*) FROM (\(text))" }
        return FetchStatement(sql: SQL(text), bindings: query.bindings, limit: plan.limit, offset: plan.offset)
    }

    // MARK: - Values

    private func value(of column: SelectedColumn, in statement: borrowing Statement, storeNumber store: Int) throws
        -> FetchedValue
    {
        switch column {
        case .value(let position, let type): return .plain(PredicateValue(statement[position], type))
        case .tagged(let position):
            let value = statement[position]
            return value.isNull ? .null : try tagged(value).map { .plain(.data($0)) } ?? .null
        case .object(let position, let entityPosition, let declared):
            guard let key = statement[position].optionalInt64 else { return .null }
            var number = declared.number
            if let entityPosition { number = modelNumber(statement[entityPosition].int64, number) }
            return .object(ObjectReference(key: key, entity: number), root: declared.rootNumber, store: store)
        }
    }
}

extension PredicateValue {
    /// The value in a column of a statement, for an expression of a type.
    fileprivate init(_ value: Value, _ type: ResolvedType) {
        switch (value.kind, type) {
        case (.null, _): self = .null
        case (_, .date): self = .date(value.double)
        case (_, .uuid): self = (value.uuid ?? UUID(uuidString: value.string)).map { .uuid($0) } ?? .null
        case (_, .string), (_, .uri), (.text, _): self = .string(value.string)
        case (_, .data), (_, .transformable), (.blob, _): self = .data(value.data)
        case (.integer, _): self = .int(value.int64)
        case (.real, _): self = .number(value.double)
        }
    }
}
