/// Why a predicate or an expression has no answer for an object: an unknown key, values that cannot be compared, an
/// unbound variable, a broken regular expression.
///
/// `evaluate(with:)` cannot throw, and answers false instead.
package struct PredicateEvaluationError: LocalizedError, CustomStringConvertible, Hashable, Sendable {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    package var errorDescription: String? {
        description
    }
}
