extension ResolvedExpression {
    /// The expression with parts of it replaced.
    ///
    /// `replace` is asked from the top down: what it gives stands for the whole part, and where it gives nil the operands
    /// are asked about. An error that it throws ends the walk.
    package func replacing(
        _ replace: (ResolvedExpression) throws -> ResolvedExpression?
    ) rethrows -> ResolvedExpression {
        if let replacement = try replace(self) { return replacement }
        switch self {
        case .constant, .object, .attribute: return self
        case .function(let function, let operands, let type):
            return .function(function, try operands.map { try $0.replacing(replace) }, type)
        case .aggregate(let aggregate):
            return .aggregate(
                ResolvedAggregate(
                    function: aggregate.function,
                    collection: try aggregate.collection.replacing(replace),
                    element: try aggregate.element.map { try $0.replacing(replace) },
                    type: aggregate.type
                )
            )
        case .conditional(let test, let first, let second):
            return .conditional(
                try test.replacing(replace),
                try first.replacing(replace),
                try second.replacing(replace)
            )
        case .rowAggregate(let function, let operand):
            return .rowAggregate(function, try operand.replacing(replace))
        }
    }
}

extension ResolvedCondition {
    /// The condition with parts of its expressions replaced, as
    /// ``ResolvedExpression/replacing(_:)`` does it.
    package func replacing(
        _ replace: (ResolvedExpression) throws -> ResolvedExpression?
    ) rethrows -> ResolvedCondition {
        switch self {
        case .constant: return self
        case .and(let operands): return .and(try operands.map { try $0.replacing(replace) })
        case .or(let operands): return .or(try operands.map { try $0.replacing(replace) })
        case .not(let operand): return .not(try operand.replacing(replace))
        case .isNull(let operand): return .isNull(try operand.replacing(replace))
        case .comparison(let comparison):
            return .comparison(
                ResolvedComparison(
                    left: try comparison.left.replacing(replace),
                    operator: comparison.operator,
                    right: try comparison.right.replacing(replace),
                    folding: comparison.folding
                )
            )
        case .between(let operand, let lower, let upper, let folding):
            return .between(
                try operand.replacing(replace),
                lower: try lower.replacing(replace),
                upper: try upper.replacing(replace),
                folding
            )
        case .member(let operand, let set): return .member(try operand.replacing(replace), set)
        case .string(let test):
            return .string(
                ResolvedStringTest(
                    text: try test.text.replacing(replace),
                    test: test.test,
                    pattern: try test.pattern.replacing(replace),
                    folding: test.folding,
                    matcher: test.matcher
                )
            )
        case .exists(let collection, let test):
            return .exists(try collection.replacing(replace), try test.replacing(replace))
        }
    }
}

extension ResolvedCollection {
    /// `replace` is asked about the owner too, so that it can refuse it; what it gives for an owner has no effect.
    fileprivate func replacing(
        _ replace: (ResolvedExpression) throws -> ResolvedExpression?
    ) rethrows -> ResolvedCollection {
        _ = try replace(.object(owner))
        var result = self
        result.filter = try filter.map { try $0.replacing(replace) }
        return result
    }
}
