/// Whether two predicates are equal trees, however they were made.
package func predicatesAreEqual(_ lhs: NSPredicate, _ rhs: NSPredicate) -> Bool {
    var comparison = TreeComparison()
    return comparison.matches(lhs, rhs) && comparison.finish()
}

/// Whether two expressions are equal trees.
///
/// A constant array equals an aggregate of equal constants, which is how it prints.
package func expressionsAreEqual(_ lhs: NSExpression, _ rhs: NSExpression) -> Bool {
    var comparison = TreeComparison()
    return comparison.matches(lhs, rhs) && comparison.finish()
}

/// Compares two trees node by node, on its own stack, which does not overflow.
private struct TreeComparison {
    private enum Pair {
        case predicates(NSPredicate, NSPredicate)
        case expressions(NSExpression, NSExpression)
    }

    /// The children of nodes that matched; they still have to be compared.
    private var rest: [Pair] = []

    mutating func finish() -> Bool {
        while let pair = rest.popLast() {
            switch pair {
            case .predicates(let left, let right): if !matches(left, right) { return false }
            case .expressions(let left, let right): if !matches(left, right) { return false }
            }
        }
        return true
    }

    /// Whether two nodes are the same.
    ///
    /// ``finish()`` compares their children.
    mutating func matches(_ lhs: NSPredicate, _ rhs: NSPredicate) -> Bool {
        if lhs === rhs { return true }
        switch (PredicateForm(lhs), PredicateForm(rhs)) {
        case (.constant(let left), .constant(let right)): return left == right
        case (.comparison(let left), .comparison(let right)): return matches(left, right)
        case (.not(let left), .not(let right)):
            rest.append(.predicates(left, right))
            return true
        case (.and(let left), .and(let right)), (.or(let left), .or(let right)):
            guard left.count == right.count else { return false }
            rest += zip(left, right).map { .predicates($0, $1) }
            return true
        // The only member of a junction may be the same block.
        case (.block(let left), .block(let right)): return left === right
        default: return false
        }
    }

    private mutating func matches(_ lhs: NSComparisonPredicate, _ rhs: NSComparisonPredicate) -> Bool {
        guard lhs.predicateOperatorType == rhs.predicateOperatorType,
            lhs.comparisonPredicateModifier == rhs.comparisonPredicateModifier, lhs.options == rhs.options,
            lhs.customSelector == rhs.customSelector
        else { return false }
        return match([lhs.leftExpression, lhs.rightExpression], [rhs.leftExpression, rhs.rightExpression])
    }

    mutating func matches(_ lhs: NSExpression, _ rhs: NSExpression) -> Bool {
        if lhs === rhs { return true }
        if let left = constantMembers(of: lhs), let right = constantMembers(of: rhs) {
            return left.count == right.count && zip(left, right).allSatisfy(constantsAreEqual)
        }
        switch (lhs.kind, rhs.kind) {
        case (.constant(let left), .constant(let right)): return constantsAreEqual(left, right)
        case (.evaluatedObject, .evaluatedObject), (.anyKey, .anyKey): return true
        case (.variable(let left), .variable(let right)), (.keyPath(let left), .keyPath(let right)):
            return left == right
        case (.function(let leftName, let leftTarget, let left), .function(let rightName, let rightTarget, let right)):
            return leftName == rightName && match(leftTarget.map { [$0] } ?? [], rightTarget.map { [$0] } ?? [])
                && match(left, right)
        case (.setOperation(let leftKind, let left1, let left2), .setOperation(let rightKind, let right1, let right2)):
            return leftKind == rightKind && match([left1, left2], [right1, right2])
        case (.subquery(let left, let leftName, let leftTest), .subquery(let right, let rightName, let rightTest)):
            rest.append(.predicates(leftTest, rightTest))
            return leftName == rightName && match([left], [right])
        case (.aggregate(let left), .aggregate(let right)): return match(left, right)
        case (.conditional(let leftTest, let left1, let left2), .conditional(let rightTest, let right1, let right2)):
            rest.append(.predicates(leftTest, rightTest))
            return match([left1, left2], [right1, right2])
        case (.custom, .custom):
            guard let left = lhs as? NSFetchRequestExpression, let right = rhs as? NSFetchRequestExpression else {
                return false
            }
            return left.isCountOnlyRequest == right.isCountOnlyRequest
                && match(
                    [left.requestExpression, left.contextExpression],
                    [right.requestExpression, right.contextExpression]
                )
        default: return false
        }
    }

