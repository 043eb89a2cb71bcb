import StrataPredicates
import StrataRows
import StrataSQL

/// Rewrites conditions that ignore case, accents or both (`[c]`, `[d]`, `[cd]`) into conditions on columns with the
/// folded text.
///
/// Such a column holds the text that these conditions compare, byte for byte. The user info of an attribute asks for
/// it; for `[cd]`, the column of a derived attribute `canonical:(name)` serves too. If there is such a column, then the
/// condition becomes one on that column, without folding, and an index can serve it.
struct FoldedText {
    private let mapping: SQLMapping
    /// The entities of the variables.
    private var layouts: [EntityLayout?]

    /// A predicate about rows of an entity in that form, if such columns exist.
    static func rewritten(_ predicate: ResolvedPredicate, of layout: EntityLayout, in mapping: SQLMapping)
        -> ResolvedPredicate
    {
        var layouts = [EntityLayout?](repeating: nil, count: max(predicate.variableCount, 1))
        layouts[0] = layout
        return ResolvedPredicate(
            condition: FoldedText(mapping: mapping, layouts: layouts).rewritten(predicate.condition),
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
            guard let folding = kept(comparison.folding), let left = folded(comparison.left, folding),
                let right = folded(comparison.right, folding)
            else { return condition }
            return .comparison(
                ResolvedComparison(left: left, operator: comparison.operator, right: right, folding: [])
            )
        case .between(let operand, let lower, let upper, let folding):
            guard let folding = kept(folding), let operand = folded(operand, folding),
                let lower = folded(lower, folding), let upper = folded(upper, folding)
            else { return condition }
            return .between(operand, lower: lower, upper: upper, [])
        case .member(let operand, let set):
            guard let folding = kept(set.folding), let operand = folded(operand, folding) else { return condition }
            let members = set.members.map { member -> PredicateValue in
                guard case .string(let text) = member else { return member }
                return .string(folding.fold(text))
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
        // Folding does not change the special characters of a pattern.
        case .beginsWith, .endsWith, .contains, .like: break
        case .matches: return nil
        }
        // A pattern of accents alone matches everywhere, and an empty text nowhere.
        guard let folding = kept(test.folding), let text = folded(test.text, folding),
            let pattern = folded(test.pattern, folding),
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

    /// The folding of the column that serves a condition with a folding; `nil` if no column serves.
    ///
    /// The column treats the two spellings of a letter as equal too.
    private func kept(_ folding: StringFolding) -> StringFolding? {
        let kept = folding.subtracting(.canonical)
        return kept.isEmpty ? nil : kept
    }

    /// The folded text of an expression; `nil` if no column holds it.
    private func folded(_ expression: ResolvedExpression, _ folding: StringFolding) -> ResolvedExpression? {
        switch expression {
        case .constant(.null, _): return expression
        case .constant(.string(let text), _): return .constant(.string(folding.fold(text)))
        case .attribute(let path, let attribute):
            guard layouts.indices.contains(path.variable) else { return nil }
            let layout = path.steps.last.map { $0.destination as? EntityLayout } ?? layouts[path.variable]
            guard let layout, layout.slots.indices.contains(attribute.slot),
                let position = position(of: layout.slots[attribute.slot], layout, folding)
            else { return nil }
            return .attribute(path, PredicateAttribute(name: attribute.name, type: .string, slot: position))
        case .constant, .object, .function, .aggregate, .conditional, .rowAggregate: return nil
        }
    }

    /// The position of the column with the folded text of an attribute.
    private func position(of source: Slot, _ layout: EntityLayout, _ folding: StringFolding) -> Int? {
        if let position = mapping.entity(layout)?.position(ofSlot: source.index, foldedBy: folding) { return position }
        guard folding == [.case, .diacritics], layout.hasDerivedSlots else { return nil }
        let derived = layout.slots.first {
            $0.traits?.derivation == .function(.canonical, attribute: source.name) && $0.type == .string
        }
        return derived?.index
    }
}
