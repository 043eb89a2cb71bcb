import StrataPredicates
import StrataRows

extension QueryCompiler {
    /// Writes a condition as an operand of AND, and in other places that need no parentheses.
    package mutating func write(_ condition: ResolvedCondition) throws {
        switch condition {
        case .constant(let value): write(value)
        case .and(let operands): try write(ordered(operands)[...], joinedBy: " AND ")
        case .or(let operands):
            write("(")
            try write(ordered(operands)[...], joinedBy: " OR ")
            write(")")
        case .not(let operand): try writeNegation(of: operand)
        case .isNull(let operand): try writeNullTest(operand)
        case .comparison(let comparison): try write(comparison)
        case .between(let operand, let lower, let upper, let folding):
            try write(operand, for: .comparison, against: [lower, upper])
            writeCollation(folding, of: [operand, lower, upper])
            write(" BETWEEN ")
            try write(lower, for: .comparison, against: [operand])
            write(" AND ")
            try write(upper, for: .comparison, against: [operand])
        case .member(let operand, let set): try writeMembership(operand, set)
        case .string(let test): try write(test)
        case .exists(let collection, let test): try writeExists(collection, test)
        }
    }

    /// The operands in the order in which they are written.
    ///
    /// SQLite's parser keeps the text before an open parenthesis on a stack of a hundred places. If the deepest operand
    /// comes first, nearly as many parentheses may be nested. Otherwise the operands keep their order, because the
    /// first may make the others unnecessary.
    private func ordered(_ operands: [ResolvedCondition]) -> [ResolvedCondition] {
        guard isDeep else { return operands }
        let depths = operands.map { $0.nesting(deepestFirst: true) }
        guard let deepest = depths.indices.max(by: { depths[$0] < depths[$1] }) else { return operands }
        return [operands[deepest]] + operands[..<deepest] + operands[(deepest + 1)...]
    }

    /// Writes a chain of operators.
    ///
    /// SQLite limits the depth of an expression, and each link of a chain counts. So a long chain becomes a balanced
    /// tree.
    private mutating func write(_ operands: ArraySlice<ResolvedCondition>, joinedBy sign: String) throws {
        guard operands.count > Nesting.longestChain else {
            for (index, operand) in operands.enumerated() {
                if index > 0 { write(sign) }
                if case .and = operand {
                    write("(")
                    try write(operand)
                    write(")")
                } else {
                    try write(operand)
                }
            }
            return
        }
        let middle = operands.startIndex + operands.count / 2
        write("(")
        try write(operands[..<middle], joinedBy: sign)
        write(")\(sign)(")
        try write(operands[middle...], joinedBy: sign)
        write(")")
    }

    /// Writes the rules for the comparison behind the left operand.
    ///
    /// SQLite applies a collation that is named anywhere inside of an operand to the operand itself. So even SQLite's
    /// own collation has to be named if an operand may contain others.
    private mutating func writeCollation(_ folding: StringFolding, of operands: [ResolvedExpression]) {
        if let name = mapping.dialect.foldingCollation(folding) {
            write(" COLLATE \(name)")
        } else if operands.contains(where: { $0.type.isText && !$0.isPlain }) {
            write(" COLLATE \(forms.byteCollation)")
        }
    }

    // MARK: - Negations

    /// Writes that a condition is not TRUE, in a form for which an index or a plan can be used.
    private mutating func writeNegation(of condition: ResolvedCondition) throws {
        switch condition {
        case .constant(let value): return write(!value)
        case .not(let operand): return try write(operand)
        case .isNull(let operand): return try writeNullTest(operand, negated: true)
        case .exists(let collection, let test):
            // It is never NULL, and a database may search the rows of both sides at once.
            write("NOT ")
            return try writeExists(collection, test)
        case .and(let operands) where forms.negatesInside: return try write(.or(operands.map(\.negated)))
        case .or(let operands) where forms.negatesInside:
            write("(")
            try write(.and(operands.map(\.negated)))
            return write(")")
        case .comparison(let comparison) where forms.negatesInside:
            if let opposite = comparison.opposite {
                return try write(opposite, orNullIn: [comparison.left, comparison.right])
            }
        case .between(let operand, let lower, let upper, let folding) where forms.negatesInside:
            let comparisons = [(ResolvedComparison.Operator.less, lower), (.greater, upper)].map {
                ResolvedComparison(left: operand, operator: $0.0, right: $0.1, folding: folding)
            }
            if comparisons.allSatisfy(\.isOfPlainValues) {
                return try write(.or(comparisons.map { .comparison($0) }), orNullIn: [operand, lower, upper])
            }
        case .comparison, .between, .and, .or, .member, .string: break
        }
        write("(")
        try write(condition)
        write(") IS NOT TRUE")
    }

