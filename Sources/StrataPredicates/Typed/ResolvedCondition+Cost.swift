/// What the evaluation of a tree asks for, by the tree alone.
///
/// Comparisons of each of many values with each of many others are in the tree one by one, so they count by their product.
struct EvaluationCost {
    /// How many comparisons, functions and collections there are.
    private(set) var operations = 0
    /// How many constants there are, those of sets excepted.
    private(set) var constants = 0
    /// Whether a short text, or few rows, can make the evaluation take very long: collections are nested in each other, or
    /// there is a regular expression.
    private(set) var growsWithoutEnd = false
    /// How many operations are worth counting.
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
            // The sum of a list is as many additions.
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

    /// A collection, with what is asked of its members.
    mutating func add(_ collection: ResolvedCollection, _ members: (inout EvaluationCost) -> Void = { _ in }) {
        if depth > 0 { growsWithoutEnd = true }
        depth += 1
        if let filter = collection.filter { add(filter) }
        members(&self)
        depth -= 1
    }
}

extension ResolvedStringTest {
    /// A pattern that is no constant may be any.
    fileprivate var isCostly: Bool { matcher?.isCostly ?? (test == .matches || test == .like) }
}

extension EvaluationCost {
    /// How many operations for each row are many.
    private static let many = 1_000

    /// Whether a tree can take very long for few rows; everything else takes time in proportion to the rows and to the length
    /// of the texts.
    fileprivate static func isHigh(_ add: (inout EvaluationCost) -> Void) -> Bool {
        var cost = EvaluationCost(upTo: many)
        add(&cost)
        return cost.growsWithoutEnd || cost.operations > many
    }
}

extension ResolvedPredicate {
    /// Whether a short text, or few rows, can make the evaluation take very long.
    package var isCostly: Bool { condition.isCostly }
}

extension ResolvedCondition {
    /// Whether a short text, or few rows, can make the evaluation take very long.
    package var isCostly: Bool { EvaluationCost.isHigh { $0.add(self) } }
}

extension ResolvedExpression {
    /// Whether a short text, or few rows, can make the computation take very long.
    package var isCostly: Bool { EvaluationCost.isHigh { $0.add(self) } }

    /// How many operations it takes to work the value out, and at least one.
    var work: Int {
        var cost = EvaluationCost(upTo: ResolutionLimits.mostPairs)
        cost.add(self)
        return max(1, cost.operations)
    }
}

extension ResolvedOperand {
    /// How many values, whose number the predicate's text tells, the operand is made of.
    var count: Int {
        switch self {
        case .scalar, .members: 1
        case .constants(let members): members.values.count
        case .list(let values): values.count
        case .setOperation(_, let first, let second): first.count + second.count
        }
    }

    /// How many operations it takes to work all of these out, and at least one for each.
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
