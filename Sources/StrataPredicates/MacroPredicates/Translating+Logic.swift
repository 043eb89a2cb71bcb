// Boolean logic, comparisons, choices.

extension PredicateExpressions.Conjunction: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        .condition(Conditions.all([try translator.condition(lhs), try translator.condition(rhs)]))
    }
}

extension PredicateExpressions.Disjunction: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        .condition(Conditions.any([try translator.condition(lhs), try translator.condition(rhs)]))
    }
}

extension PredicateExpressions.Negation: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        .condition(Conditions.not(try translator.condition(wrapped)))
    }
}

extension PredicateExpressions.Equal: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        .condition(try Equality(translator.translate(lhs), translator.translate(rhs)).predicate(isEqual: true))
    }
}

extension PredicateExpressions.NotEqual: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        .condition(try Equality(translator.translate(lhs), translator.translate(rhs)).predicate(isEqual: false))
    }
}

extension PredicateExpressions.Comparison: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let operation: NSComparisonPredicate.Operator =
            switch op {
            case .lessThan: .lessThan
            case .lessThanOrEqual: .lessThanOrEqualTo
            case .greaterThan: .greaterThan
            case .greaterThanOrEqual: .greaterThanOrEqualTo
            }
        let left = try translator.translate(lhs)
        let right = try translator.translate(rhs)
        return .condition(try Operands(left, right).compare(operation))
    }
}

extension PredicateExpressions.Conditional: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let test = try translator.condition(test)
        let first = try translator.translate(trueBranch)
        let second = try translator.translate(falseBranch)
        if case .constant(let value) = PredicateForm(test) { return value ? first : second }
        if If.Output.self == Bool.self {
            return .condition(
                Conditions.any([
                    Conditions.all([test, try first.truth()]),
                    Conditions.all([Conditions.not(test), try second.truth()]),
                ])
            )
        }
        return .value(
            NSExpression(
                forConditional: test,
                trueExpression: try first.expression(),
                falseExpression: try second.expression()
            )
        )
    }
}

extension PredicateExpressions.RangeExpressionContains: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        guard case .interval(let interval) = try translator.translate(range).form else {
            throw PredicateTranslationError(
                "A range of type \(RangeExpression.Output.self) cannot be translated into an NSPredicate."
            )
        }
        let element = try translator.translate(element)
        return .condition(Conditions.all([element.presence, interval.contains(try element.plainExpression())]))
    }
}

extension PredicateExpressions.ClosedRange: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let interval = Interval(
            lower: try translator.value(lower),
            upper: try translator.value(upper),
            includesUpper: true
        )
        return Translation(.interval(interval))
    }
}

extension PredicateExpressions.Range: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let interval = Interval(
            lower: try translator.value(lower),
            upper: try translator.value(upper),
            includesUpper: false
        )
        return Translation(.interval(interval))
    }
}

// MARK: - Comparing

/// Two operands of an operator that is false if one of them is missing.
struct Operands {
    let left: Translation
    let right: Translation

    init(_ left: Translation, _ right: Translation) {
        self.left = left
        self.right = right
    }

    func compare(
        _ operation: NSComparisonPredicate.Operator,
        _ options: NSComparisonPredicate.Options = []
    ) throws -> NSPredicate {
        if let simple = try comparingDefault(operation, options) { return simple }
        return Conditions.all([
            left.presence, right.presence,
            Conditions.compare(
                try left.plainExpression(),
                operation,
                to: try right.plainExpression(),
                options: options
            ),
        ])
    }

    /// Translates `(value ?? fallback) op constant` to a condition on `value` alone, for which an index can be used.
    private func comparingDefault(
        _ operation: NSComparisonPredicate.Operator,
        _ options: NSComparisonPredicate.Options
    ) throws -> NSPredicate? {
        guard left.presence == nil, case .defaulted(let value, let fallback) = left.form,
            let constant = right.constant, let constant
        else { return nil }
        let other = NSExpression(forConstantValue: constant)
        let known = Conditions.compare(NSExpression(forConstantValue: fallback), operation, to: other, options: options)
        let comparison = Conditions.compare(value, operation, to: other, options: options)
        if known.evaluate(with: nil) {
            return Conditions.any([comparison, Conditions.not(Conditions.isPresent(value))])
        }
        return operation == .notEqualTo ? Conditions.all([Conditions.isPresent(value), comparison]) : comparison
    }
}

/// Two operands of `==` or `!=`, for which nil equals nil.
private struct Equality {
    let left: Translation
    let right: Translation

    init(_ left: Translation, _ right: Translation) {
        self.left = left
        self.right = right
    }

    func predicate(isEqual: Bool) throws -> NSPredicate {
        if let special = try special(left, right) ?? special(right, left) {
            return isEqual ? special : Conditions.not(special)
        }
        if left.presence == nil, right.presence == nil {
            return try Operands(left, right).compare(isEqual ? .equalTo : .notEqualTo)
        }
        // A missing value is not equal to any constant.
        if isEqual, right.presence == nil, right.constant != nil { return try Operands(left, right).compare(.equalTo) }
        if isEqual, left.presence == nil, left.constant != nil { return try Operands(left, right).compare(.equalTo) }
        return Conditions.compare(
            try left.expression(),
            isEqual ? .equalTo : .notEqualTo,
            to: try right.expression()
        )
    }

    /// The equality of a constant and a translation that is not a plain value.
    private func special(_ operand: Translation, _ other: Translation) throws -> NSPredicate? {
        guard let constant = other.constant else { return nil }
        guard let constant else {
            guard operand.constant == nil else { return nil }
            if case .value(let expression) = operand.form, operand.presence == nil {
                return Conditions.compare(expression, .equalTo, to: NSExpression(forConstantValue: nil))
            }
            return Conditions.not(operand.isPresent())
        }
        switch operand.form {
        case .order(let order):
            guard let number = PredicateValue(scalar: constant)?.integerValue,
                let result = ComparisonResult(rawValue: Int(number))
            else { return nil }
            return Conditions.all([operand.presence, order.matches(result)])
        case .condition(let predicate):
            guard operand.constant == nil, let truth = other.constantTruth else { return nil }
            return Conditions.all([operand.presence, truth ? predicate : Conditions.not(predicate)])
        default:
            return nil
        }
    }
}
