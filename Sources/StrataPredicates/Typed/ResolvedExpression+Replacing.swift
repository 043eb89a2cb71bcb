/// Returns the replacement of a part of an expression; if it returns nil, the walk continues with the part's operands.
package typealias ResolvedReplacement = (ResolvedExpression) throws -> ResolvedExpression?

extension ResolvedExpression {
    /// The expression with parts of it replaced.
    ///
    /// An error of the closures ends the walk.
    ///
    /// - Parameters:
    ///   - visit: Receives each collection before its filter and the operations on its members are visited.
    ///   - replace: Called from the top down. Its result replaces the whole part.
    /// - Returns: The expression, changed.
    package func replacing(
        visit: (ResolvedCollection) throws -> Void = { _ in },
        _ replace: ResolvedReplacement
    ) rethrows -> ResolvedExpression {
        if let replacement = try replace(self) { return replacement }
        switch self {
        case .constant, .object, .attribute: return self
        case .function(let function, let operands, let type):
            return .function(function, try operands.map { try $0.replacing(visit: visit, replace) }, type)
        case .aggregate(let aggregate):
            return .aggregate(
                ResolvedAggregate(
                    function: aggregate.function,
                    collection: try aggregate.collection.replacing(visit: visit, replace),
                    element: try aggregate.element.map { try $0.replacing(visit: visit, replace) },
                    type: aggregate.type
                )
            )
        case .conditional(let test, let first, let second):
            return .conditional(
                try test.replacing(visit: visit, replace),
                try first.replacing(visit: visit, replace),
                try second.replacing(visit: visit, replace)
            )
        case .rowAggregate(let function, let operand):
            return .rowAggregate(function, try operand.replacing(visit: visit, replace))
        }
    }
}

extension ResolvedCondition {
    /// The condition with parts of its expressions replaced.
    ///
    /// - Parameters:
    ///   - visit: The closure as in ``ResolvedExpression/replacing(visit:_:)``.
    ///   - replace: The closure as in ``ResolvedExpression/replacing(visit:_:)``.
    /// - Returns: The condition, changed.
    package func replacing(
        visit: (ResolvedCollection) throws -> Void = { _ in },
        _ replace: ResolvedReplacement
    ) rethrows -> ResolvedCondition {
        switch self {
        case .constant: return self
        case .and(let operands): return .and(try operands.map { try $0.replacing(visit: visit, replace) })
        case .or(let operands): return .or(try operands.map { try $0.replacing(visit: visit, replace) })
        case .not(let operand): return .not(try operand.replacing(visit: visit, replace))
        case .isNull(let operand): return .isNull(try operand.replacing(visit: visit, replace))
        case .comparison(let comparison):
            return .comparison(
                ResolvedComparison(
                    left: try comparison.left.replacing(visit: visit, replace),
                    operator: comparison.operator,
                    right: try comparison.right.replacing(visit: visit, replace),
                    folding: comparison.folding
                )
            )
        case .between(let operand, let lower, let upper, let folding):
            return .between(
                try operand.replacing(visit: visit, replace),
                lower: try lower.replacing(visit: visit, replace),
                upper: try upper.replacing(visit: visit, replace),
                folding
            )
        case .member(let operand, let set): return .member(try operand.replacing(visit: visit, replace), set)
        case .string(let test):
            return .string(
                ResolvedStringTest(
                    text: try test.text.replacing(visit: visit, replace),
                    test: test.test,
                    pattern: try test.pattern.replacing(visit: visit, replace),
                    folding: test.folding,
                    matcher: test.matcher
                )
            )
        case .exists(let collection, let test):
            return .exists(
                try collection.replacing(visit: visit, replace),
                try test.replacing(visit: visit, replace)
            )
        }
    }
}

extension ResolvedCollection {
    fileprivate func replacing(
        visit: (ResolvedCollection) throws -> Void,
        _ replace: ResolvedReplacement
    ) rethrows -> ResolvedCollection {
        try visit(self)
        var result = self
        result.filter = try filter.map { try $0.replacing(visit: visit, replace) }
        return result
    }
}
