import StrataPredicates
import StrataRows
import StrataSQL

/// Decides which conditions and values PostgreSQL computes exactly with Strata's meaning; all others are evaluated in
/// the process.
///
/// PostgreSQL computes comparisons of values of one kind, with the indexes that serve them; tests of text by bytes;
/// members of relationships and their aggregates. It also computes sums, differences and products of whole numbers that
/// cannot be too large.
///
/// It does not compute other arithmetic, which fails where Strata has nil. Nor does it fold text or evaluate patterns
/// and regular expressions, which have other meanings there.
struct SQLReach {
    /// The store; entities that it does not hold have no columns.
    private let mapping: SQLMapping
    /// Whether sums are computed that fail if they are too large; in the process such a sum is a double, or infinite.
    let addsUp: Bool

    init(_ mapping: SQLMapping, addsUp: Bool = true) {
        self.mapping = mapping
        self.addsUp = addsUp
    }

    /// Whether PostgreSQL can evaluate a condition, apart from conditions inside of it.
    func says(_ condition: ResolvedCondition, _ layouts: [EntityLayout?]) -> Bool {
        switch condition {
        case .constant, .and, .or, .not: true
        case .isNull(let operand): operand.constantValue == nil && kind(operand, layouts) != nil
        case .comparison(let comparison):
            comparison.folding.isEmpty && areAlike([comparison.left, comparison.right], layouts)
        case .between(let operand, let lower, let upper, let folding):
            folding.isEmpty && areAlike([operand, lower, upper], layouts)
        case .member(let operand, let set): says(operand, equals: set, from: layouts)
        case .string(let test): says(test, layouts)
        case .exists(let collection, _): says(collection)
        }
    }

    /// Whether PostgreSQL can evaluate all of a condition.
    func saysAll(_ condition: ResolvedCondition, _ layouts: [EntityLayout?]) -> Bool {
        switch condition {
        case .constant: true
        case .and(let operands), .or(let operands): operands.allSatisfy { saysAll($0, layouts) }
        case .not(let operand): saysAll(operand, layouts)
        case .exists(let collection, let test):
            withMembers(of: collection, from: layouts) { layouts in
                (collection.filter.map { saysAll($0, layouts) } ?? true) && saysAll(test, layouts)
            } ?? false
        case .isNull, .comparison, .between, .member, .string: says(condition, layouts)
        }
    }

    /// Whether PostgreSQL sorts by a term as the process does.
    func sorts(_ term: ResolvedSort.Term, _ layouts: [EntityLayout?]) -> Bool {
        guard term.comparison == .natural else { return false }
        switch term.expression {
        case .attribute, .object, .aggregate, .rowAggregate: return kind(term.expression, layouts) != nil
        case .constant, .function, .conditional: return false
        }
    }

    /// The kinds of values that PostgreSQL compares with each other.
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

