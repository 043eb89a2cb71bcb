import StrataPredicates
import StrataRows

extension QueryCompiler {
    /// The use of an expression's value.
    package enum Use {
        /// A comparison: a column may be written unchanged, with its index.
        case comparison
        /// A computation, for which the storage class of a number matters.
        case computation
        /// An operator, whose result may be wider than the columns.
        case arithmetic
    }

    /// Writes an expression as an operand that binds tighter than any comparison.
    ///
    /// - Parameters:
    ///   - expression: The expression.
    ///   - use: The purpose of the operand.
    ///   - others: The operands that it is compared with.
    /// - Throws: An error for what SQL cannot express.
    package mutating func write(
        _ expression: ResolvedExpression,
        for use: Use,
        against others: [ResolvedExpression] = []
    ) throws {
        switch expression {
        case .constant(let value, _): bind(binding(value))
        case .object(let path): try writeKey(of: path)
        case .attribute(let path, let attribute):
            var use = use
            if attribute.type == .double, others.contains(where: \.isHugeInteger) {
                // Otherwise the number would first be rounded to the type of the column.
                write(forms.computed)
            } else if attribute.type == .decimal, !forms.hasDecimals, others.contains(where: \.mayBeHuge) {
                // A column may hold a whole number with more digits than a double has, and decimals compare as doubles.
                write(forms.computed)
                use = .computation
            }
            try write(path, attribute, for: use)
        case .function(let function, let arguments, let type): try write(function, of: arguments, as: type, for: use)
        case .aggregate(let aggregate): try write(aggregate)
        case .conditional: try writeConditional(expression, for: use)
        case .rowAggregate(let function, let operand):
            if function == .count {
                try writeCount(of: operand)
            } else {
                try writeAggregate(function, of: operand)
            }
        }
    }

    /// Writes a choice between values.
    ///
    /// A chain of choices is written as one.
    private mutating func writeConditional(_ expression: ResolvedExpression, for use: Use) throws {
        write("CASE")
        var rest = expression
        while case .conditional(let test, let value, let other) = rest {
            write(" WHEN ")
            try write(test)
            write(" THEN ")
            try write(value, for: use, against: [expression])
            rest = other
        }
        write(" ELSE ")
        try write(rest, for: use, against: [expression])
        write(" END")
    }

    private mutating func write(_ path: ResolvedPath, _ attribute: PredicateAttribute, for use: Use) throws {
        guard let place = try place(of: path) else { return write("NULL") }
        if attribute.type == .entity { return write("\(place.alias).\(naming.entity)") }
        let column = place.mapping.column(at: attribute.slot)
        if column.isTagged {
            let entity = place.mapping.layout.name
            throw Self.unsupported(
                "The attribute \"\(attribute.name)\" of \(entity) allows external storage, so a SQL store can only compare it with nil."
            )
        }
        guard let name = column.name else { return write("NULL") }
        if use != .comparison, attribute.type == .date || attribute.type == .decimal {
            write("CAST(\(place.alias).\(name) AS \(forms.double))")
        } else if use == .arithmetic, attribute.type == .integer, let type = forms.wideInteger {
            write("CAST(\(place.alias).\(name) AS \(type))")
        } else {
            write(forms.attribute("\(place.alias).\(name)", attribute.type))
        }
    }

    // MARK: - Functions

    private mutating func write(
        _ function: PredefinedFunction,
        of arguments: [ResolvedExpression],
        as type: ResolvedType,
        for use: Use
    ) throws {
        if function == .cast, let source = arguments.first { return try writeCast(source, to: arguments.last) }
        if function == .noIndex, let operand = arguments.first {
            write(forms.computed)
            return try write(operand, for: use == .comparison && operand.type == .decimal ? .computation : use)
        }
        if let sign = function.sign(for: arguments), arguments.count == 2 {
            write("(")
            try writeChain(arguments[0], of: function)
            write(" \(sign) ")
            try write(arguments[1], for: .arithmetic)
            return write(")")
        }
        if function == .onesComplement, arguments[0].isSurelyInteger {
            write("~")
            return try write(arguments[0], for: .computation)
        }
        if function == .length, arguments[0].type == .data {
            write("length")
        } else {
            write(mapping.dialect.function(function))
        }
        write("(")
        for (index, argument) in arguments.enumerated() {
            if index > 0 { write(", ") }
            try write(argument, for: .computation)
        }
        write(")")
    }

