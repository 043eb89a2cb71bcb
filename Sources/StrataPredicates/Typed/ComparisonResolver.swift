/// Resolves comparisons: expands quantifiers and collections, and checks that the two sides can be compared.
enum ComparisonResolver {
    static func resolve(
        _ comparison: NSComparisonPredicate,
        _ resolver: inout PredicateResolver
    ) throws -> ResolvedCondition {
        guard comparison.predicateOperatorType != .customSelector else {
            throw resolver.failure(.unsupported, "A comparison by a method cannot be evaluated by a store.")
        }
        if let condition = simple(comparison, resolver.root) { return condition }
        let left = try resolver.operand(comparison.leftExpression)
        let right = try resolver.operand(comparison.rightExpression)
        let pair = OperandPair(comparison: comparison, right: right, resolver: resolver)
        guard comparison.comparisonPredicateModifier != .direct else { return try pair.condition(left) }
        let isAny = comparison.comparisonPredicateModifier == .any
        switch left {
        case .members(let members):
            let condition = try pair.condition(.scalar(members.element))
            return isAny ? members.exists(condition) : members.all(condition)
        case .constants(let members):
            if isAny, let condition = try pair.anyIsMember(members) { return condition }
            try pair.checkPairs(with: left)
            let conditions = try members.values.map { try pair.condition(.scalar(.constant($0))) }
            return isAny ? .any(conditions) : .all(conditions)
        case .list(let values):
            try pair.checkPairs(with: left)
            let conditions = try values.map { try pair.condition(.scalar($0)) }
            return isAny ? .any(conditions) : .all(conditions)
        case .scalar(let value) where comparison.leftExpression.isKeyPath:
            // One value is a collection of one member, and nil a collection of none.
            let (condition, isNil) = (try pair.condition(left), value.isMissing)
            return isAny ? .all([isNil.negated, condition]) : .any([isNil, condition])
        case .scalar, .setOperation:
            throw resolver.failure(
                .collectionNeeded,
                "ANY, ALL and NONE need a to-many key on their left side.",
                keyPath: comparison.leftExpression.description
            )
        }
    }
}

extension ComparisonResolver {
    /// Resolves an attribute that is compared with a value of its type, the most frequent comparison.
    ///
    /// The result is that of the other steps, which are for all comparisons. It is `nil` for any other comparison.
    private static func simple(_ comparison: NSComparisonPredicate, _ schema: any PredicateSchema)
        -> ResolvedCondition?
    {
        let sign: ResolvedComparison.Operator
        switch comparison.predicateOperatorType {
        case .equalTo, .notEqualTo: sign = .equal
        case .lessThan: sign = .less
        case .lessThanOrEqualTo: sign = .lessOrEqual
        case .greaterThan: sign = .greater
        case .greaterThanOrEqualTo: sign = .greaterOrEqual
        default: return nil
        }
        guard comparison.comparisonPredicateModifier == .direct,
            case .keyPath(let key) = comparison.leftExpression.kind, key != "self", key != "SELF", key != "objectID",
            !key.utf8.contains(UInt8(ascii: ".")),
            case .constant(let any?) = comparison.rightExpression.kind,
            case .attribute(let attribute)? = schema.predicateProperty(named: key),
            let value = PredicateValue(scalar: any)
        else { return nil }
        var folding: StringFolding = []
        switch (attribute.type, value) {
        case (.bool, .int), (.integer, .int), (.double, .int), (.date, .date): break
        case (.bool, .double), (.integer, .double), (.double, .double): break
        case (.string, .string), (.uri, .string): folding = StringFolding(comparison.options)
        default: return nil
        }
        if value.isNull { return nil }
        let condition = ResolvedCondition.comparison(
            ResolvedComparison(
                left: .attribute(ResolvedPath(variable: 0), attribute),
                operator: sign,
                right: .constant(value),
                folding: folding
            )
        )
        return comparison.predicateOperatorType == .notEqualTo ? condition.negated : condition
    }
}

/// The right side of a comparison, for values to compare with.
private struct OperandPair {
    let comparison: NSComparisonPredicate
    let right: ResolvedOperand
    let resolver: PredicateResolver
    private let folding: StringFolding

    init(comparison: NSComparisonPredicate, right: ResolvedOperand, resolver: PredicateResolver) {
        self.init(comparison, right: right, resolver: resolver, folding: StringFolding(comparison.options))
    }

