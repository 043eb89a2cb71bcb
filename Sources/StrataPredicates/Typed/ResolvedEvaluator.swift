/// Evaluates a resolved predicate in memory, on rows or on objects with pending changes.
///
/// Make one for each predicate and use it for any number of subjects, on one thread at a time.
package struct ResolvedEvaluator {
    private let condition: ResolvedCondition
    private let reader: any PredicateReader
    /// The subjects of the variables, by number; number 0 is `SELF`.
    private var subjects: [AnyObject?]
    private var visits: UInt8 = 0

    package init(_ predicate: ResolvedPredicate, reader: any PredicateReader) {
        condition = predicate.condition
        self.reader = reader
        subjects = Array(repeating: nil, count: predicate.variableCount)
    }

    /// Makes an evaluator for expressions only.
    package init(variableCount: Int, reader: any PredicateReader) {
        condition = .constant(true)
        self.reader = reader
        subjects = Array(repeating: nil, count: variableCount)
    }

    /// Whether the predicate holds for a subject.
    package mutating func evaluate(_ subject: AnyObject) throws -> Bool {
        subjects[0] = subject
        try visit()
        return try holds(condition)
    }

    /// Counts a subject or a member that is read, and sometimes checks the evaluation's time limit.
    private mutating func visit() throws {
        visits &+= 1
        if visits == 0 { try EvaluationBudget.check() }
    }

    /// Checks the time limit, if a single subject takes long.
    private func check(_ chain: [ResolvedCondition]) throws {
        if chain.count > 100 { try EvaluationBudget.check() }
    }

    /// The value of an expression for a subject.
    package mutating func value(of expression: ResolvedExpression, for subject: AnyObject) throws -> PredicateValue {
        subjects[0] = subject
        return try value(expression)
    }

    /// Whether a condition holds for a subject.
    package mutating func holds(_ condition: ResolvedCondition, for subject: AnyObject) throws -> Bool {
        subjects[0] = subject
        return try holds(condition)
    }

    // MARK: - Conditions

    private mutating func holds(_ condition: ResolvedCondition) throws -> Bool {
        switch condition {
        case .constant(let value): return value
        case .and(let operands):
            try check(operands)
            for operand in operands where try !holds(operand) { return false }
            return true
        case .or(let operands):
            try check(operands)
            for operand in operands where try holds(operand) { return true }
            return false
        case .not(let operand): return try !holds(operand)
        case .isNull(.object(let path)): return try identity(path) == nil
        case .isNull(let operand): return try value(operand).isNull
        case .comparison(let comparison): return try compare(comparison)
        case .between(let operand, let lower, let upper, let folding):
            let value = try value(operand)
            return try ResolvedComparison.Operator.greaterOrEqual.holds(
                value.order(self.value(lower), folding: folding)
            )
                && ResolvedComparison.Operator.lessOrEqual.holds(value.order(self.value(upper), folding: folding))
        case .member(let operand, let set): return set.contains(try value(operand))
        case .string(let test): return try matches(test)
        case .exists(let collection, let test): return try exists(collection, test)
        }
    }

    private mutating func compare(_ comparison: ResolvedComparison) throws -> Bool {
        let left = try value(comparison.left)
        let right = try value(comparison.right)
        if comparison.operator == .equal { return left.isEqual(to: right, folding: comparison.folding) }
        return comparison.operator.holds(left.order(right, folding: comparison.folding))
    }

    private mutating func matches(_ test: ResolvedStringTest) throws -> Bool {
        guard case .string(let text) = try value(test.text) else { return false }
        if let matcher = test.matcher { return try matcher.matches(text) }
        guard case .string(let pattern) = try value(test.pattern) else { return false }
        let matcher = try? StringMatcher(test.test, pattern: pattern, folding: test.folding)
        return try matcher?.matches(text) ?? false
    }

    // MARK: - Collections

    private mutating func exists(_ collection: ResolvedCollection, _ test: ResolvedCondition) throws -> Bool {
        guard let owner = try subject(collection.owner) else { return false }
        for member in try reader.subjects(of: collection.relationship, in: owner) {
            subjects[collection.variable] = member
            try visit()
            if let filter = collection.filter, try !holds(filter) { continue }
            if try holds(test) { return true }
        }
        return false
    }

    private mutating func aggregate(_ aggregate: ResolvedAggregate) throws -> PredicateValue {
        let collection = aggregate.collection
        guard let owner = try subject(collection.owner) else { return aggregate.function.aggregate([]) }
        if aggregate.element == nil, collection.filter == nil {
            return .int(Int64(try reader.count(of: collection.relationship, in: owner)))
        }
        var values: [PredicateValue] = []
        for member in try reader.subjects(of: collection.relationship, in: owner) {
            subjects[collection.variable] = member
            try visit()
            if let filter = collection.filter, try !holds(filter) { continue }
            values.append(try aggregate.element.map { try value($0) } ?? .null)
        }
        return aggregate.function.aggregate(values)
    }

    // MARK: - Values

    private mutating func value(_ expression: ResolvedExpression) throws -> PredicateValue {
        switch expression {
        case .constant(let value, _): return value
        case .attribute(let path, let attribute):
            guard let subject = try subject(path) else { return .null }
            return try reader.value(of: attribute, in: subject)
        case .object(let path): return try identity(path).map { .reference($0) } ?? .null
        case .function(let function, let arguments, _): return function.apply(try arguments.map { try value($0) })
        case .aggregate(let aggregate): return try self.aggregate(aggregate)
        case .conditional(let test, let first, let second): return try value(try holds(test) ? first : second)
        // This is resolved for the results of a fetch, whose rows the caller groups. A single row has no aggregate.
        case .rowAggregate: return .null
        }
    }

    /// The object at the end of a path; nil if a step leads to nil.
    private func subject(_ path: ResolvedPath) throws -> AnyObject? {
        var current = subjects[path.variable]
        for step in path.steps {
            guard let subject = current else { return nil }
            if step.isCast {
                if try !reader.isKind(subject, of: step.destination) { return nil }
            } else {
                current = try reader.subject(of: step, in: subject)
            }
        }
        return current
    }

    /// The identity of the object at the end of a path.
    ///
    /// The last object itself is not read.
    private func identity(_ path: ResolvedPath) throws -> PredicateIdentity? {
        guard let last = path.steps.last else { return subjects[path.variable].map(reader.identity(of:)) }
        if last.isCast { return try subject(path).map(reader.identity(of:)) }
        let owner = try subject(ResolvedPath(variable: path.variable, steps: Array(path.steps.dropLast())))
        return try owner.flatMap { try reader.identity(of: last, in: $0) }
    }
}
