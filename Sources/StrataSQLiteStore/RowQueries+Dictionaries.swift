import Foundation
import StrataPredicates
import StrataRows
import StrataSQL
import StrataSQLite

extension RowQueries {
    /// The dictionary results of a fetch.
    func values(of plan: DictionaryPlan, for entity: EntityMapping, on connection: Connection) throws -> FetchedValues {
        let query = try compile(plan, entity, isOrdered: true)
        var values: [FetchedValue] = []
        _ = try forEachResult(of: query, plan, on: connection) { statement in
            for column in query.columns {
                values.append(try value(of: column, in: statement, storeNumber: plan.rows.storeNumber))
            }
        }
        return FetchedValues(width: query.columns.count, values: values)
    }

    /// Hands over the dictionary results of a fetch, one at a time.
    ///
    /// - Returns: Their number.
    func values(
        of plan: DictionaryPlan,
        for entity: EntityMapping,
        on connection: Connection,
        to receiver: some FetchedValueReceiver
    ) throws -> Int {
        let query = try compile(plan, entity, isOrdered: true)
        // Each column is looked at once, so that the loop over the rows counts no references.
        let forms = query.columns.map(ColumnForm.init)
        let store = plan.rows.storeNumber
        receiver.begin()
        return try forEachResult(of: query, plan, on: connection) { statement in
            let columns = statement.columns
            for index in forms.indices {
                switch forms[index] {
                case .plain(let position, let type): give(columns[position], type, at: index, to: receiver)
                case .other:
                    receiver.take(try value(of: query.columns[index], in: statement, storeNumber: store), at: index)
                }
            }
            receiver.endResult()
        }
    }

    /// How the values of a column are read.
    private enum ColumnForm {
        case plain(position: Int, ResolvedType)
        case other

        init(_ column: SelectedColumn) {
            if case .value(let position, let type) = column {
                self = .plain(position: position, type)
            } else {
                self = .other
            }
        }
    }

    /// Hands over a value as ``PredicateValue`` would have it: the usual kinds without one.
    @inline(__always)
    private func give(_ value: Value, _ type: ResolvedType, at index: Int, to receiver: some FetchedValueReceiver) {
        switch (value.kind, type) {
        case (.null, _): break
        case (_, .date), (_, .uuid): receiver.take(.plain(PredicateValue(value, type)), at: index)
        case (_, .string), (_, .uri), (.text, _): receiver.take(text: value.utf8, at: index)
        case (_, .data), (_, .transformable), (.blob, _): receiver.take(.plain(.data(value.data)), at: index)
        case (.integer, _): receiver.take(integer: value.int64, at: index)
        case (.real, _): receiver.take(number: value.double, at: index)
        }
    }

    /// Passes the statement to `body` at each result.
    ///
    /// - Returns: The number of results.
    @inline(__always)
    private func forEachResult(
        of query: CompiledDictionaries,
        _ plan: DictionaryPlan,
        on connection: Connection,
        _ body: (borrowing Statement) throws -> Void
    ) throws -> Int {
        let fetch = statement(query, plan)
        let statement = try prepare(fetch, connection)
        try fetch.bind(statement)
        var counter = RowCounter(plan.rows.control)
        var count = 0
        while try statement.step() {
            try body(statement)
            count += 1
            counter.count()
        }
        counter.finish()
        return count
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
