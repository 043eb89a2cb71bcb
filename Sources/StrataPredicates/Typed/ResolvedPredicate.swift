/// A predicate that was checked against an entity: every name is a property of it, every comparison makes sense.
///
/// The SQL compiler and the in-memory evaluator both work on this tree and on nothing else. Its meaning:
///
/// - **There is no unknown.** Every condition is true or false, and `not` exchanges the two. A back end with a third truth
///   value has to keep it from getting out, in particular from under a `not`.
/// - **nil**: `isNull` is the only test of it; `equal` has two nils equal and nil different from everything else; the orders,
///   string tests and ranges are false when an operand is nil; membership counts nil as a member like any other.
/// - **Values**: as ``PredicateValue`` describes them. Strings compare as ``StringFolding`` says, patterns match as
///   ``StringMatcher`` says, arithmetic goes as ``Arithmetic`` says, functions as ``PredefinedFunction/apply(_:)`` does.
/// - **Paths**: a to-one step from nil leads to nil; a collection whose owner is nil is empty.
/// - **Collections**: `exists` in an empty collection is false. The count and the sum of nothing are 0, and so is the average;
///   the smallest and largest of nothing are nil. nil members count in `count`, and nowhere else.
package struct ResolvedPredicate: Sendable {
    package let condition: ResolvedCondition
    /// How many variables the tree uses: `SELF`, which is number 0, and one for each collection in it.
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
    /// Both ends are included.
    case between(ResolvedExpression, lower: ResolvedExpression, upper: ResolvedExpression, StringFolding)
    /// The value is a member of a set of constants.
    case member(ResolvedExpression, PredicateValueSet)
    case string(ResolvedStringTest)
    /// Some member of the collection satisfies the condition, in which the collection's variable stands for the member.
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
    /// Not empty only if both sides are text.
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
    /// A pattern from data that is no regular expression matches nothing.
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
    /// One value from all members of a collection.
    case aggregate(ResolvedAggregate)
    case conditional(ResolvedCondition, ResolvedExpression, ResolvedExpression)
    /// One value from all rows of a fetch, or of a group of it: only in the results and the HAVING clause of a fetch.
    ///
    /// Rows for which the operand is nil do not count, for `count:` either.
    case rowAggregate(PredefinedFunction, ResolvedExpression)
}

/// A way from a variable along to-one relationships.
package struct ResolvedPath: Sendable {
    /// 0 for the object that the predicate is about, other numbers for members of collections around.
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
    /// The variable that stands for the member in the filter and in what is asked of the collection.
    package let variable: Int
    package var filter: ResolvedCondition?
}

/// One value of all members of a collection, such as `@count`.
package struct ResolvedAggregate: Sendable {
    /// `.count`, `.sum`, `.average`, `.min`, `.max`, `.median` or `.stddev`.
    package let function: PredefinedFunction
    package let collection: ResolvedCollection
    /// What is taken of each member; `nil` for the count.
    package let element: ResolvedExpression?
    package let type: ResolvedType
}

// MARK: - Building

extension ResolvedCondition {
    /// AND, flattened, with constants taken out.
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

    /// OR, flattened, with constants taken out and long runs of equalities gathered.
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
            // Asked once: twice at each level would double the work with every level of nesting.
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

    /// A composite attribute of an object: nil if none of its elements has a value, and else something of no other use.
    static func composite(_ object: ResolvedPath, _ elements: [PredicateAttribute]) -> ResolvedExpression {
        let isMissing = ResolvedCondition.all(elements.map { .isNull(.attribute(object, $0)) })
        return .conditional(isMissing, .constant(.null, .null), .constant(.int(1), .composite))
    }

    /// The condition that the value is nil.
    var isMissing: ResolvedCondition {
        switch self {
        // A variable always stands for an object.
        case .object(let path) where path.steps.isEmpty: .constant(false)
        // Its elements tell.
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
