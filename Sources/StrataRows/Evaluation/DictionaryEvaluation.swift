import StrataPredicates

/// Computes dictionary results from whole rows, for stores that cannot compute them otherwise.
package struct DictionaryEvaluation {
    private let plan: DictionaryPlan
    private let reader: any RowFinder
    private var evaluator: ResolvedEvaluator

    /// - Parameters:
    ///   - plan: The fetch to compute.
    ///   - reader: Reads the rows that paths lead to. It gets a row as its buffer.
    package init(_ plan: DictionaryPlan, _ reader: any RowFinder) {
        self.plan = plan
        self.reader = reader
        evaluator = ResolvedEvaluator(variableCount: plan.variableCount, reader: reader)
    }

    /// The results of rows that match.
    ///
    /// If they are not grouped, the rows are in order and within the limit.
    package consuming func results(from rows: [Row]) throws -> FetchedValues {
        guard let grouping = plan.grouping else {
            var results = FetchedValues(width: plan.columns.count)
            for row in rows {
                for column in plan.columns { results.append(try value(of: column.expression, for: row)) }
            }
            return results
        }
        var groups = try RowGroups(plan, grouping)
        let leaves = groups.leaves
        for row in rows { groups.add(try leaves.map { try value(of: $0, for: row) }[...]) }
        return try groups.results()
    }

    private mutating func value(of expression: ResolvedExpression, for row: Row) throws -> FetchedValue {
        switch expression {
        case .object(let path):
            guard path.steps.isEmpty else { return try destination(of: path, from: row) }
            return object(ObjectReference(key: row.key, entity: row.layout.number), row.layout)
        case .attribute(let path, let attribute) where attribute.type == .decimal:
            guard let owner = try owner(path, from: row), !owner.isNull(attribute.slot) else { return .null }
            return .decimal(owner.decimal(owner.layout.slots[attribute.slot].word))
        default: return .plain(try evaluator.value(of: expression, for: row.buffer))
        }
    }

    /// The destination of a to-one relationship, with its own entity if the object exists.
    private mutating func destination(of path: ResolvedPath, from row: Row) throws -> FetchedValue {
        guard let last = path.steps.last else { return .null }
        let way = ResolvedPath(variable: path.variable, steps: Array(path.steps.dropLast()))
        guard let owner = try owner(way, from: row), let reference = owner.reference(of: last),
            let layout = last.destination as? EntityLayout
        else { return .null }
        return object(reference, layout)
    }

    private func object(_ reference: ObjectReference, _ layout: EntityLayout) -> FetchedValue {
        .object(reference, root: layout.rootNumber, store: plan.rows.storeNumber)
    }

    /// The row at the end of a path.
    private mutating func owner(_ path: ResolvedPath, from row: Row) throws -> Row? {
        guard let last = path.steps.last else { return row }
        guard let layout = last.destination as? EntityLayout,
            case .reference(let identity) = try evaluator.value(of: .object(path), for: row.buffer)
        else { return nil }
        return try reader.row(identity, in: layout)
    }
}

extension RowSource {
    package func values(for plan: DictionaryPlan) throws -> FetchedValues {
        try plan.rows.evaluating { try computedValues(for: plan) }
    }

    /// The answer to a fetch of dictionaries, computed from whole rows.
    package func computedValues(for plan: DictionaryPlan) throws -> FetchedValues {
        guard let sort = plan.rows.sort else {
            let rows = try rows(for: plan.rows)
            let reader = StoreRowReader(self, rows, storeNumber: plan.rows.storeNumber)
            return try DictionaryEvaluation(plan, reader).results(from: rows)
        }
        // The order may depend on computed values, which such a store does not know.
        let unsorted = try rows(for: plan.rows.unordered)
        let reader = StoreRowReader(self, unsorted, storeNumber: plan.rows.storeNumber)
        let sorted = try sort.sorted(unsorted.map(\.buffer), reader: reader).map { Row(shared: $0) }
        return try DictionaryEvaluation(plan, reader).results(from: plan.rows.window(sorted))
    }

    package func count(for plan: DictionaryPlan) throws -> Int {
        guard plan.grouping != nil else { return try count(for: plan.rows) }
        return try values(for: plan).count
    }
}
