// Numbers.

extension PredicateExpressions.Arithmetic: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let function: PredefinedFunction =
            switch op {
            case .add: .add
            case .subtract: .subtract
            case .multiply: .multiply
            }
        return try translator.call(function, lhs, and: rhs)
    }
}

extension PredicateExpressions.IntDivision: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.call(.divide, lhs, and: rhs)
    }
}

extension PredicateExpressions.FloatDivision: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.call(.divide, lhs, and: rhs)
    }
}

extension PredicateExpressions.IntRemainder: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.call(.modulus, lhs, and: rhs)
    }
}

extension PredicateExpressions.UnaryMinus: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let operand = try translator.translate(wrapped)
        let zero = NSExpression(forConstantValue: 0)
        let expression = NSExpression(
            forFunction: PredefinedFunction.subtract.rawValue,
            arguments: [zero, try operand.plainExpression()]
        )
        return Translation(.value(expression), presence: operand.presence)
    }
}

extension PredicateTranslator {
    /// A function of two values; if one is missing, the result is missing.
    fileprivate mutating func call(
        _ function: PredefinedFunction,
        _ lhs: some PredicateExpression,
        and rhs: some PredicateExpression
    ) throws -> Translation {
        let left = try translate(lhs)
        let right = try translate(rhs)
        let expression = NSExpression(
            forFunction: function.rawValue,
            arguments: [try left.plainExpression(), try right.plainExpression()]
        )
        let presence = [left.presence, right.presence].compactMap(\.self)
        return Translation(.value(expression), presence: presence.isEmpty ? nil : Conditions.all(presence))
    }
}