    /// Writes that a condition holds, or that one of its columns is NULL.
    private mutating func write(_ condition: ResolvedCondition, orNullIn operands: [ResolvedExpression]) throws {
        try write(.any([condition] + operands.filter(\.isColumn).map { .isNull($0) }))
    }

    // MARK: - nil

    private mutating func writeNullTest(_ operand: ResolvedExpression, negated: Bool = false) throws {
        switch operand.withoutHints {
        case .attribute(let path, let attribute) where attribute.type != .entity:
            // Any column may be tested for NULL, whatever type it has.
            if let place = try place(of: path), let column = place.mapping.column(at: attribute.slot).name {
                write("\(place.alias).\(column)")
            } else {
                write("NULL")
            }
        case .constant(let value, .reference):
            // An object of another store has none of the keys here, but it is not nil.
            return write(value.isNull != negated)
        case .conditional(let test, let first, let second) where operand.type == .reference:
            return try writeChoice(test) {
                try $0.writeNullTest(first, negated: negated)
            } otherwise: {
                try $0.writeNullTest(second, negated: negated)
            }
        default: try write(operand, for: .comparison)
        }
        write(negated ? " IS NOT NULL" : " IS NULL")
    }

    // MARK: - Comparisons

    private mutating func write(_ comparison: ResolvedComparison) throws {
        let (left, right) = (comparison.left, comparison.right)
        if left.type == .reference || right.type == .reference {
            return try writeReferenceEquality(left, right)
        }
        try write(left, for: .comparison, against: [right])
        writeCollation(comparison.folding, of: [left, right])
        write(" \(sign(of: comparison)) ")
        try write(right, for: .comparison, against: [left])
    }

    private func sign(of comparison: ResolvedComparison) -> String {
        guard comparison.operator == .equal, comparison.left.mayBeNull, comparison.right.mayBeNull else {
            return comparison.operator.rawValue
        }
        // The two sides may be nil, and two nils are equal.
        return forms.equalityOfNulls
    }

    // MARK: - Objects

    /// Writes the condition that two expressions are the same object, or that both are nil.
    private mutating func writeReferenceEquality(_ left: ResolvedExpression, _ right: ResolvedExpression) throws {
        switch (left.withoutHints, right.withoutHints) {
        case (.conditional(let test, let first, let second), let other),
            (let other, .conditional(let test, let first, let second)):
            // Keys of different entities may be the same number, so each pair is compared separately.
            try writeChoice(test) {
                try $0.writeReferenceEquality(first, other)
            } otherwise: {
                try $0.writeReferenceEquality(second, other)
            }
        case (.object(let path), .object(let other)):
            guard rootNumber(of: path) == rootNumber(of: other) else {
                try writeKey(of: path)
                write(" IS NULL AND ")
                try writeKey(of: other)
                return write(" IS NULL")
            }
            try writeKey(of: path)
            write(path.steps.isEmpty || other.steps.isEmpty ? " = " : " \(forms.equalityOfNulls) ")
            try writeKey(of: other)
        case (.object(let path), .constant(let value, _)), (.constant(let value, _), .object(let path)):
            try writeKey(of: path)
            if value.isNull { return write(" IS NULL") }
            write(" = ")
            // An object of another store or entity is no member of the column: NULL equals nothing.
            bind(key(of: value, root: rootNumber(of: path)).map { .integer($0) } ?? .null)
        case (.constant(let first, _), .constant(let second, _)):
            write(first.isEqual(to: second, folding: []))
        case (let other, .constant(let value, _)) where value.isNull,
            (.constant(let value, _), let other) where value.isNull:
            try writeNullTest(other)
        default:
            throw Self.unsupported("An object can be compared with an object only.")
        }
    }

    /// Writes the primary key at the end of a path.
    ///
    /// The object there is not read.
    package mutating func writeKey(of path: ResolvedPath) throws {
        guard let last = path.steps.last else {
            write(try place(of: path, needsRow: false)?.key ?? "NULL")
            return
        }
        if last.isCast { return write(try place(of: path)?.key ?? "NULL") }
        let owner = ResolvedPath(variable: path.variable, steps: Array(path.steps.dropLast()))
        guard let place = try place(of: owner), let column = place.mapping.columns[last.slot].name else {
            return write("NULL")
        }
        write("\(place.alias).\(column)")
    }

    /// Writes `CASE WHEN … END` with a branch for each result of a test.
    package mutating func writeChoice(
        _ test: ResolvedCondition,
        then: (inout QueryCompiler) throws -> Void,
        otherwise: (inout QueryCompiler) throws -> Void
    ) throws {
        write("CASE WHEN ")
        try write(test)
        write(" THEN ")
        try then(&self)
        write(" ELSE ")
        try otherwise(&self)
        write(" END")
    }