    private func areAlike(_ expressions: [ResolvedExpression], _ layouts: [EntityLayout?]) -> Bool {
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

    private func common(_ left: Kind, _ right: Kind) -> Kind? {
        switch (left, right) {
        case _ where left == right: left
        case (.small, .integer), (.integer, .small): .integer
        // A double can hold each of them.
        case (.small, .double), (.double, .small): .double
        default: nil
        }
    }

    private func kind(_ expression: ResolvedExpression, _ layouts: [EntityLayout?]) -> Kind? {
        switch expression {
        case .constant(let value, _): return kind(value)
        case .object(let path): return layout(path, layouts) == nil ? nil : .reference
        case .attribute(let path, let attribute): return kind(of: path, attribute: attribute, from: layouts)
        case .aggregate(let aggregate): return kind(aggregate, layouts)
        case .rowAggregate(let function, let operand):
            guard function == .count else { return kind(function, of: operand, layouts) }
            return kind(operand, layouts) == nil ? nil : .small
        case .function: return magnitude(expression, layouts).map { $0 <= 53 ? .small : .integer }
        case .conditional: return nil
        }
    }

    /// The bits of the greatest whole number that an expression can reach, when PostgreSQL computes it in 64 bits.
    ///
    /// The result is `nil` if the number may be larger, or if the expression is no such number.
    private func magnitude(_ expression: ResolvedExpression, _ layouts: [EntityLayout?]) -> Int? {
        switch expression {
        case .constant(.int(let number), _): return Int64.bitWidth - number.magnitude.leadingZeroBitCount
        case .attribute(let path, let attribute):
            switch slot(at: path, attribute: attribute, from: layouts)?.type {
            case .integer16?: return 15
            case .integer32?: return 31
            default: return nil
            }
        case .function(let function, let arguments, _):
            guard arguments.count == 2, let left = magnitude(arguments[0], layouts),
                let right = magnitude(arguments[1], layouts)
            else { return nil }
            let bits: Int
            switch function {
            case .add, .subtract: bits = max(left, right) + 1
            case .multiply: bits = left + right
            default: return nil
            }
            return bits < Int64.bitWidth - 1 ? bits : nil
        case .constant, .object, .aggregate, .conditional, .rowAggregate: return nil
        }
    }

    /// The slot of an attribute; `nil` if it has none.
    private func slot(at path: ResolvedPath, attribute: PredicateAttribute, from layouts: [EntityLayout?]) -> Slot? {
        guard let layout = layout(path, layouts), layout.slots.indices.contains(attribute.slot) else { return nil }
        return layout.slots[attribute.slot]
    }

    /// The entity at the end of a path; `nil` if it is unknown, or if the store does not hold all entities on the way.
    ///
    /// Such a path leads nowhere, and would be a NULL without a type.
    private func layout(_ path: ResolvedPath, _ layouts: [EntityLayout?]) -> EntityLayout? {
        guard layouts.indices.contains(path.variable), var layout = layouts[path.variable] else { return nil }
        for step in path.steps {
            guard mapping.entity(layout) != nil, let next = step.destination as? EntityLayout else { return nil }
            layout = next
        }
        return mapping.entity(layout) == nil ? nil : layout
    }

    private func kind(_ aggregate: ResolvedAggregate, _ layouts: [EntityLayout?]) -> Kind? {
        let collection = aggregate.collection
        return withMembers(of: collection, from: layouts) { layouts in
            if let filter = collection.filter, !saysAll(filter, layouts) { return nil }
            if aggregate.function == .count { return .small }
            return aggregate.element.flatMap { kind(aggregate.function, of: $0, layouts) }
        } ?? nil
    }

    /// The kind of an aggregate of an attribute.
    private func kind(_ function: PredefinedFunction, of element: ResolvedExpression, _ layouts: [EntityLayout?])
        -> Kind?
    {
        guard case .attribute = element, let kind = kind(element, layouts) else { return nil }
        switch (function, kind) {
        case (.min, .small), (.min, .integer), (.min, .double), (.min, .date), (.min, .text): return kind
        case (.max, .small), (.max, .integer), (.max, .double), (.max, .date), (.max, .text): return kind
        case (.sum, .small): return .integer
        case (.sum, .integer) where addsUp: return .integer
        case (.sum, .double) where addsUp: return .double
        case (.average, .small), (.average, .integer), (.average, .double): return addsUp ? .double : nil
        default: return nil
        }
    }

    /// The result of `body` for the members of a collection; `nil` if the collection is unknown.
    private func withMembers<R>(
        of collection: ResolvedCollection,
        from layouts: [EntityLayout?],
        _ body: ([EntityLayout?]) -> R
    )
        -> R?
    {
        guard says(collection), layouts.indices.contains(collection.variable) else { return nil }
        var layouts = layouts
        layouts[collection.variable] = collection.relationship.destination as? EntityLayout
        return body(layouts)
    }

    private func kind(_ value: PredicateValue) -> Kind? {
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

    private func kind(
        of path: ResolvedPath,
        attribute: PredicateAttribute,
        from layouts: [EntityLayout?]
    ) -> Kind? {
        if attribute.type == .entity { return .entity }
        guard let layout = layout(path, layouts) else { return nil }
        // This is a column with folded text, which has no slot: see EntityMapping.foldedColumns.
        guard layout.slots.indices.contains(attribute.slot) else { return .text }
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

    private func says(_ operand: ResolvedExpression, equals set: PredicateValueSet, from layouts: [EntityLayout?])
        -> Bool
    {
        guard set.folding.isEmpty else { return false }
        switch operand {
        case .attribute, .object, .aggregate, .function: break
        default: return false
        }
        guard let own = kind(operand, layouts) else { return false }
        // The set becomes one parameter, or several ones of one type.
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

    private func says(_ test: ResolvedStringTest, _ layouts: [EntityLayout?]) -> Bool {
        guard test.folding.isEmpty, case .string(let pattern)? = test.pattern.constantValue,
            !pattern.utf8.contains(0), case .attribute = test.text, kind(test.text, layouts) == .text
        else { return false }
        switch test.test {
        // If a prefix has no successor, then the test would become a function.
        case .beginsWith: return pattern.unicodeScalars.contains { $0.value < 0x10FFFF }
        case .contains: return true
        case .endsWith, .like, .matches: return false
        }
    }

    private func says(_ collection: ResolvedCollection) -> Bool {
        collection.relationship.destination is EntityLayout
    }
}

// MARK: - Dictionaries

extension SQLReach {
    /// Whether PostgreSQL can compute all of a fetch of dictionaries.
    func says(_ plan: DictionaryPlan) -> Bool {
        let count = max(plan.variableCount, plan.rows.predicate?.variableCount ?? 1, 1)
        var layouts = [EntityLayout?](repeating: nil, count: count)
        layouts[0] = plan.rows.layout
        if let predicate = plan.rows.predicate, !saysAll(predicate.condition, layouts) { return false }
        guard let grouping = plan.grouping else {
            return plan.columns.allSatisfy { selects($0.expression, layouts) }
                && plan.rows.sort?.terms.allSatisfy { sorts($0, layouts) } ?? true
        }
        let isKey = { (expression: ResolvedExpression) in grouping.keys.contains(where: expression.isSame(as:)) }
        return grouping.keys.allSatisfy { groups($0, layouts) }
            && (plan.columns.map(\.expression) + grouping.order.map(\.expression)).allSatisfy { expression in
                if isKey(expression) { return true }
                guard case .rowAggregate = expression else { return false }
                return kind(expression, layouts) != nil
            }
            && grouping.order.allSatisfy { $0.comparison == .natural }
            && grouping.having.map { having in
                // A truth value is grouped as a number, but a test for nil does not treat it as a number.
                saysAll(having, layouts) && !grouping.keys.contains { $0.type == .bool }
            } ?? true
    }

    private func selects(_ expression: ResolvedExpression, _ layouts: [EntityLayout?]) -> Bool {
        switch expression {
        case .attribute, .object, .aggregate: kind(expression, layouts) != nil
        case .constant, .function, .conditional, .rowAggregate: false
        }
    }

    /// Whether grouping by an expression gives the same groups as in the process.
    private func groups(_ expression: ResolvedExpression, _ layouts: [EntityLayout?]) -> Bool {
        switch expression {
        // Decimals are grouped by their doubles, but shown with all digits.
        case .attribute: expression.type != .decimal && kind(expression, layouts) != nil
        case .object: kind(expression, layouts) != nil
        case .constant, .function, .aggregate, .conditional, .rowAggregate: false
        }
    }
}

// MARK: - What may be too large

extension ResolvedCondition {
    /// Whether a sum in it may fail in PostgreSQL.
    var mayOverflow: Bool {
        var result = false
        _ = replacing(visit: { _ in }) { part in
            if part.mayOverflow { result = true }
            return nil
        }
        return result
    }
}

extension DictionaryPlan {
    /// Whether a sum in it may fail in PostgreSQL.
    var mayOverflow: Bool {
        let expressions =
            columns.map(\.expression) + (grouping?.order ?? rows.sort?.terms ?? []).map(\.expression)
        return rows.predicate?.condition.mayOverflow ?? false || grouping?.having?.mayOverflow ?? false
            || expressions.contains(where: \.hasOverflowingPart)
    }
}

extension ResolvedExpression {
    /// Whether it is a sum, or an average, that may fail in PostgreSQL.
    fileprivate var mayOverflow: Bool {
        switch self {
        case .aggregate(let aggregate): aggregate.function == .sum || aggregate.function == .average
        case .rowAggregate(let function, _): function == .sum || function == .average
        default: false
        }
    }

    /// Whether one of its parts may fail.
    fileprivate var hasOverflowingPart: Bool {
        var result = false
        _ = replacing(visit: { _ in }) { part in
            if part.mayOverflow { result = true }
            return nil
        }
        return result
    }
}
