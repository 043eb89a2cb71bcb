import StrataPredicates

/// The values of a row that a predicate and an order read.
package struct LookedAt {
    /// Whether they read only values of the row itself, so that each row can be judged as it comes.
    ///
    /// The identity of a related object is such a value. The values of that object and the members of a collection are
    /// not.
    package private(set) var isRowAlone = true
    /// The slots of the row that they read.
    package private(set) var slots = SlotSet()

    package init(_ predicate: ResolvedPredicate?, _ sort: ResolvedSort?) {
        if let predicate { _ = predicate.condition.replacing(visit: { _ in isRowAlone = false }) { note($0) } }
        for term in sort?.terms ?? [] {
            _ = term.expression.replacing(visit: { _ in isRowAlone = false }) { note($0) }
        }
    }

    /// Notes a part of an expression.
    ///
    /// - Returns: Nothing in its place.
    private mutating func note(_ part: ResolvedExpression) -> ResolvedExpression? {
        switch part {
        case .attribute(let path, let attribute):
            follow(path.steps[...])
            // An entity has no slot.
            if path.steps.allSatisfy(\.isCast), attribute.slot >= 0 { slots.insert(attribute.slot) }
        case .object(let path):
            // The last object is only named, and not read.
            guard let last = path.steps.last, !last.isCast else { return follow(path.steps[...]) }
            follow(path.steps.dropLast())
            if path.steps.dropLast().allSatisfy(\.isCast) { slots.insert(last.slot) }
        case .constant, .function, .aggregate, .conditional, .rowAggregate: break
        }
        return nil
    }

    /// Notes a path.
    ///
    /// A cast in it leads to no other object.
    @discardableResult
    private mutating func follow(_ steps: ArraySlice<PredicateRelationship>) -> ResolvedExpression? {
        guard let first = steps.first(where: { !$0.isCast }) else { return nil }
        isRowAlone = false
        slots.insert(first.slot)
        return nil
    }
}
