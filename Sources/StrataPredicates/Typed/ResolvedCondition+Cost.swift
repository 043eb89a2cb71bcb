/// The cost of evaluating a tree, computed from the tree alone.
///
/// Comparisons of each of many values with each of many others are in the tree one by one, so their product counts.
struct EvaluationCost {
    /// The number of comparisons, functions and collections.
    private(set) var operations = 0
    /// The number of constants, except those in sets.
    private(set) var constants = 0
    /// Whether evaluation can take very long for a short text or few rows.
    ///
    /// The reason is that collections are nested, or that there is a regular expression.
    private(set) var growsWithoutEnd = false
    /// The number of operations at which counting stops.
    private let limit: Int
    private var depth = 0

    init(upTo limit: Int) {
        self.limit = limit
    }

    mutating func add(_ condition: ResolvedCondition) {
        guard operations <= limit else { return }
        switch condition {
        case .constant: return
        case .and(let operands), .or(let operands): return operands.forEach { add($0) }
        case .not(let operand): return add(operand)
        case .isNull(let operand), .member(let operand, _): add(operand)
        case .comparison(let comparison):
            add(comparison.left)
            add(comparison.right)
        case .between(let operand, let lower, let upper, _): for value in [operand, lower, upper] { add(value) }
        case .string(let test):
            if test.isCostly { growsWithoutEnd = true }
            add(test.text)
            add(test.pattern)
        case .exists(let collection, let test): add(collection) { $0.add(test) }
        }
        operations += 1
    }

    mutating func add(_ expression: ResolvedExpression) {
        guard operations <= limit else { return }
        switch expression {
        case .constant:
            constants += 1
            return
        case .object, .attribute: return
        case .function(_, let operands, _):
            operands.forEach { add($0) }
            // The sum of a list takes one addition less than it has members.
            operations += max(0, operands.count - 2)
        case .aggregate(let aggregate):
            add(aggregate.collection) { cost in aggregate.element.map { cost.add($0) } }
        case .conditional(let test, let first, let second):
            add(test)
            add(first)
            add(second)
        case .rowAggregate(_, let operand): add(operand)
        }
        operations += 1
    }

    /// Adds a collection, with the operations on its members.
    mutating func add(_ collection: ResolvedCollection, _ members: (inout EvaluationCost) -> Void = { _ in }) {
        if depth > 0 { growsWithoutEnd = true }
        depth += 1
        if let filter = collection.filter { add(filter) }
        members(&self)
        depth -= 1
    }
}

extension ResolvedStringTest {
    /// If the pattern is not a constant, it may be any.
    fileprivate var isCostly: Bool { matcher?.isCostly ?? (test == .matches || test == .like) }
}

extension EvaluationCost {
    /// The number of operations for each row from which on there are many.
    private static let many = 1_000

    /// Whether a tree can take very long for few rows.
    ///
    /// All other work takes time in proportion to the rows and to the length of the texts.
    fileprivate static func isHigh(_ add: (inout EvaluationCost) -> Void) -> Bool {
        var cost = EvaluationCost(upTo: many)
        add(&cost)
        return cost.growsWithoutEnd || cost.operations > many
    }
}

extension ResolvedPredicate {
    /// Whether evaluation can take very long for a short text or few rows.
    package var isCostly: Bool { condition.isCostly }
}

extension ResolvedCondition {
    /// Whether evaluation can take very long for a short text or few rows.
    package var isCostly: Bool { EvaluationCost.isHigh { $0.add(self) } }
}

extension ResolvedExpression {
    /// Whether the computation can take very long for a short text or few rows.
    package var isCostly: Bool { EvaluationCost.isHigh { $0.add(self) } }

    /// The number of operations that compute the value, at least one.
    var work: Int {
        var cost = EvaluationCost(upTo: ResolutionLimits.mostPairs)
        cost.add(self)
        return max(1, cost.operations)
    }
}

extension ResolvedOperand {
    /// The number of values in the operand, as far as the predicate's text shows it.
    var count: Int {
        switch self {
        case .scalar, .members: 1
        case .constants(let members): members.values.count
        case .list(let values): values.count
        case .setOperation(_, let first, let second): first.count + second.count
        }
    }

    /// The number of operations that compute all of these values, at least one for each.
    var work: Int {
        switch self {
        case .scalar(let value): value.work
        case .members(let members): members.work
        case .constants(let members): members.values.count
        case .list(let values): values.reduce(0) { $0 + $1.work }
        case .setOperation(_, let first, let second): first.work + second.work
        }
    }
}

extension ResolvedMembers {
    fileprivate var work: Int {
        var cost = EvaluationCost(upTo: ResolutionLimits.mostPairs)
        cost.add(element)
        for level in levels { if let filter = level.filter { cost.add(filter) } }
        return max(1, cost.operations)
    }
}
