/// How a sort descriptor compares two values.
///
/// Nil comes first, and values of different kinds have a fixed order, so that every sort is by a strict weak order.
package enum SortComparison: String, Hashable, Sendable {
    /// Numbers and dates by value, strings by their bytes.
    case natural = "compare:"
    case caseInsensitive = "caseInsensitiveCompare:"
    case localized = "localizedCompare:"
    case localizedCaseInsensitive = "localizedCaseInsensitiveCompare:"
    case localizedStandard = "localizedStandardCompare:"

    /// The comparison that a selector names; `nil` if there is none.
    package init?(_ selector: Selector) {
        self.init(rawValue: selector.description)
    }

    package func compare(_ lhs: PredicateValue, _ rhs: PredicateValue) -> ComparisonResult {
        if case .string(let left) = lhs, case .string(let right) = rhs { return compare(left, right) }
        if let order = lhs.order(rhs, folding: []) { return ComparisonResult(order: order) }
        return ComparisonResult(order: lhs.sortRank - rhs.sortRank)
    }

    /// Compares two strings.
    ///
    /// A store's collation calls this too.
    ///
    /// The localized comparisons follow `Locale.current`.
    package func compare(_ lhs: String, _ rhs: String) -> ComparisonResult {
        switch self {
        case .natural: ComparisonResult(order: StringFolding([]).order(lhs, rhs))
        case .caseInsensitive: ComparisonResult(order: StringFolding.case.order(lhs, rhs))
        case .localized: lhs.localizedCompare(rhs)
        case .localizedCaseInsensitive: lhs.localizedCaseInsensitiveCompare(rhs)
        case .localizedStandard: lhs.localizedStandardCompare(rhs)
        }
    }
}

extension ComparisonResult {
    package init(order: Int) {
        self = order < 0 ? .orderedAscending : (order == 0 ? .orderedSame : .orderedDescending)
    }
}

extension PredicateValue {
    /// The rank of the value's kind, as in SQLite: nil, numbers, text, bytes.
    fileprivate var sortRank: Int {
        if isNull { return 0 }
        return switch self {
        case .null: 0
        case .int, .double: 1
        case .date: 2
        case .string: 3
        case .uuid: 4
        case .data: 5
        case .reference: 6
        case .entity: 7
        case .collection: 8
        }
    }
}
