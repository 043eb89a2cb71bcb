/// A predicate that was checked against an entity: every name is a property of it, every comparison makes sense.
///
/// The SQL compiler and the in-memory evaluator both work on this tree and on nothing else. Its meaning:
///
/// - **There is no unknown.** Every condition is true or false, and `not` exchanges the two. If a back end has a third
///   truth value, it must not let that out, in particular from under a `not`.
/// - **nil**: only `isNull` tests for it. For `equal`, two nils are equal, and nil differs from everything else. The
///   orders, string tests and ranges are false if an operand is nil. For membership, nil is a member like any other.
/// - **Values**: ``PredicateValue`` describes them. ``StringFolding`` defines how strings compare, ``StringMatcher``
///   how patterns match, ``Arithmetic`` the arithmetic, and ``PredefinedFunction/apply(_:)`` the functions.
/// - **Paths**: a to-one step from nil leads to nil; a collection whose owner is nil is empty.
/// - **Collections**: `exists` in an empty collection is false. Without members, the count, the sum and the average are
///   0, and the smallest and largest member are nil. Members that are nil count only in `count`.
package struct ResolvedPredicate: Sendable {
    package let condition: ResolvedCondition
    /// The number of variables in the tree: `SELF`, which is number 0, and one for each collection.
    package let variableCount: Int
    package let schema: any PredicateSchema

    package init(condition: ResolvedCondition, variableCount: Int, schema: any PredicateSchema) {
        self.condition = condition
        self.variableCount = variableCount
        self.schema = schema
    }
}

/// The nodes of a resolved predicate.
package indirect enum ResolvedCondition: Sendable {
    case constant(Bool)
    case and([ResolvedCondition])
    case or([ResolvedCondition])
    case not(ResolvedCondition)
    case isNull(ResolvedExpression)
    case comparison(ResolvedComparison)
    /// The value is in a range; both ends are included.
    case between(ResolvedExpression, lower: ResolvedExpression, upper: ResolvedExpression, StringFolding)
    /// The value is a member of a set of constants.
    case member(ResolvedExpression, PredicateValueSet)
    case string(ResolvedStringTest)
    /// A member of the collection satisfies the condition, in which the collection's variable is that member.
    case exists(ResolvedCollection, ResolvedCondition)
}

/// A comparison of two values of compatible types.
package struct ResolvedComparison: Sendable {
    package enum Operator: String, Hashable, Sendable {
        case equal = "="
        case less = "<"
        case lessOrEqual = "<="
        case greater = ">"
        case greaterOrEqual = ">="
    }

    package let left: ResolvedExpression
    package let `operator`: Operator
    package let right: ResolvedExpression
    /// The folding; it is empty unless both sides are text.
    package let folding: StringFolding

    package init(
        left: ResolvedExpression,
        operator: Operator,
        right: ResolvedExpression,
        folding: StringFolding
    ) {
        self.left = left
        self.operator = `operator`
        self.right = right
        self.folding = folding
    }
}

/// `BEGINSWITH`, `ENDSWITH`, `CONTAINS`, `LIKE`, `MATCHES` on text.
package struct ResolvedStringTest: Sendable {
    package let text: ResolvedExpression
    package let test: StringMatcher.Test
    package let pattern: ResolvedExpression
    package let folding: StringFolding
    /// The matcher for a constant pattern.
    ///
    /// If a pattern from data is not a valid regular expression, it matches nothing.
    package let matcher: StringMatcher?

    package init(
        text: ResolvedExpression,
        test: StringMatcher.Test,
        pattern: ResolvedExpression,
        folding: StringFolding,
        matcher: StringMatcher?
    ) {
        self.text = text
        self.test = test
        self.pattern = pattern
        self.folding = folding
        self.matcher = matcher
    }
}

/// Expressions, all of them with a single value.
package indirect enum ResolvedExpression: Sendable {
    case constant(PredicateValue, ResolvedType)
    /// The object at the end of a path itself: `SELF`, a variable, a to-one relationship.
    case object(ResolvedPath)
    case attribute(ResolvedPath, PredicateAttribute)
    case function(PredefinedFunction, [ResolvedExpression], ResolvedType)
    /// One value computed from all members of a collection.
    case aggregate(ResolvedAggregate)
    case conditional(ResolvedCondition, ResolvedExpression, ResolvedExpression)
    /// One value computed from all rows of a fetch, or of a group.
    ///
    /// It occurs only in the results and the HAVING clause of a fetch.
    ///
    /// Rows for which the operand is nil do not count, even for `count:`.
    case rowAggregate(PredefinedFunction, ResolvedExpression)
}