    private init(
        _ comparison: NSComparisonPredicate,
        right: ResolvedOperand,
        resolver: PredicateResolver,
        folding: StringFolding
    ) {
        self.comparison = comparison
        self.right = right
        self.resolver = resolver
        self.folding = folding
    }

    /// The same operands, compared without folding.
    private var exact: OperandPair {
        OperandPair(comparison, right: right, resolver: resolver, folding: [])
    }

    func condition(_ left: ResolvedOperand) throws -> ResolvedCondition {
        switch comparison.predicateOperatorType {
        case .in:
            return try containsAny(
                right,
                from: comparison.rightExpression,
                member: try value(left, comparison.leftExpression)
            )
        case .contains:
            return try containsAny(
                left,
                from: comparison.leftExpression,
                member: try value(right, comparison.rightExpression)
            )
        case .between: return try between(try value(left, comparison.leftExpression))
        default: break
        }
        let left = try value(left, comparison.leftExpression)
        let right = try value(right, comparison.rightExpression)
        switch comparison.predicateOperatorType {
        case .equalTo: return try equal(left, right)
        case .notEqualTo: return try equal(left, right).negated
        case .lessThan: return try order(left, .less, than: right)
        case .lessThanOrEqualTo: return try order(left, .lessOrEqual, than: right)
        case .greaterThan: return try order(left, .greater, than: right)
        case .greaterThanOrEqualTo: return try order(left, .greaterOrEqual, than: right)
        case .beginsWith: return try string(left, .beginsWith, pattern: right)
        case .endsWith: return try string(left, .endsWith, pattern: right)
        case .like: return try string(left, .like, pattern: right)
        case .matches: return try string(left, .matches, pattern: right)
        case .in, .contains, .between, .customSelector: return .constant(false)
        }
    }

    // MARK: - Many values

    /// Resolves `ANY {…} IN …` and `ANY {…} == …` by their meaning: a member of the right side is one of the constants.
    ///
    /// It returns `nil` for other comparisons.
    func anyIsMember(_ members: ConstantMembers) throws -> ResolvedCondition? {
        switch (comparison.predicateOperatorType, right) {
        case (.equalTo, .scalar(let value)): return try isMember(value, members)
        case (.in, .constants), (.in, .members): break
        case (.in, .list), (.in, .setOperation): try checkPairs(.constants(members), right)
        default: return nil
        }
        return try exists(right, from: comparison.rightExpression) { try isMember($0, members) }
    }

    /// Refuses to compare each of many values with each of many others, or with costly ones, unless a set does it.
    func checkPairs(with left: ResolvedOperand) throws {
        if case .constants = left, case .constants = right { return }
        try checkPairs(left, right)
    }

    /// Counts comparisons that multiply in the tree.
    ///
    /// Those in proportion to the length of the text are allowed.
    private func checkPairs(_ left: ResolvedOperand, _ right: ResolvedOperand) throws {
        try checkPairs(left.count, right.work)
        if right.count > 1 { try checkPairs(left.work - left.count, right.count) }
    }

    private func checkPairs(_ count: Int, _ other: Int) throws {
        guard count > 1, other > 1, !resolver.limits.countPairs(count, with: other) else { return }
        throw resolver.failure(
            .unsupported,
            "A comparison of each of \(count) values with each of \(other) others is too much for one fetch; \(ResolutionLimits.mostPairs) pairs are possible in all of its predicate, and what is computed counts more than once."
        )
    }

    private func value(_ operand: ResolvedOperand, _ source: NSExpression) throws -> ResolvedExpression {
        // A composite attribute can be used only here.
        if case .scalar(let expression) = operand, expression.type == .composite { return expression }
        return try resolver.scalar(operand, source)
    }

    // MARK: - Values

    private func equal(_ left: ResolvedExpression, _ right: ResolvedExpression) throws -> ResolvedCondition {
        try checkComposites(left, right)
        try checkTypes(left, right)
        switch (left.constantValue, right.constantValue) {
        case (let first?, let second?): return .constant(first.isEqual(to: second, folding: folding))
        case (let constant?, nil) where constant.isNull: return right.isMissing
        case (nil, let constant?) where constant.isNull: return left.isMissing
        // The constant is put on the right: runs of equalities are searched by that form.
        case (_?, nil): return try equal(right, left)
        default: break
        }
        // Each branch of one side is compared with each branch of the other.
        if left.type == .reference, case .conditional = left, case .conditional = right {
            try checkPairs(left.work, right.work)
        }
        if left.type == .transformable {
            throw resolver.failure(
                .unsupported,
                "A transformable attribute can be compared with nil only.",
                keyPath: keyPath
            )
        }
        return .comparison(
            ResolvedComparison(left: left, operator: .equal, right: right, folding: textFolding(left, right))
        )
    }

