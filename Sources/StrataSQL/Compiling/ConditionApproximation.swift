import StrataPredicates
import StrataRows

/// A condition that a database can evaluate in place of one that it cannot.
///
/// It holds for all rows for which the other one holds, and perhaps for more. A part that the database cannot evaluate
/// becomes true if that makes the whole condition weaker, and false below a NOT. A pattern becomes a text that each
/// match contains. So a store may let the database search the rows, and has to check only the rows that it returns.
package struct ConditionApproximation {
    /// The condition for the database.
    package let condition: ResolvedCondition
    /// Whether it is the original condition, so that no row has to be checked again.
    package let isExact: Bool

    /// - Parameters:
    ///   - predicate: The original predicate.
    ///   - layout: The entity of variable 0.
    ///   - says: Whether the database can evaluate a condition without operands that are conditions, given the entities
    ///     of the variables.
    package init(
        _ predicate: ResolvedPredicate,
        layout: EntityLayout,
        says: (ResolvedCondition, _ layouts: [EntityLayout?]) -> Bool
    ) {
        var layouts = [EntityLayout?](repeating: nil, count: max(predicate.variableCount, 1))
        layouts[0] = layout
        var isExact = true
        condition = Self.approximation(
            of: predicate.condition,
            over: true,
            among: layouts,
            isExact: &isExact,
            says: says
        )
        self.isExact = isExact
    }

    private static func approximation(
        of condition: ResolvedCondition,
        over: Bool,
        among layouts: [EntityLayout?],
        isExact: inout Bool,
        says: (ResolvedCondition, [EntityLayout?]) -> Bool
    ) -> ResolvedCondition {
        switch condition {
        case .constant: return condition
        case .and(let operands):
            return .all(
                operands.map { approximation(of: $0, over: over, among: layouts, isExact: &isExact, says: says) }
            )
        case .or(let operands):
            return .any(
                operands.map { approximation(of: $0, over: over, among: layouts, isExact: &isExact, says: says) }
            )
        case .not(let operand):
            return approximation(of: operand, over: !over, among: layouts, isExact: &isExact, says: says).negated
        case .exists(var collection, let test):
            var layouts = layouts
            let isKnown = layouts.indices.contains(collection.variable)
            if isKnown { layouts[collection.variable] = collection.relationship.destination as? EntityLayout }
            guard isKnown, says(.exists(collection, .constant(true)), layouts) else { break }
            let test = approximation(of: test, over: over, among: layouts, isExact: &isExact, says: says)
            // There are more members if the whole has to hold for more rows, or fewer if it has to hold for fewer.
            collection.filter = collection.filter.map {
                approximation(of: $0, over: over, among: layouts, isExact: &isExact, says: says)
            }
            if case .constant(false) = test { return .constant(false) }
            return .exists(collection, test)
        case .string(let test):
            if says(condition, layouts) { return condition }
            if over, let weaker = test.weaker, says(.string(weaker), layouts) {
                isExact = false
                return .string(weaker)
            }
        case .isNull, .comparison, .between, .member:
            if says(condition, layouts) { return condition }
        }
        isExact = false
        return .constant(over)
    }
}

extension ResolvedStringTest {
    /// A test for a text that every match of this test contains; `nil` if there is no such text.
    fileprivate var weaker: ResolvedStringTest? {
        guard case .string(let pattern)? = self.pattern.constantValue else { return nil }
        switch test {
        case .endsWith: return looking(for: pattern, as: .contains)
        case .like:
            let fixed = LikePattern(folding.fold(pattern)).fixedText
            // An index finds the beginning of a text.
            if !fixed.prefix.isEmpty { return looking(for: fixed.prefix, as: .beginsWith) }
            return fixed.longest.isEmpty ? nil : looking(for: fixed.longest, as: .contains)
        case .beginsWith, .contains, .matches: return nil
        }
    }

    private func looking(for text: String, as test: StringMatcher.Test) -> ResolvedStringTest {
        ResolvedStringTest(
            text: self.text,
            test: test,
            pattern: .constant(.string(text), .string),
            folding: folding,
            matcher: try? StringMatcher(test, pattern: text, folding: folding)
        )
    }
}
