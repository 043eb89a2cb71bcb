/// The translation of one part of a Swift predicate.
///
/// Swift's optionals are resolved here. Mostly nil becomes a null value by itself, because null passes through key
/// paths and arithmetic. There are exceptions: `city?.venues.count` is nil without a city, while `city.venues.@count`
/// is 0. Then the translation has the condition under which there is a value.
struct Translation {
    indirect enum Form {
        /// A value; null means nil.
        case value(NSExpression)
        /// A truth value.
        case condition(NSPredicate)
        /// `value ?? fallback`, whose fallback is a constant.
        case defaulted(NSExpression, fallback: Any)
        /// A range of values.
        case interval(Interval)
        /// The order of two strings.
        case order(StringOrder)
        /// A filtered collection of the program: for each member, the condition under which it remains.
        case filtered([NSPredicate])
    }

    var form: Form
    /// The condition under which there is a value; `nil` if there always is one, or if null means that there is none.
    var presence: NSPredicate?

    init(_ form: Form, presence: NSPredicate? = nil) {
        self.form = form
        self.presence = presence
    }

    static func value(_ expression: NSExpression) -> Translation { Translation(.value(expression)) }
    static func condition(_ predicate: NSPredicate) -> Translation { Translation(.condition(predicate)) }

    /// The value, if it is already known.
    var constant: Any?? {
        guard presence == nil else { return nil }
        switch form {
        case .value(let expression):
            guard case .constant(let value) = expression.kind else { return nil }
            return .some(value)
        case .condition(let predicate):
            guard case .constant(let value) = PredicateForm(predicate) else { return nil }
            return .some(value)
        default: return nil
        }
    }

    /// The truth value, if it is already known.
    var constantTruth: Bool? {
        guard let constant else { return nil }
        return constant.flatMap { PredicateValue(scalar: $0)?.doubleValue }.map { $0 != 0 }
    }

    // MARK: - As one or the other

    /// The translation as a value for a comparison or a function.
    func expression() throws -> NSExpression {
        let plain: NSExpression
        switch form {
        case .value(let expression): plain = expression
        case .condition(let predicate):
            if let constantTruth { return NSExpression(forConstantValue: NSNumber(value: constantTruth)) }
            plain = NSExpression(
                forConditional: predicate,
                trueExpression: NSExpression(forConstantValue: NSNumber(value: true)),
                falseExpression: NSExpression(forConstantValue: NSNumber(value: false))
            )
        case .defaulted(let value, let fallback):
            plain = NSExpression(
                forConditional: Conditions.isPresent(value),
                trueExpression: value,
                falseExpression: NSExpression(forConstantValue: fallback)
            )
        case .interval: throw PredicateTranslationError("A range can only be asked whether it contains a value.")
        case .filtered:
            throw PredicateTranslationError(
                "A collection of the program that is filtered by an object's values can only be asked for count and isEmpty; use contains(where:) or allSatisfy(_:) in its place."
            )
        case .order:
            throw PredicateTranslationError(
                "The result of comparing two strings can only be tested for equality with a ComparisonResult."
            )
        }
        guard let presence else { return plain }
        return NSExpression(
            forConditional: presence,
            trueExpression: plain,
            falseExpression: NSExpression(forConstantValue: nil)
        )
    }

    /// The translation as a condition: whether the value is true.
    ///
    /// A missing value is not true.
    func truth() throws -> NSPredicate {
        switch form {
        case .condition(let predicate): return Conditions.all([presence, predicate])
        case .value(let expression):
            if let constantTruth { return NSPredicate(value: constantTruth) }
            return Conditions.all([
                presence,
                Conditions.compare(expression, .equalTo, to: NSExpression(forConstantValue: NSNumber(value: true))),
            ])
        default:
            return Conditions.compare(
                try expression(),
                .equalTo,
                to: NSExpression(forConstantValue: NSNumber(value: true))
            )
        }
    }

    /// The condition that there is a value: `!= nil`.
    func isPresent() -> NSPredicate {
        switch form {
        case .value(let expression): Conditions.all([presence, Conditions.isPresent(expression)])
        default: presence ?? NSPredicate(value: true)
        }
    }

    /// The translation with a further condition for the presence of a value.
    func requiring(_ condition: NSPredicate?) -> Translation {
        guard let condition else { return self }
        return Translation(form, presence: Conditions.all([condition, presence]))
    }
}

/// A range of Swift; each end is optional.
struct Interval {
    var lower: NSExpression?
    var upper: NSExpression?
    var includesUpper: Bool

    /// Whether a value is in the range.
    func contains(_ value: NSExpression) -> NSPredicate {
        if let lower, let upper, includesUpper {
            return Conditions.compare(value, .between, to: NSExpression(forAggregate: [lower, upper]))
        }
        return Conditions.all([
            lower.map { Conditions.compare(value, .greaterThanOrEqualTo, to: $0) },
            upper.map { Conditions.compare(value, includesUpper ? .lessThanOrEqualTo : .lessThan, to: $0) },
        ])
    }
}

/// Two strings that a method of `String` compares.
struct StringOrder {
    let left: NSExpression
    let right: NSExpression
    let options: NSComparisonPredicate.Options

    /// The condition that the strings compare as `result`.
    func matches(_ result: ComparisonResult) -> NSPredicate {
        let operation: NSComparisonPredicate.Operator =
            switch result {
            case .orderedAscending: .lessThan
            case .orderedSame: .equalTo
            case .orderedDescending: .greaterThan
            }
        return Conditions.compare(left, operation, to: right, options: options)
    }
}