    private mutating func match(_ lhs: [NSExpression], _ rhs: [NSExpression]) -> Bool {
        guard lhs.count == rhs.count else { return false }
        rest += zip(lhs, rhs).map { .expressions($0, $1) }
        return true
    }
}

/// The members of a constant array, or of an aggregate that contains constants only.
private func constantMembers(of expression: NSExpression) -> [Any?]? {
    switch expression.kind {
    case .constant(let value):
        if isUnordered(value) { return nil }
        guard PredicateValue(scalar: value) == nil else { return nil }
        return collectionMembers(of: value)
    case .aggregate(let members):
        var constants: [Any?] = []
        for member in members {
            guard case .constant(let value) = member.kind else { return nil }
            constants.append(value)
        }
        return constants
    default:
        return nil
    }
}

private func constantsAreEqual(_ lhs: Any?, _ rhs: Any?) -> Bool {
    switch (PredicateValue(scalar: lhs), PredicateValue(scalar: rhs)) {
    case (let left?, let right?): return left == right
    case (nil, nil): break
    default: return false
    }
    if let left = lhs as? AnyHashable, let right = rhs as? AnyHashable, left == right { return true }
    if let left = collectionMembers(of: lhs), let right = collectionMembers(of: rhs) {
        return left.count == right.count && zip(left, right).allSatisfy(constantsAreEqual)
    }
    return false
}

// MARK: - Hashing

/// The depth below which nodes are not hashed: two trees hardly ever differ only there.
private let hashedDepth = 32

/// Feeds the parts that ``predicatesAreEqual(_:_:)`` compares, or some of them, to a hasher.
package func hashPredicate(_ predicate: NSPredicate, into hasher: inout Hasher, depth: Int = 0) {
    if depth > hashedDepth { return }
    switch PredicateForm(predicate) {
    case .constant(let value): hasher.combine(value)
    case .comparison(let comparison):
        hasher.combine(comparison.predicateOperatorType)
        hasher.combine(comparison.options.rawValue)
        hashExpression(comparison.leftExpression, into: &hasher, depth: depth + 1)
        hashExpression(comparison.rightExpression, into: &hasher, depth: depth + 1)
    case .not(let operand):
        hasher.combine(1)
        hashPredicate(operand, into: &hasher, depth: depth + 1)
    case .and(let operands), .or(let operands):
        hasher.combine(operands.count)
        for operand in operands { hashPredicate(operand, into: &hasher, depth: depth + 1) }
    case .block(let block): hasher.combine(ObjectIdentifier(block))
    }
}

/// Feeds the parts that ``expressionsAreEqual(_:_:)`` compares, or some of them, to a hasher.
package func hashExpression(_ expression: NSExpression, into hasher: inout Hasher, depth: Int = 0) {
    if depth > hashedDepth { return }
    if let members = constantMembers(of: expression) {
        hasher.combine(members.count)
        for member in members { hasher.combine(PredicateValue(scalar: member)) }
        return
    }
    switch expression.kind {
    case .constant(let value): hasher.combine(PredicateValue(scalar: value))
    case .evaluatedObject, .anyKey, .custom: break
    case .variable(let name), .keyPath(let name): hasher.combine(name)
    case .function(let name, _, let arguments):
        hasher.combine(name)
        for argument in arguments { hashExpression(argument, into: &hasher, depth: depth + 1) }
    case .setOperation(_, let left, let right), .conditional(_, let left, let right):
        hashExpression(left, into: &hasher, depth: depth + 1)
        hashExpression(right, into: &hasher, depth: depth + 1)
    case .subquery(let source, let variable, let predicate):
        hashExpression(source, into: &hasher, depth: depth + 1)
        hasher.combine(variable)
        hashPredicate(predicate, into: &hasher, depth: depth + 1)
    case .aggregate(let members):
        hasher.combine(members.count)
    case .block(_, let arguments):
        hasher.combine(arguments.count)
    }
}
