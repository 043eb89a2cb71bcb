import StrataPredicates
import StrataRows

/// Conditions that overlook case and accents (`[cd]`), asked of derived attributes that hold the folded text.
///
/// A derived attribute `canonical:(name)` has what `name` is compared by there, byte for byte. So where an entity has one, the condition becomes one about
/// that column, without folding, which an index serves.
struct FoldedText {
    /// By variable.
    private var layouts: [EntityLayout?]

    /// A predicate about rows of an entity in that form, as far as derived attributes serve.
    static func rewritten(_ predicate: ResolvedPredicate, _ layout: EntityLayout) -> ResolvedPredicate {
        var layouts = [EntityLayout?](repeating: nil, count: max(predicate.variableCount, 1))
        layouts[0] = layout
        return ResolvedPredicate(
            condition: FoldedText(layouts: layouts).rewritten(predicate.condition),
            variableCount: predicate.variableCount,
            schema: predicate.schema
        )
    }

    private func rewritten(_ condition: ResolvedCondition) -> ResolvedCondition {
        switch condition {
        case .constant, .isNull: return condition
        case .and(let operands): return .and(operands.map(rewritten))
        case .or(let operands): return .or(operands.map(rewritten))
        case .not(let operand): return .not(rewritten(operand))
        case .comparison(let comparison):
            guard folds(comparison.folding), let left = folded(comparison.left), let right = folded(comparison.right)
            else { return condition }
            return .comparison(
                ResolvedComparison(left: left, operator: comparison.operator, right: right, folding: [])
            )
        case .between(let operand, let lower, let upper, let folding):
            guard folds(folding), let operand = folded(operand), let lower = folded(lower), let upper = folded(upper)
            else { return condition }
            return .between(operand, lower: lower, upper: upper, [])
        case .member(let operand, let set):
            guard folds(set.folding), let operand = folded(operand) else { return condition }
            let members = set.members.map { member -> PredicateValue in
                guard case .string(let text) = member else { return member }
                return .string(set.folding.fold(text))
            }
            return .member(operand, PredicateValueSet(members + (set.containsNull ? [.null] : [])))
        case .string(let test): return rewritten(test).map { .string($0) } ?? condition
        case .exists(var collection, let test):
            guard layouts.indices.contains(collection.variable) else { return condition }
            var inner = self
            inner.layouts[collection.variable] = collection.relationship.destination as? EntityLayout
            collection.filter = collection.filter.map(inner.rewritten)
            return .exists(collection, inner.rewritten(test))
        }
    }

    private func rewritten(_ test: ResolvedStringTest) -> ResolvedStringTest? {
        switch test.test {
        case .beginsWith, .endsWith, .contains: break
        case .like, .matches: return nil
        }
        // What is nothing but accents is found everywhere, and an empty text nowhere.
        guard folds(test.folding), let text = folded(test.text), let pattern = folded(test.pattern),
            case .string(let value)? = pattern.constantValue, !value.isEmpty
        else { return nil }
        return ResolvedStringTest(
            text: text,
            test: test.test,
            pattern: pattern,
            folding: [],
            matcher: try? StringMatcher(test.test, pattern: value, folding: [])
        )
    }

    /// Whether a derived attribute overlooks what is overlooked: the two spellings of a letter are the same in it as well.
    private func folds(_ folding: StringFolding) -> Bool {
        folding.subtracting(.canonical) == [.case, .diacritics]
    }

    /// The folded text of an expression; `nil` for one that is kept nowhere.
    private func folded(_ expression: ResolvedExpression) -> ResolvedExpression? {
        switch expression {
        case .constant(.null, _): return expression
        case .constant(.string(let text), _): return .constant(.string(StringFolding([.case, .diacritics]).fold(text)))
        case .attribute(let path, let attribute):
            guard layouts.indices.contains(path.variable) else { return nil }
            let layout = path.steps.last.map { $0.destination as? EntityLayout } ?? layouts[path.variable]
            guard let layout, layout.hasDerivedSlots, layout.slots.indices.contains(attribute.slot) else { return nil }
            let source = layout.slots[attribute.slot].name
            let shadow = layout.slots.first { $0.traits?.derivation == .function(.canonical, attribute: source) }
            guard let shadow, shadow.type == .string else { return nil }
            return .attribute(path, PredicateAttribute(name: shadow.name, type: .string, slot: shadow.index))
        case .constant, .object, .function, .aggregate, .conditional, .rowAggregate: return nil
        }
    }
}
