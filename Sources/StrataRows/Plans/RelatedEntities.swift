import StrataPredicates

/// Finds the entities, beside the fetched one, whose attributes a resolved predicate or sort reads.
///
/// Memberships do not count, because a change of one marks the owner itself as changed.
package enum RelatedEntities {
    package static func collect(_ condition: ResolvedCondition, into roots: inout Set<Int>) {
        switch condition {
        case .constant: break
        case .and(let operands), .or(let operands):
            for operand in operands { collect(operand, into: &roots) }
        case .not(let operand): collect(operand, into: &roots)
        case .isNull(let operand), .member(let operand, _): collect(operand, into: &roots)
        case .comparison(let comparison):
            collect(comparison.left, into: &roots)
            collect(comparison.right, into: &roots)
        case .between(let operand, let lower, let upper, _):
            for expression in [operand, lower, upper] { collect(expression, into: &roots) }
        case .string(let test):
            collect(test.text, into: &roots)
            collect(test.pattern, into: &roots)
        case .exists(let collection, let test):
            collect(collection, into: &roots)
            roots.insert(collection.relationship.rootNumber)
            collect(test, into: &roots)
        }
    }

    package static func collect(_ expression: ResolvedExpression, into roots: inout Set<Int>) {
        switch expression {
        case .constant: break
        // The last step's object is only named, and not read.
        case .object(let path): collect(path.steps.dropLast(), into: &roots)
        case .attribute(let path, _): collect(path.steps[...], into: &roots)
        case .function(_, let operands, _): for operand in operands { collect(operand, into: &roots) }
        case .aggregate(let aggregate):
            collect(aggregate.collection, into: &roots)
            if let element = aggregate.element {
                roots.insert(aggregate.collection.relationship.rootNumber)
                collect(element, into: &roots)
            }
        case .conditional(let condition, let first, let second):
            collect(condition, into: &roots)
            collect(first, into: &roots)
            collect(second, into: &roots)
        case .rowAggregate(_, let operand): collect(operand, into: &roots)
        }
    }

    /// Collects the entities of a path.
    ///
    /// A cast leads to no other object.
    private static func collect(_ steps: ArraySlice<PredicateRelationship>, into roots: inout Set<Int>) {
        for step in steps where !step.isCast { roots.insert(step.rootNumber) }
    }

    private static func collect(_ collection: ResolvedCollection, into roots: inout Set<Int>) {
        collect(collection.owner.steps[...], into: &roots)
        if collection.owner.variable != 0 || collection.owner.steps.contains(where: { !$0.isCast }) {
            // The membership belongs to an object other than the fetched one.
            roots.insert(collection.relationship.rootNumber)
        }
        // If members are deleted, they leave the relationship although the owner is not marked.
        if collection.relationship.mayDangle { roots.insert(collection.relationship.rootNumber) }
        guard let filter = collection.filter else { return }
        roots.insert(collection.relationship.rootNumber)
        collect(filter, into: &roots)
    }
}
