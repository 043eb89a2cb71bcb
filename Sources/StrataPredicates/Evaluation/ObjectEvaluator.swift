/// Evaluates predicates and expressions for any object, through key-value coding.
///
/// This is the evaluator behind `evaluate(with:)` and `expressionValue(with:context:)`, which know nothing of the
/// object beforehand. Comparisons use the same ``PredicateValue`` as those of a resolved predicate, so that the answers
/// agree.
struct ObjectEvaluator {
    let object: Any?
    private let bindings: [String: Any]
    private let context: NSMutableDictionary?
    /// The iterators of the enclosing subqueries, innermost last.
    private var locals: [(name: String, value: Any?)] = []

    init(object: Any?, bindings: [String: Any]?) {
        self.object = object
        self.bindings = bindings ?? [:]
        context = nil
    }

    init(object: Any?, context: NSMutableDictionary?) {
        self.object = object
        bindings = [:]
        self.context = context
    }

    func binding(_ name: String, to value: Any?) -> ObjectEvaluator {
        var inner = self
        inner.locals.append((name, value))
        return inner
    }

    func variable(_ name: String) throws -> Any? {
        if let local = locals.last(where: { $0.name == name }) { return local.value }
        if let value = bindings[name] ?? context?[name] { return nullToNil(value) }
        throw PredicateEvaluationError("there is no value for the variable $\(name)")
    }

    /// The variables that code inside a predicate sees.
    var visibleBindings: [String: Any] {
        var result = bindings
        for (key, value) in context ?? [:] { if let key = key as? String { result[key] = value } }
        for local in locals { result[local.name] = local.value ?? NSNull() }
        return result
    }

    var visibleContext: NSMutableDictionary {
        context ?? NSMutableDictionary(dictionary: visibleBindings)
    }

    // MARK: - Predicates

    /// - Throws: ``PredicateEvaluationError`` if the predicate cannot be evaluated for the object.
    func evaluate(_ predicate: NSPredicate) throws -> Bool {
        switch PredicateForm(predicate) {
        case .constant(let value): return value
        case .comparison(let comparison): return try evaluate(comparison)
        case .not(let operand): return try !evaluate(operand)
        case .and(let operands): return try operands.allSatisfy(evaluate)
        case .or(let operands): return try operands.contains(where: evaluate)
        case .block(let block):
            let bindings = visibleBindings
            return block.evaluate(with: object, substitutionVariables: bindings.isEmpty ? nil : bindings)
        }
    }

    private func evaluate(_ comparison: NSComparisonPredicate) throws -> Bool {
        let operation = ObjectComparison(comparison)
        if case .anyKey = comparison.leftExpression.kind {
            let right = try value(of: comparison.rightExpression)
            return try allValues().contains { try operation.holds($0, right) }
        }
        let left = try value(of: comparison.leftExpression)
        switch comparison.comparisonPredicateModifier {
        case .direct:
            return try operation.holds(left, try value(of: comparison.rightExpression))
        case .any:
            let right = try value(of: comparison.rightExpression)
            return try members(left, comparison).contains { try operation.holds($0, right) }
        case .all:
            let right = try value(of: comparison.rightExpression)
            return try members(left, comparison).allSatisfy { try operation.holds($0, right) }
        }
    }

    /// The values that ANY and ALL check: the members of a collection, or the one value at a key path.
    private func members(_ any: Any?, _ comparison: NSComparisonPredicate) throws -> [Any?] {
        guard let any else { return [] }
        guard collectionMembers(of: any) != nil else {
            if comparison.leftExpression.isKeyPath { return [any] }
            throw PredicateEvaluationError("ANY, ALL and NONE need a collection on their left side")
        }
        return flattenedMembers(of: any)
    }

    /// The values of all keys of the object, for `ANYKEY`.
    private func allValues() -> [Any?] {
        collectionMembers(of: object) ?? object.map { Mirror(reflecting: $0).children.map { nullToNil($0.value) } }
            ?? []
    }
}
