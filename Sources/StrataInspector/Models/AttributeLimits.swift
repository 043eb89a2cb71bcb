import CoreData

/// The limits of an attribute that Xcode's editor has fields for, read from its validation predicates.
struct AttributeLimits {
    /// The least and the most number, date, or length of a text.
    private(set) var minimum: Any?
    private(set) var maximum: Any?
    /// The regular expression of a text.
    private(set) var pattern: String?
    /// The predicates that the editor has no field for.
    private(set) var others: [NSPredicate] = []

    init(of attribute: NSAttributeDescription) {
        for (predicate, warning) in zip(attribute.validationPredicates, attribute.validationWarnings) {
            if !take(predicate, warning as? Int) { others.append(predicate) }
        }
    }

    /// Takes over a predicate in the form that reading a model gives it: `SELF >= 1`, `length <= 10`, `SELF MATCHES "…"`.
    private mutating func take(_ predicate: NSPredicate, _ code: Int?) -> Bool {
        guard let comparison = predicate as? NSComparisonPredicate, let code,
            comparison.rightExpression.expressionType == .constantValue,
            let value = comparison.rightExpression.constantValue
        else { return false }
        let isLength = [NSValidationStringTooShortError, NSValidationStringTooLongError].contains(code)
        guard isLength == Self.isLength(comparison.leftExpression) else { return false }
        switch (comparison.predicateOperatorType, code) {
        case (.greaterThanOrEqualTo, NSValidationNumberTooSmallError),
            (.greaterThanOrEqualTo, NSValidationDateTooSoonError),
            (.greaterThanOrEqualTo, NSValidationStringTooShortError):
            guard minimum == nil else { return false }
            minimum = value
        case (.lessThanOrEqualTo, NSValidationNumberTooLargeError),
            (.lessThanOrEqualTo, NSValidationDateTooLateError),
            (.lessThanOrEqualTo, NSValidationStringTooLongError):
            guard maximum == nil else { return false }
            maximum = value
        case (.matches, NSValidationStringPatternMatchingError):
            guard pattern == nil, let text = value as? String else { return false }
            pattern = text
        default: return false
        }
        return true
    }

    private static func isLength(_ expression: NSExpression) -> Bool {
        expression.expressionType == .keyPath && expression.keyPath == "length"
    }
}
