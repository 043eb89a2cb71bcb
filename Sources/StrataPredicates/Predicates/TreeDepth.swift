/// The depth to which predicates and expressions may be nested.
///
/// Code that walks a tree recurses level by level, and the stack is limited. The parser accepts no text that is deeper
/// than ``FormatParser/depthLimit``, but code can build any tree. So each node knows its depth, and work on a tree that
/// is too deep is refused before it begins.
package enum TreeDepth {
    /// A depth that fits on every stack, with much room for the callers.
    package static let limit = 1_000

    /// The depth of a predicate.
    ///
    /// - Complexity: O(1), except for compound predicates that Foundation made: O(*n*) in their number. It needs no
    ///   stack.
    package static func of(_ predicate: NSPredicate) -> Int {
        if let known = known(predicate) { return known }
        var deepest = 1
        var rest = [(predicate, 1)]
        while let (predicate, level) = rest.popLast() {
            if let known = known(predicate) {
                deepest = max(deepest, level - 1 + known)
            } else if let compound = predicate as? NSCompoundPredicate {
                deepest = max(deepest, level)
                rest += compound.subpredicates.map { ($0, level + 1) }
            }
        }
        return deepest
    }

    /// The depth of a node that stores it; `nil` for Foundation's compounds.
    private static func known(_ predicate: NSPredicate) -> Int? {
        switch predicate {
        case let comparison as NSComparisonPredicate: comparison.depth
        case let compound as StructuralCompoundPredicate: compound.depth
        case is NSCompoundPredicate: nil
        default: 1
        }
    }

    /// Refuses a predicate that is nested too deeply.
    static func check(_ predicate: NSPredicate) throws {
        try check(of(predicate), "predicate")
    }

    /// Refuses an expression that is nested too deeply.
    static func check(_ expression: NSExpression) throws {
        try check(expression.depth, "expression")
    }

    private static func check(_ depth: Int, _ name: String) throws {
        guard depth > limit else { return }
        throw PredicateEvaluationError("the \(name) is nested \(depth) levels deep; \(limit) are allowed")
    }
}

extension NSExpression.Kind {
    /// The depth of a tree with this at its root.
    var depth: Int {
        switch self {
        case .constant, .evaluatedObject, .variable, .keyPath, .anyKey, .custom: 1
        case .function(_, let target, let arguments): 1 + max(target?.depth ?? 0, Self.deepest(arguments))
        case .setOperation(_, let left, let right): 1 + max(left.depth, right.depth)
        case .subquery(let source, _, let predicate): 1 + max(source.depth, TreeDepth.of(predicate))
        case .aggregate(let members): 1 + Self.deepest(members)
        case .block(_, let arguments): 1 + Self.deepest(arguments)
        case .conditional(let test, let first, let second):
            1 + max(TreeDepth.of(test), first.depth, second.depth)
        }
    }

    private static func deepest(_ expressions: [NSExpression]) -> Int {
        expressions.reduce(0) { max($0, $1.depth) }
    }

    /// The direct children.
    var children: [NSExpression] {
        switch self {
        case .constant, .evaluatedObject, .variable, .keyPath, .anyKey, .custom: []
        case .function(_, let target, let arguments): target.map { arguments + [$0] } ?? arguments
        case .setOperation(_, let left, let right): [left, right]
        case .subquery(let source, _, _): [source]
        case .aggregate(let members): members
        case .block(_, let arguments): arguments
        case .conditional(_, let first, let second): [first, second]
        }
    }
}
