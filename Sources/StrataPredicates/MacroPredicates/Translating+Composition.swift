// Expressions inside of predicates.

extension PredicateExpressions.ExpressionEvaluate: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        guard let inner = try? expression.evaluate(PredicateBindings()) else {
            throw PredicateTranslationError("An expression that a predicate evaluates has to be a captured constant.")
        }
        var bound: [(PredicateExpressions.VariableID, Translation)] = []
        for (variable, value) in repeat (each inner.variable, each input) {
            bound.append((variable.key, try translator.translate(value)))
        }
        return try translator.binding(bound) { try $0.translate(inner.expression) }
    }
}