    /// Writes the left operand of an operator.
    ///
    /// If it is a chain of operators that bind no looser, it has no parentheses: SQLite's parser limits their nesting.
    private mutating func writeChain(_ operand: ResolvedExpression, of function: PredefinedFunction) throws {
        guard case .function(let inner, let arguments, _) = operand, arguments.count == 2,
            let sign = inner.sign(for: arguments), inner.isAdditive == function.isAdditive,
            inner.isAdditive || inner == .multiply || inner == .divide,
            function.isAdditive || function == .multiply || function == .divide
        else { return try write(operand, for: .arithmetic) }
        try writeChain(arguments[0], of: inner)
        write(" \(sign) ")
        try write(arguments[1], for: .arithmetic)
    }

    // MARK: - CAST

    private mutating func writeCast(_ source: ResolvedExpression, to target: ResolvedExpression?) throws {
        guard let target = target?.constantValue?.stringValue.flatMap(CastTarget.init(rawValue:)) else {
            throw Self.unsupported("CAST needs the name of a type.")
        }
        let makesNumber = target == .number || target == .decimal
        switch (source.type, target) {
        // A key is not a value.
        case (.reference, _), (.entity, _): write("NULL")
        case (.date, .date), (.string, .string), (.uri, .string), (.string, .url), (.uri, .url), (.uuid, .uuid),
            (.data, .data):
            try write(source, for: .computation)
        case (let type, _) where type.isNumeric && makesNumber: try write(source, for: .computation)
        case (let type, _) where type.isNumeric && target == .date || type == .date && makesNumber:
            write("CAST(")
            try write(source, for: .computation)
            write(" AS \(forms.double))")
        default:
            write("\(mapping.dialect.cast)(")
            try write(source, for: .computation)
            // Both names are of our own types, and never come from data.
            write(", '\(source.type.rawValue)', '\(target.rawValue)')")
        }
    }
}

extension PredefinedFunction {
    fileprivate var isAdditive: Bool { self == .add || self == .subtract }

    /// The operator of SQL that does the same as the function with these arguments; `nil` if there is none.
    ///
    /// SQLite's bitwise operators and its modulus convert numbers beyond 64 bits into the range. ``Arithmetic`` has no
    /// result for them.
    fileprivate func sign(for arguments: [ResolvedExpression]) -> String? {
        switch self {
        case .add: return "+"
        case .subtract: return "-"
        case .multiply: return "*"
        case .divide: return "/"
        case .modulus, .bitwiseAnd, .bitwiseOr, .leftShift, .rightShift:
            guard arguments.allSatisfy(\.isSurelyInteger) else { return nil }
            return switch self {
            case .modulus: "%"
            case .bitwiseAnd: "&"
            case .bitwiseOr: "|"
            case .leftShift: "<<"
            default: ">>"
            }
        default: return nil
        }
    }
}

extension ResolvedExpression {
    /// Whether the value is certainly nil or a whole number in 64 bits.
    ///
    /// Its type is not enough for that: a sum of integers that is too large becomes a floating-point number.
    fileprivate var isSurelyInteger: Bool {
        switch self {
        case .constant(let value, _):
            if case .int = value { return true }
            return value.isNull
        case .attribute(_, let attribute): return attribute.type == .integer || attribute.type == .bool
        case .function(let function, let arguments, _):
            switch function {
            case .length, .modulus, .bitwiseAnd, .bitwiseOr, .bitwiseXor, .leftShift, .rightShift, .onesComplement,
                .count,
                .random, .randomBelow:
                return true
            case .noIndex: return arguments.allSatisfy(\.isSurelyInteger)
            default: return false
            }
        case .aggregate(let aggregate):
            switch aggregate.function {
            case .count: return true
            case .min, .max: return aggregate.element?.isSurelyInteger ?? false
            default: return false
            }
        case .conditional(_, let first, let second): return first.isSurelyInteger && second.isSurelyInteger
        case .object, .rowAggregate: return false
        }
    }

    /// Whether the value may be a number beyond those of which a double has all whole ones.
    fileprivate var mayBeHuge: Bool {
        switch constantValue {
        case nil: true
        case .int(let value)?: value.magnitude >= 1 << 53
        case .double(let value)?: value.magnitude >= 0x1p53
        default: false
        }
    }

    /// Whether the expression is an integer constant that a double cannot hold.
    fileprivate var isHugeInteger: Bool {
        guard case .int(let value)? = constantValue else { return false }
        return value.magnitude > 1 << 53
    }
}
