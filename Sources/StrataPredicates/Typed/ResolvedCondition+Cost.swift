extension ResolvedPredicate {
    /// Whether a short text, or few rows, can make the evaluation take very long: collections are nested in each other, or there
    /// is a regular expression.
    ///
    /// Everything else takes time in proportion to the rows and to the length of the texts.
    package var isCostly: Bool { condition.isCostly(inCollection: false) }
}

extension ResolvedExpression {
    /// The same for a value that is computed of each row.
    package var isCostly: Bool { isCostly(inCollection: false) }
}

extension ResolvedCondition {
    /// The same for a condition of its own.
    package var isCostly: Bool { isCostly(inCollection: false) }

    fileprivate func isCostly(inCollection isInside: Bool) -> Bool {
        switch self {
        case .constant: false
        case .and(let operands), .or(let operands): operands.contains { $0.isCostly(inCollection: isInside) }
        case .not(let operand): operand.isCostly(inCollection: isInside)
        case .isNull(let operand), .member(let operand, _): operand.isCostly(inCollection: isInside)
        case .comparison(let comparison):
            comparison.left.isCostly(inCollection: isInside) || comparison.right.isCostly(inCollection: isInside)
        case .between(let operand, let lower, let upper, _):
            [operand, lower, upper].contains { $0.isCostly(inCollection: isInside) }
        case .string(let test):
            test.isCostly || test.text.isCostly(inCollection: isInside)
                || test.pattern.isCostly(inCollection: isInside)
        case .exists(let collection, let test):
            isInside || test.isCostly(inCollection: true) || collection.filter?.isCostly(inCollection: true) ?? false
        }
    }
}

extension ResolvedStringTest {
    /// A pattern that is no constant may be any.
    fileprivate var isCostly: Bool { matcher?.isCostly ?? (test == .matches || test == .like) }
}

extension ResolvedExpression {
    fileprivate func isCostly(inCollection isInside: Bool) -> Bool {
        switch self {
        case .constant, .object, .attribute: false
        case .function(_, let operands, _): operands.contains { $0.isCostly(inCollection: isInside) }
        case .aggregate(let aggregate):
            isInside || aggregate.element?.isCostly(inCollection: true) ?? false
                || aggregate.collection.filter?.isCostly(inCollection: true) ?? false
        case .conditional(let test, let first, let second):
            test.isCostly(inCollection: isInside) || first.isCostly(inCollection: isInside)
                || second.isCostly(inCollection: isInside)
        case .rowAggregate(_, let operand): operand.isCostly(inCollection: isInside)
        }
    }
}
