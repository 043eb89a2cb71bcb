import StrataPredicates

/// A fetch of dictionaries with its names resolved, ready to be computed by a store.
package struct DictionaryPlan {
    /// The rows that the results are computed from.
    ///
    /// Its order, limit and offset are those of the results, unless the rows are grouped.
    package var rows: FetchPlan
    /// The values of each result.
    package let columns: [DictionaryColumn]
    /// How rows are combined into results; `nil` if each row gives one.
    package let grouping: RowGrouping?
    /// How many variables the expressions use.
    package let variableCount: Int

    package init(rows: FetchPlan, columns: [DictionaryColumn], grouping: RowGrouping?, variableCount: Int) {
        self.rows = rows
        self.columns = columns
        self.grouping = grouping
        self.variableCount = variableCount
    }

    /// The most results; 0 for no limit.
    package var limit: Int { grouping?.limit ?? rows.limit }
    /// The number of results that are left out at the start.
    package var offset: Int { grouping?.offset ?? rows.offset }

    /// The plan in the form in which a store answers it.
    package func asked(ofStore number: Int) -> DictionaryPlan {
        var plan = self
        plan.rows = rows.asked(ofStore: number)
        return plan
    }

    /// Applies offset and limit to a whole answer.
    package func window<Element>(_ elements: [Element]) -> [Element] {
        rows.with(predicate: nil, sort: nil, limit: limit, offset: offset).window(elements)
    }
}

/// One value of each dictionary.
package struct DictionaryColumn {
    /// The value's key in the dictionary; for an element of a composite attribute, the keys that lead to it.
    package let keys: [String]
    package let expression: ResolvedExpression
    /// The type of an attribute that has such values.
    package let type: AttributeType
    /// The description that the layer above has for the attribute, if the value is one of an attribute.
    package let description: (AnyObject & Sendable)?

    /// Makes a column that is used only in computations.
    package init(hidden expression: ResolvedExpression) {
        self.init(keys: [], expression: expression, type: .undefined, description: nil)
    }

    package init(
        keys: [String],
        expression: ResolvedExpression,
        type: AttributeType,
        description: (AnyObject & Sendable)?
    ) {
        self.keys = keys
        self.expression = expression
        self.type = type
        self.description = description
    }
}

/// How rows are combined into groups, each of which gives one result.
package struct RowGrouping {
    /// The values that the rows of one group have in common.
    ///
    /// Without keys, all rows are one group. That group exists even if there are no rows.
    package let keys: [ResolvedExpression]
    /// The condition that a group must fulfil.
    package let having: ResolvedCondition?
    /// The order of the results.
    ///
    /// Two different results are never equal in it.
    package let order: [ResolvedSort.Term]
    /// Whether equal results are given only once.
    package let isDistinct: Bool
    package let limit: Int
    package let offset: Int

    package init(
        keys: [ResolvedExpression],
        having: ResolvedCondition?,
        order: [ResolvedSort.Term],
        isDistinct: Bool,
        limit: Int,
        offset: Int
    ) {
        self.keys = keys
        self.having = having
        self.order = order
        self.isDistinct = isDistinct
        self.limit = limit
        self.offset = offset
    }
}

extension DictionaryPlan {
    // MARK: - Parts, for several stores

    /// The plan for the part that each of several stores may contribute: the columns, then the values to sort by.
    package var firstPart: DictionaryPlan {
        let keys = (rows.sort?.terms ?? []).map { DictionaryColumn(hidden: $0.expression) }
        var rows = rows.firstPart
        rows.identity = .first(surplus: 0)
        return DictionaryPlan(
            rows: rows,
            columns: columns + keys,
            grouping: nil,
            variableCount: variableCount
        )
    }

    /// The plan for values of each row, in any order.
    package func values(of expressions: [ResolvedExpression]) -> DictionaryPlan {
        var rows = rows.unordered
        rows.identity = .unordered
        return DictionaryPlan(
            rows: rows,
            // A store cannot select nothing. If only the groups matter, the number of rows is enough.
            columns: (expressions.isEmpty ? [.object(ResolvedPath(variable: 0))] : expressions)
                .map { DictionaryColumn(hidden: $0) },
            grouping: nil,
            variableCount: variableCount
        )
    }
}