/// A path from a variable along to-one relationships.
package struct ResolvedPath: Sendable {
    /// The number of the variable.
    ///
    /// It is 0 for the object that the predicate is about, and another number for members of enclosing collections.
    package let variable: Int
    package let steps: [PredicateRelationship]

    package init(variable: Int, steps: [PredicateRelationship] = []) {
        self.variable = variable
        self.steps = steps
    }
}

/// The members of a to-many relationship, or those of them that satisfy a condition.
package struct ResolvedCollection: Sendable {
    package let owner: ResolvedPath
    package let relationship: PredicateRelationship
    /// The variable for the member, in the filter and in the operations on the collection.
    package let variable: Int
    package var filter: ResolvedCondition?
}

/// One value computed from all members of a collection, such as `@count`.
package struct ResolvedAggregate: Sendable {
    /// `.count`, `.sum`, `.average`, `.min`, `.max`, `.median` or `.stddev`.
    package let function: PredefinedFunction
    package let collection: ResolvedCollection
    /// The value that is read from each member; `nil` for the count.
    package let element: ResolvedExpression?
    package let type: ResolvedType
}

// MARK: - Building

extension ResolvedCondition {
    /// The conjunction, flattened, with constants removed.
    package static func all(_ conditions: [ResolvedCondition]) -> ResolvedCondition {
        var kept: [ResolvedCondition] = []
        for condition in conditions {
            switch condition {
            case .constant(false): return .constant(false)
            case .constant(true): continue
            case .and(let inner): kept += inner
            default: kept.append(condition)
            }
        }
        return kept.isEmpty ? .constant(true) : (kept.count == 1 ? kept[0] : .and(kept))
    }

    /// The disjunction, flattened, with constants removed and long runs of equalities gathered.
    package static func any(_ conditions: [ResolvedCondition]) -> ResolvedCondition {
        var kept: [ResolvedCondition] = []
        for condition in conditions {
            switch condition {
            case .constant(true): return .constant(true)
            case .constant(false): continue
            case .or(let inner): kept += inner
            default: kept.append(condition)
            }
        }
        let branches = gatheringMembers(kept)
        return branches.isEmpty ? .constant(false) : (branches.count == 1 ? branches[0] : .or(branches))
    }

    package var negated: ResolvedCondition {
        switch self {
        case .constant(let value): .constant(!value)
        case .not(let operand): operand
        default: .not(self)
        }
    }
}

extension ResolvedExpression {
    package var type: ResolvedType {
        switch self {
        case .constant(_, let type): return type
        case .object: return .reference
        case .attribute(_, let attribute): return ResolvedType(attribute.type)
        case .function(_, _, let type): return type
        case .aggregate(let aggregate): return aggregate.type
        case .conditional(_, let first, let second):
            // The type is read once: reading it twice at each level would double the work with every level of nesting.
            let type = first.type
            return type == .null ? second.type : type
        case .rowAggregate(let function, let operand):
            return ResolvedExpression.aggregateType(function, of: operand.type)
        }
    }

    package var constantValue: PredicateValue? {
        guard case .constant(let value, _) = self else { return nil }
        return value
    }

    package static func constant(_ value: PredicateValue) -> ResolvedExpression {
        .constant(value.isNull ? .null : value, ResolvedType(of: value))
    }

    /// A composite attribute of an object.
    ///
    /// It is nil if none of its elements has a value, and otherwise a value without other use.
    static func composite(_ object: ResolvedPath, _ elements: [PredicateAttribute]) -> ResolvedExpression {
        let isMissing = ResolvedCondition.all(elements.map { .isNull(.attribute(object, $0)) })
        return .conditional(isMissing, .constant(.null, .null), .constant(.int(1), .composite))
    }

    /// The condition that the value is nil.
    var isMissing: ResolvedCondition {
        switch self {
        // A variable is always an object.
        case .object(let path) where path.steps.isEmpty: .constant(false)
        // Its elements decide.
        case .conditional(let isMissing, _, .constant(_, .composite)): isMissing
        default: .isNull(self)
        }
    }

    /// The type of an aggregate of values of a type.
    package static func aggregateType(_ function: PredefinedFunction, of type: ResolvedType) -> ResolvedType {
        switch function {
        case .count: .integer
        case .average, .median, .stddev: .double
        case .sum where type == .bool || type == .null: .integer
        default: type
        }
    }
}
