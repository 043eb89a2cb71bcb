import StrataPredicates

/// The values that are computed for groups of rows: the keys of a group first, then its aggregates.
///
/// In the rewritten expressions each value of the group is an attribute whose slot is the value's number.
package struct GroupTerms {
    package let keys: [ResolvedExpression]
    package private(set) var aggregates: [(function: PredefinedFunction, operand: ResolvedExpression)] = []

    package init(keys: [ResolvedExpression]) {
        self.keys = keys
    }

    /// The reason why an expression has no single value for a group.
    package enum Problem: Error {
        /// The expression reads the named property, which the rows of a group need not have in common.
        case notGrouped(String)
        /// The expression takes an aggregate of an aggregate.
        case nestedAggregate
    }

    /// - Throws: ``Problem``.
    package mutating func rewrite(_ expression: ResolvedExpression) throws -> ResolvedExpression {
        try expression.replacing(visit: Self.refuse) { try replacement(for: $0) }
    }

    /// - Throws: ``Problem``.
    package mutating func rewrite(_ condition: ResolvedCondition) throws -> ResolvedCondition {
        try condition.replacing(visit: Self.refuse) { try replacement(for: $0) }
    }

    /// The number of the key that an expression is; `nil` if it is not a key.
    package func key(of expression: ResolvedExpression) -> Int? {
        keys.firstIndex { $0.isSame(as: expression) }
    }

    private mutating func replacement(for part: ResolvedExpression) throws -> ResolvedExpression? {
        if let key = key(of: part) { return value(key, part.type) }
        switch part {
        case .rowAggregate(let function, let operand):
            guard !operand.hasRowAggregate else { throw Problem.nestedAggregate }
            aggregates.append((function, operand))
            return value(keys.count + aggregates.count - 1, part.type)
        case .object(let path): throw Problem.notGrouped(path.text)
        case .attribute(let path, let attribute): throw Problem.notGrouped(path.text(to: attribute.name))
        // An aggregate of members contains a collection, which is refused where it is met.
        case .constant, .function, .aggregate, .conditional: return nil
        }
    }

    /// The rows of a group have no members in common.
    private static func refuse(_ collection: ResolvedCollection) throws {
        throw Problem.notGrouped(collection.owner.text(to: collection.relationship.name))
    }

    private func value(_ number: Int, _ type: ResolvedType) -> ResolvedExpression {
        // The evaluator uses the slot alone.
        let type = PredicateAttributeType(rawValue: type.rawValue) ?? .data
        return .attribute(ResolvedPath(variable: 0), PredicateAttribute(name: "", type: type, slot: number))
    }
}

extension ResolvedExpression {
    /// Whether a part of the expression is an aggregate of rows.
    package var hasRowAggregate: Bool {
        var result = false
        _ = replacing(visit: { _ in }) { part in
            if case .rowAggregate = part { result = true }
            return nil
        }
        return result
    }
}

extension ResolvedPath {
    /// The path as a request spells it.
    fileprivate var text: String { steps.isEmpty ? "SELF" : steps.map(\.name).joined(separator: ".") }

    /// The path of a property at the end.
    fileprivate func text(to property: String) -> String { (steps.map(\.name) + [property]).joined(separator: ".") }
}
