import StrataPredicates
import StrataRows

/// What a predicate says about single values of the objects that it holds for: "`name` is one of these".
///
/// Every object for which the predicate holds fulfils the question too. Not every object that fulfils it is one for which
/// the predicate holds, so the predicate is evaluated afterwards.
indirect enum ValueQuestion {
    /// The attribute has one of the values with these codes.
    case isOne(of: [Int], PredicateAttribute)
    case all([ValueQuestion])
    case any([ValueQuestion])

    /// Makes the question; `nil` if the predicate says nothing of this kind.
    ///
    /// - Parameters:
    ///   - condition: The condition of a predicate for `layout`.
    ///   - layout: The entity.
    ///   - most: The most values that are worth looking up.
    init?(_ condition: ResolvedCondition, _ layout: EntityLayout, most: Int) {
        switch condition {
        case .and(let operands):
            var parts: [ValueQuestion] = []
            for operand in operands where parts.count < Self.mostParts {
                if let part = ValueQuestion(operand, layout, most: most) { parts.append(part) }
            }
            guard let first = parts.first else { return nil }
            self = parts.count == 1 ? first : .all(parts)
        case .or(let operands):
            guard operands.count <= most else { return nil }
            var parts: [ValueQuestion] = []
            for operand in operands {
                guard let part = ValueQuestion(operand, layout, most: most) else { return nil }
                parts.append(part)
            }
            self = .any(parts)
        case .comparison(let comparison):
            guard comparison.operator == .equal, comparison.folding.isEmpty else { return nil }
            let (left, right) = (comparison.left, comparison.right)
            guard let value = right.constantValue ?? left.constantValue,
                let attribute = Self.attribute(right.constantValue == nil ? right : left, layout)
            else { return nil }
            self = .isOne(of: [Self.code(of: value)], attribute)
        case .isNull(let operand):
            guard let attribute = Self.attribute(operand, layout) else { return nil }
            self = .isOne(of: [Self.code(of: .null)], attribute)
        case .member(let operand, let set):
            guard set.folding.isEmpty, set.members.count < most, let attribute = Self.attribute(operand, layout)
            else { return nil }
            let values = set.containsNull ? set.members + [.null] : set.members
            self = .isOne(of: values.map(Self.code), attribute)
        case .constant, .not, .between, .string, .exists: return nil
        }
    }

    /// The attributes of one conjunction that are looked up.
    private static let mostParts = 3

    /// The attribute of the fetched object itself, if its values can be looked up.
    private static func attribute(_ expression: ResolvedExpression, _ layout: EntityLayout) -> PredicateAttribute? {
        guard case .attribute(let path, let attribute) = expression, path.variable == 0, path.steps.isEmpty,
            attribute.slot >= 0
        else { return nil }
        switch layout.slots[attribute.slot].kind {
        case .int, .double, .string, .uuid, .decimal: return attribute
        // Data may lie in a file of its own.
        case .data, .reference: return nil
        }
    }

    /// A number that equal values share.
    ///
    /// Other values may share it too. It is never one of the numbers by which `PendingValues` marks objects without a
    /// known value.
    static func code(of value: PredicateValue) -> Int {
        var hasher = Hasher()
        value.hash(into: &hasher)
        let code = hasher.finalize()
        return PendingValues.isMark(code) ? PendingValues.firstCode : code
    }

    /// The attributes that are looked up, each once.
    var attributes: [PredicateAttribute] {
        switch self {
        case .isOne(_, let attribute): return [attribute]
        case .all(let parts), .any(let parts):
            var all: [PredicateAttribute] = []
            for attribute in parts.flatMap(\.attributes) where !all.contains(where: { $0.slot == attribute.slot }) {
                all.append(attribute)
            }
            return all
        }
    }
}
