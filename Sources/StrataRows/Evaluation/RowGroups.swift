import StrataPredicates

/// Groups rows in memory, as a SQL store does in its statement.
///
/// It takes rows one after the other, and then gives the results.
package struct RowGroups {
    /// The expressions that are read from each row: the keys, then the operands of the aggregates.
    package let leaves: [ResolvedExpression]
    private let plan: DictionaryPlan
    private let grouping: RowGrouping
    private let aggregates: [PredefinedFunction]
    private let columns: [Column]
    private let having: ResolvedPredicate?
    private let order: ResolvedSort

    private var groups: [Group] = []
    private var groupsByKey: [[PredicateValue]: Group] = [:]

    /// The source of a value of a result.
    private enum Column {
        case key(Int)
        case computed(ResolvedExpression)
    }

    package init(_ plan: DictionaryPlan, _ grouping: RowGrouping) throws {
        self.plan = plan
        self.grouping = grouping
        var terms = GroupTerms(keys: grouping.keys)
        columns = try plan.columns.map { column in
            if let key = terms.key(of: column.expression) { return .key(key) }
            return .computed(try terms.rewrite(column.expression))
        }
        having = try grouping.having.map {
            ResolvedPredicate(condition: try terms.rewrite($0), variableCount: 1, schema: plan.rows.layout)
        }
        order = ResolvedSort(
            terms: try grouping.order.map {
                ResolvedSort.Term(
                    expression: try terms.rewrite($0.expression),
                    ascending: $0.ascending,
                    comparison: $0.comparison
                )
            },
            variableCount: 1
        )
        aggregates = terms.aggregates.map(\.function)
        leaves = grouping.keys + terms.aggregates.map(\.operand)
    }

    /// Adds a row by the values of its leaves.
    package mutating func add(_ row: ArraySlice<FetchedValue>) {
        let keys = row.prefix(grouping.keys.count)
        let group = group(keys)
        for (index, operand) in row.dropFirst(keys.count).prefix(aggregates.count).enumerated() {
            let value = operand.comparable
            if !value.isNull { group.operands[index].append(value) }
        }
    }

    private mutating func group(_ keys: ArraySlice<FetchedValue>) -> Group {
        let comparable = keys.map(\.comparable)
        if let known = groupsByKey[comparable] { return known }
        let group = Group(Array(keys), operandCount: aggregates.count)
        groupsByKey[comparable] = group
        groups.append(group)
        return group
    }

    /// The results of all rows that were added.
    package consuming func results() throws -> FetchedValues {
        if grouping.keys.isEmpty, groups.isEmpty { _ = group([]) }
        for group in groups {
            group.values =
                group.keys.map(\.comparable) + zip(aggregates, group.operands).map { $0.aggregate($1) }
            group.operands = []
        }
        let reader = GroupReader()
        if let having {
            var evaluator = ResolvedEvaluator(having, reader: reader)
            groups = try groups.filter { try evaluator.evaluate($0) }
        }
        var rows = try order.sorted(groups, reader: reader).map { try result($0, reader) }
        if grouping.isDistinct {
            var known: Set<[PredicateValue]> = []
            rows = rows.filter { known.insert($0.map(\.comparable)).inserted }
        }
        var results = FetchedValues(width: columns.count)
        for row in plan.window(rows) { results.append(contentsOf: row) }
        return results
    }

    private func result(_ group: Group, _ reader: GroupReader) throws -> [FetchedValue] {
        var evaluator = ResolvedEvaluator(variableCount: 1, reader: reader)
        return try columns.map { column in
            switch column {
            case .key(let key): group.keys[key]
            case .computed(let expression): .plain(try evaluator.value(of: expression, for: group))
            }
        }
    }
}

/// The rows that have the same keys.
private final class Group {
    /// The keys of the group's first row.
    let keys: [FetchedValue]
    /// For each aggregate, its operand in each row, without nils.
    var operands: [[PredicateValue]]
    /// The keys and the aggregates, by the slots of ``GroupTerms``.
    var values: [PredicateValue] = []

    init(_ keys: [FetchedValue], operandCount: Int) {
        self.keys = keys
        operands = Array(repeating: [], count: operandCount)
    }
}

/// Reads the values of groups for expressions that ``GroupTerms`` has rewritten.
///
/// They name nothing else.
private final class GroupReader: PredicateReader {
    func identity(of subject: AnyObject) -> PredicateIdentity { PredicateIdentity(store: 0, entity: 0, key: 0) }

    func value(of attribute: PredicateAttribute, in subject: AnyObject) -> PredicateValue {
        // Only groups are handed to the evaluator with this reader.
        unsafeDowncast(subject, to: Group.self).values[attribute.slot]
    }

    func identity(of relationship: PredicateRelationship, in subject: AnyObject) -> PredicateIdentity? { nil }

    func subject(of relationship: PredicateRelationship, in subject: AnyObject) -> AnyObject? { nil }

    func subjects(of relationship: PredicateRelationship, in subject: AnyObject) -> [AnyObject] { [] }
}
