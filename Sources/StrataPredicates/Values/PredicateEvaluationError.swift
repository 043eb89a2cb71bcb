/// Why a predicate or an expression has no answer for an object: an unknown key, values that cannot be compared, an
/// unbound variable, a broken regular expression.
///
/// `evaluate(with:)` cannot throw, and answers false instead.
package struct PredicateEvaluationError: LocalizedError, CustomStringConvertible, Hashable, Sendable {
    package let description: String
    /// Whether the evaluation was given up because it takes too long.
    package let isTimeLimit: Bool

    package init(_ description: String, isTimeLimit: Bool = false) {
        self.description = description
        self.isTimeLimit = isTimeLimit
    }

    package var errorDescription: String? {
        description
    }
}
