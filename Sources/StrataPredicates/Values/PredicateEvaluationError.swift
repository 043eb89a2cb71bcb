/// The error of a predicate or an expression that has no answer for an object.
///
/// Reasons are an unknown key, values that cannot be compared, an unbound variable, or a broken regular expression.
/// `evaluate(with:)` cannot throw, and returns false in its place.
package struct PredicateEvaluationError: LocalizedError, CustomStringConvertible, Hashable, Sendable {
    package let description: String
    /// Whether the evaluation was stopped because it took too long.
    package let isTimeLimit: Bool

    package init(_ description: String, isTimeLimit: Bool = false) {
        self.description = description
        self.isTimeLimit = isTimeLimit
    }

    package var errorDescription: String? {
        description
    }
}