    // MARK: - Membership

    private mutating func writeMembership(_ operand: ResolvedExpression, _ set: PredicateValueSet) throws {
        let operand = operand.withoutHints
        let values: [SQLBinding]
        if operand.type == .reference {
            if case .conditional(let test, let first, let second) = operand {
                return try writeChoice(test) {
                    try $0.writeMembership(first, set)
                } otherwise: {
                    try $0.writeMembership(second, set)
                }
            }
            if case .constant(let value, _) = operand { return write(set.contains(value)) }
            guard case .object(let path) = operand else {
                throw Self.unsupported("An object can be compared with an object only.")
            }
            let root = rootNumber(of: path)
            values = set.members.compactMap { key(of: $0, root: root).map { .integer($0) } }
        } else {
            values = set.members.map { binding($0) }
        }
        guard set.containsNull else { return try writeMembership(of: operand, in: values, set: set) }
        if values.isEmpty { return try writeNullTest(operand) }
        if operand.isColumn {
            write("(")
            try writeMembership(of: operand, in: values, set: set)
            write(" OR ")
            try writeNullTest(operand)
            write(")")
        } else {
            // The list is not empty and has no NULL, so the answer is NULL only if the value is.
            write("COALESCE(")
            try writeMembership(of: operand, in: values, set: set)
            write(", \(forms.truth(true)))")
        }
    }

    private mutating func writeMembership(
        of operand: ResolvedExpression,
        in values: [SQLBinding],
        set: PredicateValueSet
    ) throws {
        guard !values.isEmpty else { return write(false) }
        let constants = set.members.lazy.map { ResolvedExpression.constant($0) }
        // Each decimal may need the cast. For other values the first one shows the type of all.
        let others = operand.type == .decimal ? Array(constants) : Array(constants.prefix(1))
        try write(operand, for: .comparison, against: operand.type == .reference ? [] : others)
        writeCollation(set.folding, of: [operand])
        if values.count == 1 {
            write(" = ")
            return bind(values[0])
        }
        if case .object(let path) = operand, path.steps.isEmpty, values.count > Self.longestWrittenList,
            let test = mapping.dialect.keyTest
        {
            return write(test(parameter(for: .list(values))))
        }
        write(" IN (")
        if values.count <= Self.longestWrittenList {
            // The list is filled up with the last value, so that there are few different texts.
            let count = values.count <= 2 ? 2 : (values.count <= 4 ? 4 : 8)
            for index in 0..<count {
                if index > 0 { write(", ") }
                bind(values[min(index, values.count - 1)])
            }
        } else {
            write(mapping.dialect.members(parameter(for: .list(values))))
        }
        write(")")
    }

    private static let longestWrittenList = 8
}

extension ResolvedExpression {
    /// The expression without an enclosing `noindex:`.
    fileprivate var withoutHints: ResolvedExpression {
        if case .function(.noIndex, let arguments, .reference) = self, let argument = arguments.first {
            return argument.withoutHints
        }
        return self
    }

    /// Whether the expression is written as the name of a column.
    fileprivate var isColumn: Bool {
        switch self {
        case .attribute, .object: true
        default: false
        }
    }

    /// Whether the expression is written as the name of a column or as a parameter.
    fileprivate var isPlain: Bool {
        if case .constant = self { return true }
        return isColumn
    }

    /// Whether the value may be nil.
    fileprivate var mayBeNull: Bool {
        switch self {
        case .constant(let value, _): value.isNull
        case .object(let path): !path.steps.isEmpty
        case .aggregate(let aggregate): aggregate.function != .count
        default: true
        }
    }
}

extension ResolvedComparison {
    /// Whether both sides are written as the name of a column or as a value that is not NULL.
    fileprivate var isOfPlainValues: Bool {
        [left, right].allSatisfy { $0.isColumn || $0.constantValue?.isNull == false }
    }

    /// The condition that holds exactly for the values, none of them nil, for which the comparison does not hold.
    ///
    /// It is `nil` if no index could be used for it.
    fileprivate var opposite: ResolvedCondition? {
        guard isOfPlainValues else { return nil }
        let sign: Operator
        switch self.operator {
        case .less: sign = .greaterOrEqual
        case .lessOrEqual: sign = .greater
        case .greater: sign = .lessOrEqual
        case .greaterOrEqual: sign = .less
        case .equal:
            guard left.type == .bool, case .int(let truth)? = right.constantValue, truth == 0 || truth == 1 else {
                return nil
            }
            let other = ResolvedExpression.constant(.int(1 - truth))
            return .comparison(ResolvedComparison(left: left, operator: .equal, right: other, folding: []))
        }
        return .comparison(ResolvedComparison(left: left, operator: sign, right: right, folding: folding))
    }
}
