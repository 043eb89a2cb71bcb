/// The comparison of two single values, with the same meaning for every back end.
///
/// Answers are true or false, never unknown:
///
/// - `==` and `!=` are opposites; nil equals nil and nothing else.
/// - `<`, `<=`, `>` and `>=` are false if a side is nil.
/// - The string operators are false if a side is nil.
package enum ScalarComparison {
    /// - Throws: ``PredicateEvaluationError`` for values that have no order, or for values that must be strings but are
    ///   not.
    package static func holds(
        _ lhs: PredicateValue,
        _ type: NSComparisonPredicate.Operator,
        against rhs: PredicateValue,
        folding: StringFolding
    ) throws -> Bool {
        switch type {
        case .equalTo: lhs.isEqual(to: rhs, folding: folding)
        case .notEqualTo: !lhs.isEqual(to: rhs, folding: folding)
        case .lessThan: try order(lhs, rhs, folding: folding) { $0 < 0 }
        case .lessThanOrEqualTo: try order(lhs, rhs, folding: folding) { $0 <= 0 }
        case .greaterThan: try order(lhs, rhs, folding: folding) { $0 > 0 }
        case .greaterThanOrEqualTo: try order(lhs, rhs, folding: folding) { $0 >= 0 }
        case .beginsWith: try match(lhs, .beginsWith, pattern: rhs, folding: folding)
        case .endsWith: try match(lhs, .endsWith, pattern: rhs, folding: folding)
        case .contains: try match(lhs, .contains, pattern: rhs, folding: folding)
        case .in: try match(rhs, .contains, pattern: lhs, folding: folding)
        case .like: try match(lhs, .like, pattern: rhs, folding: folding)
        case .matches: try match(lhs, .matches, pattern: rhs, folding: folding)
        case .between, .customSelector: throw PredicateEvaluationError("\(type) is no comparison of two single values")
        }
    }

    private static func order(
        _ lhs: PredicateValue,
        _ rhs: PredicateValue,
        folding: StringFolding,
        where test: (Int) -> Bool
    ) throws -> Bool {
        if lhs.isNull || rhs.isNull { return false }
        guard let order = lhs.order(rhs, folding: folding) else {
            throw PredicateEvaluationError("there is no order between \(lhs.kindName) and \(rhs.kindName)")
        }
        return test(order)
    }

    private static func match(
        _ text: PredicateValue,
        _ test: StringMatcher.Test,
        pattern: PredicateValue,
        folding: StringFolding
    ) throws -> Bool {
        if text.isNull || pattern.isNull { return false }
        guard case .string(let text) = text, case .string(let pattern) = pattern else {
            throw PredicateEvaluationError(
                "\(test) needs a string on both sides, not \(text.kindName) and \(pattern.kindName)"
            )
        }
        return try StringMatcher(test, pattern: pattern, folding: folding).matches(text)
    }
}

extension PredicateValue {
    /// The kind of the value, for messages.
    package var kindName: String {
        switch self {
        case .null: "nil"
        case .int, .double: "a number"
        case .string: "a string"
        case .date: "a date"
        case .uuid: "a UUID"
        case .data: "data"
        case .reference: "an object"
        case .entity: "an entity"
        case .collection: "a collection"
        }
    }
}
