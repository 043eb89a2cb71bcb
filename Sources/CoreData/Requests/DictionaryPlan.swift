import StrataPredicates

/// A fetch for dictionaries after its names were resolved: what a store computes.
struct DictionaryPlan {
    /// The rows that are looked at.
    ///
    /// Order, limit and offset are those of the results, unless the rows are grouped.
    var rows: FetchPlan
    /// What each result has.
    let columns: [DictionaryColumn]
    /// How rows come together in results; `nil` when each row gives one.
    let grouping: RowGrouping?
    /// How many variables the expressions use.
    let variableCount: Int

    /// The most results; 0 for no limit.
    var limit: Int { grouping?.limit ?? rows.limit }
    /// How many results are left out at the start.
    var offset: Int { grouping?.offset ?? rows.offset }

    /// The plan as a store is to answer it.
    func asked(of store: OpenStore) -> DictionaryPlan {
        var plan = self
        plan.rows = rows.asked(of: store)
        return plan
    }

    /// Applies offset and limit to a whole answer.
    func window<Element>(_ elements: [Element]) -> [Element] {
        rows.with(predicate: nil, sort: nil, limit: limit, offset: offset).window(elements)
    }
}

/// One value of each dictionary.
struct DictionaryColumn {
    /// The value's key in the dictionary; for an element of a composite attribute the keys that lead to it.
    let keys: [String]
    let expression: ResolvedExpression
    /// The type of attribute that has such values.
    let type: NSAttributeType
    /// The attribute that decodes the value, if it is a transformable one.
    let attribute: NSAttributeDescription?

    /// A column that is for computing only.
    init(hidden expression: ResolvedExpression) {
        self.init(keys: [], expression: expression, type: .undefinedAttributeType, attribute: nil)
    }

    init(
        keys: [String],
        expression: ResolvedExpression,
        type: NSAttributeType,
        attribute: NSAttributeDescription?
    ) {
        self.keys = keys
        self.expression = expression
        self.type = type
        self.attribute = attribute
    }
}

/// How rows come together in groups, each of which gives one result.
struct RowGrouping {
    /// What the rows of one group have in common.
    ///
    /// Without keys all rows are one group, which is there even if there are no rows.
    let keys: [ResolvedExpression]
    /// What a group must fulfil.
    let having: ResolvedCondition?
    /// The order of the results, in which no two different ones are equal.
    let order: [ResolvedSort.Term]
    /// Whether equal results are to be given once.
    let isDistinct: Bool
    let limit: Int
    let offset: Int
}

extension DictionaryPlan {
    // MARK: - Parts, for several stores

    /// The plan for what each of several stores may have to contribute: the columns, then what results are sorted by.
    var firstPart: DictionaryPlan {
        let keys = (rows.sort?.terms ?? []).map { DictionaryColumn(hidden: $0.expression) }
        return DictionaryPlan(
            rows: rows.firstPart,
            columns: columns + keys,
            grouping: nil,
            variableCount: variableCount
        )
    }

    /// The plan for values of each row, in any order.
    func values(of expressions: [ResolvedExpression]) -> DictionaryPlan {
        DictionaryPlan(
            rows: rows.unordered,
            // A store cannot select nothing; for groups that are only there the number of rows does.
            columns: (expressions.isEmpty ? [.object(ResolvedPath(variable: 0))] : expressions)
                .map { DictionaryColumn(hidden: $0) },
            grouping: nil,
            variableCount: variableCount
        )
    }
}
