/// Replaces variables by constants, throughout a tree.
///
/// The iterator of a subquery hides a variable of the same name.
struct Substitution {
    let variables: [String: Any]
    var hidden: Set<String> = []

    init(variables: [String: Any]) {
        self.variables = variables
    }

    func apply(to predicate: NSPredicate) throws -> NSPredicate {
        if let comparison = predicate as? NSComparisonPredicate { return try apply(toComparison: comparison) }
        guard let compound = predicate as? NSCompoundPredicate else { return predicate }
        let members = try compound.subpredicates.compactMap { $0 as NSPredicate }.map(apply(to:))
        return StructuralCompoundPredicate(type: compound.compoundPredicateType, subpredicates: members)
    }

    private func apply(toComparison comparison: NSComparisonPredicate) throws -> NSPredicate {
        let left = try apply(to: comparison.leftExpression)
        let right = try apply(to: comparison.rightExpression)
        if let selector = comparison.customSelector {
            return NSComparisonPredicate(leftExpression: left, rightExpression: right, customSelector: selector)
        }
        return NSComparisonPredicate(
            leftExpression: left,
            rightExpression: right,
            modifier: comparison.comparisonPredicateModifier,
            type: comparison.predicateOperatorType,
            options: comparison.options
        )
    }

    func apply(to expression: NSExpression) throws -> NSExpression {
        switch expression.kind {
        case .constant, .evaluatedObject, .keyPath, .anyKey, .custom: return expression
        case .variable(let name):
            if hidden.contains(name) { return expression }
            guard let value = variables[name] else {
                throw PredicateEvaluationError("There is no value for the variable $\(name).")
            }
            return NSExpression(forConstantValue: isNullObject(value) ? nil : value)
        case .function(let name, let target, let arguments):
            return NSExpression(
                kind: .function(
                    name: name,
                    target: try target.map(apply(to:)),
                    arguments: try arguments.map(apply(to:))
                )
            )
        case .setOperation(let operation, let left, let right):
            return NSExpression(kind: .setOperation(operation, try apply(to: left), try apply(to: right)))
        case .subquery(let source, let variable, let predicate):
            var inner = self
            inner.hidden.insert(variable)
            return NSExpression(
                kind: .subquery(try apply(to: source), variable: variable, try inner.apply(to: predicate))
            )
        case .aggregate(let members): return NSExpression(forAggregate: try members.map(apply(to:)))
        case .block(let block, let arguments):
            return NSExpression(kind: .block(block, try arguments.map(apply(to:))))
        case .conditional(let predicate, let first, let second):
            return NSExpression(
                kind: .conditional(try apply(to: predicate), try apply(to: first), try apply(to: second))
            )
        }
    }
}
