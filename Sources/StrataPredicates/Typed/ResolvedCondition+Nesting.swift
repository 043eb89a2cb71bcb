/// The nesting of a tree, counted as SQLite's parser does it.
///
/// The parser keeps symbols while it reads the text of the tree, a hundred at most. All stores refuse deeper
/// predicates, so that a predicate that works on one of them works on the others. A chain counts once, whatever its
/// length: `a AND b AND c`, `a + b + c`, `TERNARY(p, a, TERNARY(q, b, c))`.
package enum Nesting {
    /// The limit for a predicate or an expression.
    ///
    /// The rest is left for the SQL around it.
    package static let limit = 78

    /// The longest chain of operators that is written as one; a longer one becomes a balanced tree.
    package static let longestChain = 50

    /// The nesting of a column, with its table and possible operators around it.
    fileprivate static let column = 5
}

extension ResolvedCondition {
    /// The nesting of the condition.
    ///
    /// - Parameter deepestFirst: Whether the deepest operand of AND and OR comes first, which needs fewer symbols.
    /// - Returns: The number of symbols.
    package func nesting(deepestFirst: Bool) -> Int {
        func of(_ expression: ResolvedExpression) -> Int { expression.nesting(deepestFirst: deepestFirst) }
        switch self {
        case .constant: return 1
        case .and(let operands): return Self.nesting(of: operands, deepestFirst)
        case .or(let operands): return 1 + Self.nesting(of: operands, deepestFirst)
        case .not(let operand): return 1 + operand.nesting(deepestFirst: deepestFirst)
        case .isNull(let operand): return 1 + of(operand)
        case .comparison(let comparison): return max(1 + of(comparison.left), 3 + of(comparison.right))
        case .between(let operand, let lower, let upper, _): return max(of(operand), 2 + of(lower), 4 + of(upper))
        case .member(let operand, _): return max(3 + of(operand), 16)
        case .string(let test): return max(3 + of(test.text), 5 + of(test.pattern))
        case .exists(let collection, let test):
            let filter = collection.filter?.nesting(deepestFirst: deepestFirst) ?? 0
            return 9 + max(filter, test.nesting(deepestFirst: deepestFirst))
        }
    }

    private static func nesting(of operands: [ResolvedCondition], _ deepestFirst: Bool) -> Int {
        // Inside of another chain, an AND is in parentheses.
        var all = operands.map { operand in
            if case .and = operand { return 1 + operand.nesting(deepestFirst: deepestFirst) }
            return operand.nesting(deepestFirst: deepestFirst)
        }
        if deepestFirst, let deepest = all.indices.max(by: { all[$0] < all[$1] }) { all.swapAt(0, deepest) }
        let chain = max(all.first ?? 0, 2 + (all.dropFirst().max() ?? 0))
        var (length, halvings) = (operands.count, 0)
        while length > Nesting.longestChain { (length, halvings) = ((length + 1) / 2, halvings + 1) }
        return chain + 3 * halvings
    }
}

extension ResolvedExpression {
    /// The nesting of the expression; see ``ResolvedCondition/nesting(deepestFirst:)``.
    package func nesting(deepestFirst: Bool) -> Int {
        func of(_ expression: ResolvedExpression) -> Int { expression.nesting(deepestFirst: deepestFirst) }
        switch self {
        case .constant: return 1
        case .object, .attribute: return Nesting.column
        case .function(let function, let operands, _):
            guard function.isArithmetic, operands.count == 2 else {
                let others = operands.dropFirst().lazy.map(of).max() ?? 0
                return max(3 + (operands.first.map(of) ?? 0), 5 + others)
            }
            // The chain to the left shares its parenthesis with this operator.
            return max(of(operands[0]) + (operands[0].isChain(of: function) ? 0 : 1), 3 + of(operands[1]))
        case .aggregate(let aggregate):
            let element = aggregate.element.map { 8 + of($0) } ?? 0
            return max(element, 8 + (aggregate.collection.filter?.nesting(deepestFirst: deepestFirst) ?? 0))
        case .conditional:
            // From the second branch on, the parser keeps one more symbol for the earlier branches.
            var (deepest, rest, isFirst) = (0, self, true)
            while case .conditional(let test, let value, let other) = rest {
                let branch = max(3 + test.nesting(deepestFirst: deepestFirst), 5 + of(value))
                deepest = max(deepest, branch + (isFirst ? 0 : 1))
                (rest, isFirst) = (other, false)
            }
            return max(deepest, 4 + of(rest))
        case .rowAggregate(_, let operand): return 3 + of(operand)
        }
    }

    /// Whether the expression is a chain of operators with the precedence of another function.
    private func isChain(of function: PredefinedFunction) -> Bool {
        guard case .function(let inner, _, _) = self, inner.isArithmetic else { return false }
        return inner.infix?.precedence == function.infix?.precedence
    }
}

extension PredefinedFunction {
    /// Whether the function is always written as an operator.
    fileprivate var isArithmetic: Bool { [.add, .subtract, .multiply, .divide].contains(self) }
}