    private func order(
        _ left: ResolvedExpression,
        _ operation: ResolvedComparison.Operator,
        than right: ResolvedExpression
    ) throws -> ResolvedCondition {
        try checkTypes(left, right)
        try checkOrder(left)
        try checkOrder(right)
        if left.type == .null || right.type == .null { return .constant(false) }
        if let first = left.constantValue, let second = right.constantValue {
            return .constant(operation.holds(first.order(second, folding: folding)))
        }
        return .comparison(
            ResolvedComparison(left: left, operator: operation, right: right, folding: textFolding(left, right))
        )
    }

    private func between(_ value: ResolvedExpression) throws -> ResolvedCondition {
        let bounds: [ResolvedExpression]
        switch right {
        case .constants(let members):
            guard members.areOrdered else {
                throw resolver.failure(
                    .invalidConstant,
                    "BETWEEN needs an array of two values; which of a set's is the lower bound nobody can tell.",
                    keyPath: keyPath
                )
            }
            bounds = members.values.map { .constant($0) }
        case .list(let values): bounds = values
        default: bounds = []
        }
        guard bounds.count == 2 else {
            throw resolver.failure(.invalidConstant, "BETWEEN needs a collection of two values.", keyPath: keyPath)
        }
        for bound in bounds {
            try checkTypes(value, bound)
            try checkOrder(bound)
        }
        try checkOrder(value)
        if value.type == .null || bounds.contains(where: { $0.type == .null }) { return .constant(false) }
        if let constant = value.constantValue, let lower = bounds[0].constantValue, let upper = bounds[1].constantValue
        {
            return .constant(
                ResolvedComparison.Operator.greaterOrEqual.holds(constant.order(lower, folding: folding))
                    && ResolvedComparison.Operator.lessOrEqual.holds(constant.order(upper, folding: folding))
            )
        }
        return .between(value, lower: bounds[0], upper: bounds[1], textFolding(value, bounds[0]))
    }

    // MARK: - Members

    /// The searched value is in the tree once for each member of the collection, even if it is costly to compute.
    private func containsAny(
        _ container: ResolvedOperand,
        from source: NSExpression,
        member: ResolvedExpression
    ) throws -> ResolvedCondition {
        try checkPairs(.scalar(member), container)
        return try contains(container, from: source, member: member)
    }

    private func contains(
        _ container: ResolvedOperand,
        from source: NSExpression,
        member: ResolvedExpression
    ) throws -> ResolvedCondition {
        switch container {
        case .constants(let members): return try isMember(member, members)
        case .list(let values): return .any(try values.map { try equal(member, $0) })
        case .members(let members): return members.exists(try equal(member, members.element))
        case .setOperation(let operation, let first, let second) where operation != .union && !folding.isEmpty:
            // The set contains exact values. Only afterwards the member is searched with folding.
            try checkPairs(first, second)
            return try exists(first, from: source) { element in
                let isKept = try exact.contains(second, from: source, member: element)
                return .all([try equal(member, element), operation == .minus ? isKept.negated : isKept])
            }
        case .setOperation(.union, let first, let second):
            return .any([
                try contains(first, from: source, member: member), try contains(second, from: source, member: member),
            ])
        case .setOperation(.intersect, let first, let second):
            return .all([
                try contains(first, from: source, member: member), try contains(second, from: source, member: member),
            ])
        case .setOperation(.minus, let first, let second):
            return .all([
                try contains(first, from: source, member: member),
                try contains(second, from: source, member: member).negated,
            ])
        case .scalar(let text):
            guard text.type.isText || text.type == .null else {
                throw resolver.failure(
                    .collectionNeeded,
                    "IN and CONTAINS need a collection or a string, not \(source).",
                    keyPath: keyPath
                )
            }
            return try string(text, .contains, pattern: member)
        }
    }

