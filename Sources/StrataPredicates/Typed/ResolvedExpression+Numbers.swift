extension ResolvedExpression {
    /// The condition that the result of a computation is NaN although each of its operands has a value.
    ///
    /// Examples are a division by zero, the root of -1, and infinity less infinity. The result is nil then, as if an
    /// operand were nil. The condition is `nil` if that cannot happen, or if the expression is no computation.
    package var lacksNumber: ResolvedCondition? {
        guard mayLackNumber else { return nil }
        var operands: [ResolvedExpression] = []
        addOperands(to: &operands)
        let areThere = operands.map { operand in
            operand.constantValue.map { ResolvedCondition.constant(!$0.isNull) } ?? operand.isMissing.negated
        }
        return .all([.isNull(self)] + areThere)
    }

    /// Adds the operands of a computation, through all functions that are nil if an operand is.
    private func addOperands(to operands: inout [ResolvedExpression]) {
        guard case .function(let function, let inner, _) = self, function.isOfNumbers else {
            return operands.append(self)
        }
        for operand in inner { operand.addOperands(to: &operands) }
    }

    /// Whether the result may be NaN although no operand is.
    private var mayLackNumber: Bool {
        guard case .function(let function, let operands, _) = self, function.isOfNumbers else { return false }
        if operands.contains(where: \.mayLackNumber) { return true }
        switch function {
        case .divide: return !operands[1].isFiniteAndNotZero
        case .modulus: return !operands[1].isFiniteAndNotZero || !operands[0].isFinite
        case .power, .sqrt, .log, .ln: return true
        case .add, .subtract: return operands.allSatisfy { !$0.isFinite }
        case .multiply: return !operands.allSatisfy(\.isFinite) && !operands.contains(where: \.isFiniteAndNotZero)
        default: return false
        }
    }

    /// Whether the value is never an infinite number.
    private var isFinite: Bool {
        if let constant = constantValue?.doubleValue { return constant.isFinite }
        return [.bool, .integer].contains(type)
    }

    private var isFiniteAndNotZero: Bool {
        constantValue?.doubleValue.map { $0.isFinite && $0 != 0 } ?? false
    }
}

extension PredefinedFunction {
    /// Whether the function computes a number from numbers, or a date from a date and a number.
    fileprivate var isOfNumbers: Bool {
        switch self {
        case .add, .subtract, .multiply, .divide, .modulus, .power: true
        case .sqrt, .log, .ln, .exp, .floor, .ceiling, .abs, .trunc: true
        default: false
        }
    }
}
