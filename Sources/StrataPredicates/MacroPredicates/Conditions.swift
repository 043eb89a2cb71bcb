/// Makes the predicates of translations, and leaves out parts without effect.
enum Conditions {
    /// The conjunction of the predicates.
    ///
    /// Those that are nil, or always true, are left out.
    static func all(_ predicates: [NSPredicate?]) -> NSPredicate {
        var members: [NSPredicate] = []
        for case let predicate? in predicates {
            switch PredicateForm(predicate) {
            case .constant(true): continue
            case .constant(false): return NSPredicate(value: false)
            case .and(let inner): members += inner
            default: members.append(predicate)
            }
        }
        // If another member implies a member, that one is left out.
        members = members.enumerated().filter { index, member in
            !members.enumerated().contains { other, stronger in
                other != index && implies(stronger, member) && !(other > index && implies(member, stronger))
            }
        }.map(\.element)
        switch members.count {
        case 0: return NSPredicate(value: true)
        case 1: return members[0]
        default: return StructuralCompoundPredicate(type: .and, subpredicates: members)
        }
    }

    /// The disjunction of the predicates.
    ///
    /// Those that are always false are left out.
    static func any(_ predicates: [NSPredicate]) -> NSPredicate {
        var members: [NSPredicate] = []
        for predicate in predicates {
            switch PredicateForm(predicate) {
            case .constant(false): continue
            case .constant(true): return NSPredicate(value: true)
            case .or(let inner): members += inner
            default: members.append(predicate)
            }
        }
        switch members.count {
        case 0: return NSPredicate(value: false)
        case 1: return members[0]
        default: return StructuralCompoundPredicate(type: .or, subpredicates: members)
        }
    }

    /// The negation of the predicate.
    static func not(_ predicate: NSPredicate) -> NSPredicate {
        switch PredicateForm(predicate) {
        case .constant(let value): return NSPredicate(value: !value)
        case .not(let operand): return operand
        case .comparison(let comparison) where isNullTest(comparison):
            let isEqual = comparison.predicateOperatorType == .equalTo
            return compare(comparison.leftExpression, isEqual ? .notEqualTo : .equalTo, to: comparison.rightExpression)
        default: return StructuralCompoundPredicate(type: .not, subpredicates: [predicate])
        }
    }

    static func compare(
        _ left: NSExpression,
        _ operation: NSComparisonPredicate.Operator,
        to right: NSExpression,
        options: NSComparisonPredicate.Options = [],
        modifier: NSComparisonPredicate.Modifier = .direct
    ) -> NSPredicate {
        NSComparisonPredicate(
            leftExpression: left,
            rightExpression: right,
            modifier: modifier,
            type: operation,
            options: options
        )
    }

    /// `value != nil`.
    static func isPresent(_ value: NSExpression) -> NSPredicate {
        if case .constant(let constant) = value.kind { return NSPredicate(value: constant != nil) }
        return compare(value, .notEqualTo, to: NSExpression(forConstantValue: nil))
    }

    /// Whether a comparison is `x == nil` or `x != nil`.
    private static func isNullTest(_ comparison: NSComparisonPredicate) -> Bool {
        guard comparison.comparisonPredicateModifier == .direct, isNull(comparison.rightExpression) else {
            return false
        }
        return comparison.predicateOperatorType == .equalTo || comparison.predicateOperatorType == .notEqualTo
    }

    private static func isNull(_ expression: NSExpression) -> Bool {
        if case .constant(nil) = expression.kind { return true }
        return false
    }

    // MARK: - Null

    /// Whether `predicate` implies `presence`, a test for null.
    ///
    /// The answer is false if that is not known.
    private static func implies(_ predicate: NSPredicate, _ presence: NSPredicate) -> Bool {
        guard case .comparison(let test) = PredicateForm(presence), isNullTest(test),
            test.predicateOperatorType == .notEqualTo,
            case .comparison(let comparison) = PredicateForm(predicate),
            comparison.comparisonPredicateModifier == .direct
        else { return false }
        let source = test.leftExpression
        if isNullTest(comparison) {
            return comparison.predicateOperatorType == .notEqualTo && isNull(comparison.leftExpression, ifNull: source)
        }
        let operands = [comparison.leftExpression, comparison.rightExpression]
        switch comparison.predicateOperatorType {
        case .lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo, .beginsWith, .endsWith, .like,
            .matches:
            return operands.contains { isNull($0, ifNull: source) }
        case .between:
            return isNull(operands[0], ifNull: source)
        case .contains:
            // A collection may contain null. A constant that is not null makes no difference for a string.
            return isNull(operands[0], ifNull: source)
        case .equalTo:
            return isKnownValue(operands[1]) && isNull(operands[0], ifNull: source)
                || isKnownValue(operands[0]) && isNull(operands[1], ifNull: source)
        default:
            return false
        }
    }

    private static func isKnownValue(_ expression: NSExpression) -> Bool {
        guard case .constant(let value) = expression.kind else { return false }
        return value != nil
    }

    /// Whether `expression` is certainly null if `source` is.
    static func isNull(_ expression: NSExpression, ifNull source: NSExpression) -> Bool {
        if expressionsAreEqual(expression, source) { return true }
        switch (expression.kind, source.kind) {
        case (.keyPath(let path), .keyPath(let start)):
            return path.hasPrefix(start + ".") && !path.contains("@")
        case (.function(KeyPathFunction.name, let target?, let arguments), _):
            guard let path = KeyPathFunction.path(of: arguments), !path.contains("@") else { return false }
            if case .function(KeyPathFunction.name, let other?, let others) = source.kind,
                let start = KeyPathFunction.path(of: others), expressionsAreEqual(target, other)
            {
                return path.hasPrefix(start + ".")
            }
            return isNull(target, ifNull: source)
        case (.function(let name, nil, let arguments), _):
            guard let function = PredefinedFunction(rawValue: name), !function.isCollectionFunction,
                function != .index
            else { return false }
            return arguments.contains { isNull($0, ifNull: source) }
        default:
            return false
        }
    }
}