    /// The condition that an element of a collection satisfies a condition.
    private func exists(
        _ container: ResolvedOperand,
        from source: NSExpression,
        where condition: (ResolvedExpression) throws -> ResolvedCondition
    ) throws -> ResolvedCondition {
        switch container {
        case .constants(let members): return .any(try members.values.map { try condition(.constant($0)) })
        case .list(let values): return .any(try values.map(condition))
        case .members(let members): return members.exists(try condition(members.element))
        case .setOperation(.union, let first, let second):
            return .any([
                try exists(first, from: source, where: condition), try exists(second, from: source, where: condition),
            ])
        case .setOperation(let operation, let first, let second):
            try checkPairs(first, second)
            return try exists(first, from: source) { element in
                let isKept = try exact.contains(second, from: source, member: element)
                return .all([try condition(element), operation == .minus ? isKept.negated : isKept])
            }
        case .scalar:
            throw resolver.failure(
                .collectionNeeded,
                "A set operation needs collections, not \(source).",
                keyPath: keyPath
            )
        }
    }

    private func isMember(_ member: ResolvedExpression, _ members: ConstantMembers) throws -> ResolvedCondition {
        if members.values.isEmpty { return .constant(false) }
        let members = member.type.isText ? members.asTexts : members
        for value in members.kinds {
            try checkComposites(member, .constant(value))
            try checkTypes(member, .constant(value))
        }
        let set = members.set(member.type.isText ? folding : [])
        if let constant = member.constantValue { return .constant(set.contains(constant)) }
        if member.type == .transformable, !set.members.isEmpty {
            throw resolver.failure(
                .unsupported,
                "A transformable attribute can be compared with nil only.",
                keyPath: keyPath
            )
        }
        if set.members.isEmpty { return member.isMissing }
        return .member(member, set)
    }

    // MARK: - Strings

    private func string(
        _ text: ResolvedExpression,
        _ test: StringMatcher.Test,
        pattern: ResolvedExpression
    ) throws -> ResolvedCondition {
        for operand in [text, pattern] where !operand.type.isText && operand.type != .null {
            throw resolver.failure(
                .incompatibleTypes,
                "\(comparison.predicateOperatorType) needs strings, not a value of type \(operand.type).",
                keyPath: keyPath
            )
        }
        if text.type == .null || pattern.type == .null { return .constant(false) }
        guard case .string(let constant)? = pattern.constantValue else {
            return .string(ResolvedStringTest(text: text, test: test, pattern: pattern, folding: folding, matcher: nil))
        }
        do {
            let matcher = try StringMatcher(test, pattern: constant, folding: folding)
            if case .string(let text)? = text.constantValue {
                return .constant(try resolver.limits.matches(text, matcher))
            }
            return .string(
                ResolvedStringTest(text: text, test: test, pattern: pattern, folding: folding, matcher: matcher)
            )
        } catch {
            throw resolver.failure(.invalidConstant, "\(error).", keyPath: keyPath)
        }
    }

    // MARK: - Types

    private var keyPath: String {
        comparison.leftExpression.description
    }

    private func textFolding(_ left: ResolvedExpression, _ right: ResolvedExpression) -> StringFolding {
        left.type.isText && right.type.isText ? folding : []
    }

    private func checkTypes(_ left: ResolvedExpression, _ right: ResolvedExpression) throws {
        guard !left.type.isCompatible(with: right.type) else { return }
        throw resolver.failure(
            .incompatibleTypes,
            "A value of type \(left.type) cannot be compared with one of type \(right.type), in \(comparison).",
            keyPath: keyPath
        )
    }

    /// Refuses to compare a composite attribute with any value but nil.
    private func checkComposites(_ left: ResolvedExpression, _ right: ResolvedExpression) throws {
        guard left.type == .composite && right.type != .null || right.type == .composite && left.type != .null else {
            return
        }
        throw resolver.failure(.unsupported, PredicateResolver.onlyNil(keyPath), keyPath: keyPath)
    }

    private func checkOrder(_ operand: ResolvedExpression) throws {
        guard [.reference, .transformable, .entity, .composite].contains(operand.type) else { return }
        throw resolver.failure(
            .incompatibleTypes,
            "There is no order between values of type \(operand.type), in \(comparison).",
            keyPath: keyPath
        )
    }
}

extension ResolvedComparison.Operator {
    /// Whether the comparison holds for the order of its operands; false if they have no order.
    @inline(__always)
    package func holds(_ order: Int?) -> Bool {
        guard let order else { return false }
        return switch self {
        case .equal: order == 0
        case .less: order < 0
        case .lessOrEqual: order <= 0
        case .greater: order > 0
        case .greaterOrEqual: order >= 0
        }
    }
}
