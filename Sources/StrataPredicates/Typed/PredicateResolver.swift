/// Checks predicates and expressions against an entity, and turns them into resolved trees.
///
/// A resolver is used for one tree: it numbers the tree's variables.
package struct PredicateResolver {
    let root: any PredicateSchema
    private let bindings: [String: Any]
    /// Whether `sum:(price)` of an attribute stands for all rows of the fetch.
    let allowsRowAggregates: Bool

    /// The schemas of the variables, by number.
    private(set) var variableSchemas: [any PredicateSchema]
    /// The iterators of the enclosing subqueries, innermost last.
    private var scopes: [(name: String, variable: Int)] = []
    private var depth = 0
    private var deepest = 0
    let limits: ResolutionLimits

    /// The deepest tree.
    ///
    /// Code can build deeper trees than the parser accepts; both must end before the stack does.
    private static let depthLimit = 1000

    package static let secondsForConstants = 10.0

    private init(
        schema: any PredicateSchema,
        bindings: [String: Any],
        allowsRowAggregates: Bool,
        secondsForConstants: Double
    ) {
        limits = ResolutionLimits(seconds: secondsForConstants)
        root = schema
        self.bindings = bindings
        self.allowsRowAggregates = allowsRowAggregates
        variableSchemas = [schema]
    }

    /// Resolves a predicate; `nil` is the predicate that is always true.
    ///
    /// - Parameters:
    ///   - predicate: The predicate.
    ///   - schema: The entity that it is about.
    ///   - bindings: Values for the predicate's variables, by name without the dollar sign.
    ///   - allowsRowAggregates: Whether aggregates of attributes are computed over all rows, as in HAVING.
    ///   - secondsForConstants: The longest processor time for comparisons of constants with patterns.
    /// - Returns: The checked tree.
    /// - Throws: ``PredicateResolutionError``.
    package static func resolve(
        _ predicate: NSPredicate?,
        schema: any PredicateSchema,
        bindings: [String: Any] = [:],
        allowsRowAggregates: Bool = false,
        secondsForConstants: Double = Self.secondsForConstants
    ) throws -> ResolvedPredicate {
        var resolver = Self(
            schema: schema,
            bindings: bindings,
            allowsRowAggregates: allowsRowAggregates,
            secondsForConstants: secondsForConstants
        )
        let condition = try predicate.map { try resolver.condition($0) } ?? .constant(true)
        if resolver.mayBeTooDeep, condition.nesting(deepestFirst: true) > Nesting.limit { throw resolver.tooDeep }
        try resolver.checkConstants { $0.add(condition) }
        return ResolvedPredicate(
            condition: condition,
            variableCount: resolver.variableSchemas.count,
            schema: schema
        )
    }

    /// Resolves an expression with a single value, and returns it with the number of variables that it uses.
    ///
    /// - Throws: ``PredicateResolutionError``.
    package static func resolve(
        _ expression: NSExpression,
        schema: any PredicateSchema,
        bindings: [String: Any] = [:],
        allowsRowAggregates: Bool = false,
        secondsForConstants: Double = Self.secondsForConstants
    ) throws -> (expression: ResolvedExpression, variableCount: Int) {
        var resolver = Self(
            schema: schema,
            bindings: bindings,
            allowsRowAggregates: allowsRowAggregates,
            secondsForConstants: secondsForConstants
        )
        let operand = try resolver.operand(expression)
        let resolved = try resolver.scalar(operand, expression)
        if resolver.mayBeTooDeep, resolved.nesting(deepestFirst: true) > Nesting.limit { throw resolver.tooDeep }
        try resolver.checkConstants { $0.add(resolved) }
        return (resolved, resolver.variableSchemas.count)
    }

    // MARK: - Predicates

    mutating func condition(_ predicate: NSPredicate) throws -> ResolvedCondition {
        try descend()
        defer { depth -= 1 }
        switch PredicateForm(predicate) {
        case .constant(let value): return .constant(value)
        case .not(let operand): return try condition(operand).negated
        case .and(let operands): return .all(try operands.map { try condition($0) })
        case .or(let operands): return .any(try operands.map { try condition($0) })
        case .comparison(let comparison): return try ComparisonResolver.resolve(comparison, &self)
        case .block: throw failure(.unsupported, "A block predicate cannot be evaluated by a store.")
        }
    }

    mutating func descend() throws {
        depth += 1
        deepest = max(deepest, depth)
        if depth > Self.depthLimit {
            throw failure(.unsupported, "The predicate is nested more than \(Self.depthLimit) levels deep.")
        }
    }

    /// Whether the nesting may exceed its limit; each level adds less than a seventh of the possible nesting.
    private var mayBeTooDeep: Bool { deepest + variableSchemas.count > 7 }

    private var tooDeep: PredicateResolutionError {
        failure(
            .unsupported,
            "The predicate is nested too deep for SQLite, and so for all stores. Take it apart, or fetch in several steps."
        )
    }

    /// Refuses more constants than SQLite can prepare in a second or two.
    ///
    /// SQLite compares each constant with all others, and this cannot be interrupted.
    private func checkConstants(_ add: (inout EvaluationCost) -> Void) throws {
        var cost = EvaluationCost(upTo: .max)
        add(&cost)
        guard cost.constants > Self.mostConstants else { return }
        throw failure(
            .unsupported,
            "A fetch cannot compare with more than \(Self.mostConstants) values one by one, \(cost.constants) here; use IN with a collection."
        )
    }

    private static let mostConstants = 10_000

    mutating func ascend() {
        depth -= 1
    }

    // MARK: - Variables

    /// A new variable for the members of a collection.
    mutating func newVariable(_ schema: any PredicateSchema) -> Int {
        variableSchemas.append(schema)
        return variableSchemas.count - 1
    }

    mutating func withScope<Result>(_ name: String, of variable: Int, _ body: (inout Self) throws -> Result) throws
        -> Result
    {
        scopes.append((name, variable))
        defer { scopes.removeLast() }
        return try body(&self)
    }

    func iterator(named name: String) -> Int? {
        scopes.last { $0.name == name }?.variable
    }

    func boundValue(named name: String) -> Any? {
        bindings[name]
    }

    /// The entity of the object at the end of a path.
    func schema(of path: ResolvedPath) -> any PredicateSchema {
        path.steps.last?.destination ?? variableSchemas[path.variable]
    }

    // MARK: - Errors

    func failure(
        _ reason: PredicateResolutionError.Reason,
        _ message: String,
        keyPath: String? = nil,
        schema: (any PredicateSchema)? = nil
    ) -> PredicateResolutionError {
        PredicateResolutionError(
            reason: reason,
            message: message,
            keyPath: keyPath,
            entityName: (schema ?? root).predicateEntityName
        )
    }
}
