/// One comparison of objects of any kind.
struct ObjectComparison {
    private let type: NSComparisonPredicate.Operator
    private let folding: StringFolding
    private let selector: Selector?
    private let constantSet: PredicateValueSet?

    init(_ comparison: NSComparisonPredicate) {
        type = comparison.predicateOperatorType
        folding = StringFolding(comparison.options)
        selector = comparison.customSelector
        constantSet = comparison.constantSet
    }

    func holds(_ lhs: Any?, _ rhs: Any?) throws -> Bool {
        switch type {
        case .equalTo: areEqual(lhs, rhs)
        case .notEqualTo: !areEqual(lhs, rhs)
        case .between: try isBetween(lhs, rhs)
        case .in: try contains(rhs, lhs)
        case .contains: try contains(lhs, rhs)
        case .customSelector: try send(lhs, rhs)
        default: try compare(lhs, rhs)
        }
    }

    private func compare(_ lhs: Any?, _ rhs: Any?) throws -> Bool {
        if lhs is any PredicateOrdered && rhs == nil || lhs == nil && rhs is any PredicateOrdered { return false }
        if let ordered = lhs as? any PredicateOrdered, let rhs, let answer = ordered.predicateHolds(type, rhs) {
            return answer
        }
        return try ScalarComparison.holds(try scalar(lhs), type, against: try scalar(rhs), folding: folding)
    }

    private func scalar(_ any: Any?) throws -> PredicateValue {
        if let value = PredicateValue(scalar: any) { return value }
        throw PredicateEvaluationError(
            "\(type) cannot compare a value of type \(any.map { "\(Swift.type(of: $0))" } ?? "nil")"
        )
    }

    // MARK: - Equality

    private func areEqual(_ lhs: Any?, _ rhs: Any?) -> Bool {
        switch (PredicateValue(scalar: lhs), PredicateValue(scalar: rhs)) {
        case (let left?, let right?): return left.isEqual(to: right, folding: folding)
        case (nil, nil): break
        default: return false
        }
        if let left = collectionMembers(of: lhs), let right = collectionMembers(of: rhs) {
            return collectionsAreEqual(left, right, areOrdered: isOrdered(lhs) && isOrdered(rhs))
        }
        if let left = lhs as? any PredicateEntityReference, let right = rhs as? any PredicateEntityReference {
            return left.predicateEntityName == right.predicateEntityName
        }
        guard let left = MemberKey(lhs), let right = MemberKey(rhs) else { return false }
        return left == right
    }

    private func isOrdered(_ any: Any?) -> Bool {
        !(isUnordered(any))
    }

    private func collectionsAreEqual(_ lhs: [Any?], _ rhs: [Any?], areOrdered: Bool) -> Bool {
        guard lhs.count == rhs.count else { return false }
        if areOrdered { return zip(lhs, rhs).allSatisfy(areEqual) }
        let left = lhs.compactMap { MemberKey($0) }
        let right = rhs.compactMap { MemberKey($0) }
        return left.count == lhs.count && right.count == rhs.count && Set(left) == Set(right)
    }

    // MARK: - Ranges and members

    private func isBetween(_ value: Any?, _ bounds: Any?) throws -> Bool {
        guard !isUnordered(bounds), let bounds = collectionMembers(of: bounds), bounds.count == 2 else {
            throw PredicateEvaluationError("BETWEEN needs an array of two values on its right side")
        }
        let value = try scalar(value)
        return try ScalarComparison.holds(
            value,
            .greaterThanOrEqualTo,
            against: try scalar(bounds[0]),
            folding: folding
        )
            && ScalarComparison.holds(value, .lessThanOrEqualTo, against: try scalar(bounds[1]), folding: folding)
    }

    private func contains(_ collection: Any?, _ member: Any?) throws -> Bool {
        if let constantSet, let value = PredicateValue(scalar: member) { return constantSet.contains(value) }
        if let members = collectionMembers(of: collection) {
            return flattened(members, unless: member).contains { areEqual($0, member) }
        }
        guard collection != nil else { return false }
        return try ScalarComparison.holds(
            try scalar(collection),
            .contains,
            against: try scalar(member),
            folding: folding
        )
    }

    /// Flattens the values of a key path with two to-many steps, which are collections of collections.
    private func flattened(_ members: [Any?], unless member: Any?) -> [Any?] {
        collectionMembers(of: member) == nil ? members.flatMap(flattenedMembers(of:)) : members
    }

    // MARK: - Methods

    private func send(_ lhs: Any?, _ rhs: Any?) throws -> Bool {
        switch selector?.description {
        case "isEqual:", "isEqualToString:", "isEqualToNumber:", "isEqualToDate:", "isEqualToArray:":
            return areEqual(lhs, rhs)
        case "hasPrefix:":
            return try ScalarComparison.holds(scalar(lhs), .beginsWith, against: scalar(rhs), folding: [])
        case "hasSuffix:": return try ScalarComparison.holds(scalar(lhs), .endsWith, against: scalar(rhs), folding: [])
        case "containsString:":
            return try ScalarComparison.holds(scalar(lhs), .contains, against: scalar(rhs), folding: [])
        case "containsObject:": return try contains(lhs, rhs)
        default: throw PredicateEvaluationError("there is no method \(selector?.description ?? "") to compare with")
        }
    }
}

/// An object with its own order, which comparisons in memory follow.
package protocol PredicateOrdered {
    /// Whether the object has an order relation to another one: `<`, `<=`, `>` or `>=`.
    ///
    /// - Returns: The answer; `nil` for other operators, and for objects that have no order with this one.
    func predicateHolds(_ type: NSComparisonPredicate.Operator, _ other: Any) -> Bool?
}
