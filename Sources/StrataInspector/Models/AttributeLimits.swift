import CoreData

/// The limits of an attribute that Xcode's editor has fields for, read from its validation predicates.
struct AttributeLimits {
    /// The smallest and the largest number, date, or length of a text.
    private(set) var minimum: Any?
    private(set) var maximum: Any?
    /// The regular expression of a text.
    private(set) var pattern: String?
    /// The rules that the editor has no field for.
    private(set) var others: [ValidationRule] = []

    init(of attribute: NSAttributeDescription) {
        for rule in ValidationRule.all(of: attribute) where !take(rule, attribute.type) { others.append(rule) }
    }

    /// Takes over a rule in the form that reading a model gives it: `SELF >= 1`, `length <= 10`, `SELF MATCHES "…"`.
    ///
    /// The rule must be the one that a file would be read with: an attribute of another type has no such limits.
    private mutating func take(_ rule: ValidationRule, _ type: NSAttributeDescription.AttributeType) -> Bool {
        guard let comparison = rule.predicate as? NSComparisonPredicate, let code = rule.code,
            comparison.comparisonPredicateModifier == .direct, comparison.options.isEmpty,
            comparison.rightExpression.expressionType == .constantValue,
            let value = comparison.rightExpression.constantValue
        else { return false }
        let left = comparison.leftExpression
        switch type {
        case .integer16, .integer32, .integer64, .decimal, .double, .float:
            guard left.expressionType == .evaluatedObject, let number = value as? NSNumber else { return false }
            let codes = (NSValidationNumberTooSmallError, NSValidationNumberTooLargeError)
            return take(number, comparison.predicateOperatorType, code: code, of: codes)
        case .date:
            guard left.expressionType == .evaluatedObject, let date = value as? Date else { return false }
            let codes = (NSValidationDateTooSoonError, NSValidationDateTooLateError)
            return take(date, comparison.predicateOperatorType, code: code, of: codes)
        case .string where left.expressionType == .keyPath:
            guard left.keyPath == "length", let length = value as? Int, length >= 0 else { return false }
            let codes = (NSValidationStringTooShortError, NSValidationStringTooLongError)
            return take(length, comparison.predicateOperatorType, code: code, of: codes)
        case .string:
            guard left.expressionType == .evaluatedObject, comparison.predicateOperatorType == .matches,
                code == NSValidationStringPatternMatchingError, pattern == nil, let text = value as? String,
                !text.isEmpty, (try? NSRegularExpression(pattern: text)) != nil
            else { return false }
            pattern = text
            return true
        default: return false
        }
    }

    /// Takes over a limit, if there was none of its kind before.
    private mutating func take(
        _ value: Any,
        _ type: NSComparisonPredicate.Operator,
        code: Int,
        of codes: (least: Int, most: Int)
    ) -> Bool {
        switch (type, code) {
        case (.greaterThanOrEqualTo, codes.least) where minimum == nil: minimum = value
        case (.lessThanOrEqualTo, codes.most) where maximum == nil: maximum = value
        default: return false
        }
        return true
    }
}

/// A validation predicate of a property, with the error that is reported if it does not hold.
struct ValidationRule {
    let predicate: NSPredicate
    /// The code of the error, if the rule gives one.
    let code: Int?
    /// The text of the error, if the rule gives one.
    let message: String?

    /// The rules of a property, in their order.
    static func all(of property: NSPropertyDescription) -> [ValidationRule] {
        let warnings = property.validationWarnings
        return property.validationPredicates.enumerated()
            .map { number, predicate in
                let warning: Any? = number < warnings.count ? warnings[number] : nil
                let message = warning as? String
                return ValidationRule(
                    predicate: predicate,
                    code: message == nil ? warning as? Int : nil,
                    message: message
                )
            }
    }

    /// The text of a comment if the rule cannot be expressed in a form of the model.
    var remark: String { "validation by \(predicate.formatText)" }
}
