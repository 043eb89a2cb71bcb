import StrataPredicates
import StrataRows

/// What PostgreSQL answers exactly as Strata means it; all else is evaluated in the process.
///
/// Comparisons of values of one kind, with the indexes that serve them; tests of text that go by bytes; members of relationships. No arithmetic,
/// which raises where Strata has nil; no folding of text, no patterns, no regular expressions, which have other meanings there.
enum SQLReach {
    /// Whether PostgreSQL says a condition, apart from conditions inside of it.
    static func says(_ condition: ResolvedCondition, _ layouts: [EntityLayout?]) -> Bool {
        switch condition {
        case .constant, .and, .or, .not: true
        case .isNull(let operand): operand.constantValue == nil && kind(operand, layouts) != nil
        case .comparison(let comparison):
            comparison.folding.isEmpty && areAlike([comparison.left, comparison.right], layouts)
        case .between(let operand, let lower, let upper, let folding):
            folding.isEmpty && areAlike([operand, lower, upper], layouts)
        case .member(let operand, let set): says(operand, set, layouts)
        case .string(let test): says(test, layouts)
        case .exists(let collection, _): says(collection)
        }
    }

    /// Whether PostgreSQL sorts by a term as the process does.
    static func sorts(_ term: ResolvedSort.Term, _ layout: EntityLayout) -> Bool {
        guard term.comparison == .natural else { return false }
        switch term.expression {
        case .attribute, .object: return kind(term.expression, [layout]) != nil
        default: return false
        }
    }

    /// Values that PostgreSQL compares with each other.
    private enum Kind {
        case small
        case integer
        case double
        case date
        case text
        case uuid
        case data
        case reference
        case entity
        case null
    }

    private static func areAlike(_ expressions: [ResolvedExpression], _ layouts: [EntityLayout?]) -> Bool {
        // Parameters alone have no collation.
        guard expressions.contains(where: { $0.constantValue == nil }) else { return false }
        var known: Kind?
        for expression in expressions {
            guard let kind = kind(expression, layouts) else { return false }
            if kind == .null { continue }
            guard let before = known else {
                known = kind
                continue
            }
            guard let both = common(before, kind) else { return false }
            known = both
        }
        return true
    }

    private static func common(_ left: Kind, _ right: Kind) -> Kind? {
        switch (left, right) {
        case _ where left == right: left
        case (.small, .integer), (.integer, .small): .integer
        // A double holds each of them.
        case (.small, .double), (.double, .small): .double
        default: nil
        }
    }

    private static func kind(_ expression: ResolvedExpression, _ layouts: [EntityLayout?]) -> Kind? {
        switch expression {
        case .constant(let value, _): return kind(value)
        case .object: return .reference
        case .attribute(let path, let attribute): return kind(path, attribute, layouts)
        case .aggregate(let aggregate):
            guard aggregate.function == .count, aggregate.collection.filter == nil else { return nil }
            return says(aggregate.collection) ? .integer : nil
        case .function, .conditional, .rowAggregate: return nil
        }
    }

    private static func kind(_ value: PredicateValue) -> Kind? {
        switch value {
        case .null: return .null
        case .int(let number): return number.magnitude < 1 << 53 ? .small : .integer
        case .double(let number): return number.isNaN ? nil : .double
        case .date(let seconds): return seconds.isNaN ? nil : .date
        case .string(let text): return text.utf8.contains(0) ? nil : .text
        case .uuid: return .uuid
        case .data: return .data
        case .reference: return .reference
        case .entity: return .entity
        case .collection: return nil
        }
    }

    private static func kind(
        _ path: ResolvedPath,
        _ attribute: PredicateAttribute,
        _ layouts: [EntityLayout?]
    ) -> Kind? {
        if attribute.type == .entity { return .entity }
        guard layouts.indices.contains(path.variable),
            let layout = path.steps.last.map({ $0.destination as? EntityLayout }) ?? layouts[path.variable],
            layout.slots.indices.contains(attribute.slot)
        else { return nil }
        switch layout.slots[attribute.slot].type {
        case .integer16, .integer32, .boolean: return .small
        case .integer64: return .integer
        case .double, .float, .decimal: return .double
        case .date: return .date
        case .string, .uri: return .text
        case .uuid: return .uuid
        case .data, .transformable, .undefined, .objectID, .composite: return .data
        }
    }

    private static func says(_ operand: ResolvedExpression, _ set: PredicateValueSet, _ layouts: [EntityLayout?])
        -> Bool
    {
        guard set.folding.isEmpty else { return false }
        switch operand {
        case .attribute, .object, .aggregate: break
        default: return false
        }
        guard let own = kind(operand, layouts) else { return false }
        // One parameter, or some of one type.
        var isOneType = true
        var type: Kind?
        for member in set.members {
            guard var kind = kind(member), common(own, kind) != nil else { return false }
            if kind == .small { kind = .integer }
            if let type, type != kind { isOneType = false }
            type = kind
        }
        return isOneType
    }

    private static func says(_ test: ResolvedStringTest, _ layouts: [EntityLayout?]) -> Bool {
        guard test.folding.isEmpty, case .string(let pattern)? = test.pattern.constantValue,
            !pattern.utf8.contains(0), case .attribute = test.text, kind(test.text, layouts) == .text
        else { return false }
        switch test.test {
        // What has no successor would be written as a function.
        case .beginsWith: return pattern.unicodeScalars.contains { $0.value < 0x10FFFF }
        case .contains: return true
        case .endsWith, .like, .matches: return false
        }
    }

    private static func says(_ collection: ResolvedCollection) -> Bool {
        collection.relationship.destination is EntityLayout
    }
}
