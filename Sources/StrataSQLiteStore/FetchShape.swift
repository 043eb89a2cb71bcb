import StrataLocks
import StrataPredicates
import StrataRows
import StrataSQL
import StrataSQLite

/// The words on which the text of a simple fetch's statement depends, and the values to bind.
///
/// A fetch is simple if its predicate joins comparisons by AND, and if it is ordered by attributes of the fetched entity.
/// Each comparison is of such an attribute with a value of its type, or of the fetched object with another one. The texts
/// of two such fetches differ only if these words differ. Other texts may depend on the values, and have no shape.
struct FetchShape: Hashable {
    private var words: [Int]
    /// The values in the order in which the text has them.
    ///
    /// They are no part of the shape.
    private(set) var bindings: [SQLBinding] = []
    /// Whether the text finds one row without a window, see ``FetchPlan/takesFirstOfEqual``.
    let takesFirstOfEqual: Bool

    /// Makes the shape of a fetch of whole rows; `nil` for a fetch that is not simple.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - isDeep: Whether the columns of sub-entities are read too.
    init?(_ plan: FetchPlan, isDeep: Bool) {
        guard plan.wantedSlots == nil, let predicate = plan.predicate, predicate.variableCount == 1 else { return nil }
        takesFirstOfEqual = plan.takesFirstOfEqual
        words = []
        words.reserveCapacity(16)
        words.append(plan.layout.number)
        words.append(
            (isDeep ? 1 : 0) | (plan.coversHierarchy ? 2 : 0) | (plan.isWindowed ? 4 : 0) | (takesFirstOfEqual ? 8 : 0)
        )
        if !plan.coversHierarchy {
            words.append(plan.entityNumbers.count)
            words.append(contentsOf: plan.entityNumbers)
        }
        guard add(predicate.condition, plan) else { return nil }
        for term in plan.sort?.terms ?? [] {
            guard case .attribute(let path, let attribute) = term.expression, path.variable == 0, path.steps.isEmpty,
                attribute.slot >= 0, term.comparison == .natural
            else { return nil }
            words.append(Self.term | (term.ascending ? 1 : 0))
            words.append(attribute.slot)
        }
    }

    static func == (left: FetchShape, right: FetchShape) -> Bool { left.words == right.words }

    func hash(into hasher: inout Hasher) { hasher.combine(words) }

    // The marks are below all other words, so that no list of words can be read in two ways.
    private static let conjunction = -0x100
    private static let comparison = -0x200
    private static let identity = -0x300
    private static let isNull = -0x400
    private static let term = -0x500

    private mutating func add(_ condition: ResolvedCondition, _ plan: FetchPlan) -> Bool {
        switch condition {
        case .and(let operands):
            words.append(Self.conjunction)
            words.append(operands.count)
            for operand in operands {
                if case .and = operand { return false }
                guard add(operand, plan) else { return false }
            }
            return true
        case .isNull(.attribute(let path, let attribute)):
            guard path.variable == 0, path.steps.isEmpty, attribute.slot >= 0 else { return false }
            words.append(Self.isNull)
            words.append(attribute.slot)
            return true
        case .comparison(let comparison): return add(comparison, plan)
        default: return false
        }
    }

    private mutating func add(_ comparison: ResolvedComparison, _ plan: FetchPlan) -> Bool {
        guard case .constant(let value, _) = comparison.right else { return false }
        switch comparison.left {
        case .attribute(let path, let attribute):
            guard path.variable == 0, path.steps.isEmpty, attribute.slot >= 0 else { return false }
            switch (attribute.type, value) {
            case (.integer, .int), (.bool, .int), (.double, .double), (.date, .date), (.string, .string),
                (.uri, .string):
                break
            default: return false
            }
            guard !value.isNull else { return false }
            words.append(Self.comparison | comparison.operator.place << 3 | Int(comparison.folding.rawValue))
            words.append(attribute.slot)
            bindings.append(SQLBinding(value))
            return true
        case .object(let path):
            // The object itself is compared by its primary key.
            guard path.variable == 0, path.steps.isEmpty, case .reference(let identity) = value,
                comparison.operator == .equal
            else { return false }
            words.append(Self.identity)
            let isHere =
                identity.store == plan.storeNumber && identity.entity == plan.layout.rootNumber && identity.key > 0
            bindings.append(isHere ? .integer(identity.key) : .null)
            return true
        default: return false
        }
    }
}

extension ResolvedComparison.Operator {
    fileprivate var place: Int {
        switch self {
        case .equal: 0
        case .less: 1
        case .lessOrEqual: 2
        case .greater: 3
        case .greaterOrEqual: 4
        }
    }
}

extension FetchPlan {
    /// Whether the plan is for the first, in the order of insertion, of the rows in which an attribute has a certain value.
    ///
    /// Several rows may have it. SQLite would read all of them, and sort them by their keys. So the smallest key is
    /// found first, for which an index of the attribute is enough, and then one row is read. Without an index both ways
    /// end at the first row that matches.
    var takesFirstOfEqual: Bool {
        guard limit == 1, offset <= 0, sort == nil, let predicate, predicate.variableCount == 1 else { return false }
        switch predicate.condition {
        case .comparison(let comparison): return comparison.isOfOwnAttribute && comparison.operator == .equal
        case .and(let operands):
            var hasEqual = false
            for operand in operands {
                guard case .comparison(let comparison) = operand, comparison.isOfOwnAttribute else { return false }
                if comparison.operator == .equal { hasEqual = true }
            }
            return hasEqual
        default: return false
        }
    }
}

extension ResolvedComparison {
    /// Whether an attribute of the fetched object itself is compared with a value.
    fileprivate var isOfOwnAttribute: Bool {
        guard case .attribute(let path, let attribute) = left, path.variable == 0, path.steps.isEmpty,
            attribute.slot >= 0, case .constant = right
        else { return false }
        return true
    }
}

/// The statements of simple fetches by shape, for all connections of a store.
///
/// Any thread may use it.
final class FetchTexts: Sendable {
    private let known = Locked<[FetchShape: SQL]>([:])
    /// The most statements.
    private static let most = 500

    /// The statement of a fetch; `nil` if none was kept for its shape.
    func text(of shape: FetchShape) -> SQL? { known.withLock { $0[shape] } }

    /// Keeps the statement that was compiled for a fetch.
    ///
    /// - Parameters:
    ///   - statement: The statement, with the values that the compiler binds.
    ///   - shape: The shape of the fetch, with the values that are bound instead if its text is used again.
    func keep(_ statement: FetchStatement, for shape: FetchShape) {
        // If the compiler has other values, then its text may depend on them.
        guard statement.bindings == shape.bindings else { return }
        known.withLock { known in
            if known.count >= Self.most { known.removeAll() }
            known[shape] = statement.sql
        }
    }
}
