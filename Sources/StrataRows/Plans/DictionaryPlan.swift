import StrataPredicates

/// A fetch for dictionaries after its names were resolved: what a store computes.
package struct DictionaryPlan {
    /// The rows that are looked at.
    ///
    /// Order, limit and offset are those of the results, unless the rows are grouped.
    package var rows: FetchPlan
    /// What each result has.
    package let columns: [DictionaryColumn]
    /// How rows come together in results; `nil` when each row gives one.
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
    /// How many results are left out at the start.
    package var offset: Int { grouping?.offset ?? rows.offset }

    /// The plan as a store is to answer it.
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
    /// The value's key in the dictionary; for an element of a composite attribute the keys that lead to it.
    package let keys: [String]
    package let expression: ResolvedExpression
    /// The type of attribute that has such values.
    package let type: AttributeType
    /// What the layer above describes the attribute by, if the value is one of an attribute.
    package let description: (AnyObject & Sendable)?

    /// A column that is for computing only.
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

/// How rows come together in groups, each of which gives one result.
package struct RowGrouping {
    /// What the rows of one group have in common.
    ///
    /// Without keys all rows are one group, which is there even if there are no rows.
    package let keys: [ResolvedExpression]
    /// What a group must fulfil.
    package let having: ResolvedCondition?
    /// The order of the results, in which no two different ones are equal.
    package let order: [ResolvedSort.Term]
    /// Whether equal results are to be given once.
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

    /// The plan for what each of several stores may have to contribute: the columns, then what results are sorted by.
    package var firstPart: DictionaryPlan {
        let keys = (rows.sort?.terms ?? []).map { DictionaryColumn(hidden: $0.expression) }
        return DictionaryPlan(
            rows: rows.firstPart,
            columns: columns + keys,
            grouping: nil,
            variableCount: variableCount
        )
    }

    /// The plan for values of each row, in any order.
    package func values(of expressions: [ResolvedExpression]) -> DictionaryPlan {
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
