import Foundation
import StrataPredicates
import StrataSQLite

/// The orders of texts beyond that of their bytes, as collations of SQLite.
///
/// No index names one, so that other programs can use the files.
enum PredicateCollations {
    /// The collation for a folding; `nil` for none, which is SQLite's own order.
    static func name(of folding: StringFolding) -> String? {
        // Any other folding makes the two spellings of a letter the same as well.
        switch folding.subtracting(.canonical) {
        case [.case, .diacritics]: "StrataFoldCaseAndDiacritics"
        case .case: "StrataFoldCase"
        case .diacritics: "StrataFoldDiacritics"
        default: folding.contains(.canonical) ? "StrataFoldSpelling" : nil
        }
    }

    /// The collation for a sort; `nil` for SQLite's own order.
    static func name(of comparison: SortComparison) -> String? {
        switch comparison {
        case .natural: nil
        case .caseInsensitive: name(of: .case)
        case .localized: "StrataLocalized"
        case .localizedCaseInsensitive: "StrataLocalizedCaseInsensitive"
        case .localizedStandard: "StrataLocalizedStandard"
        }
    }

    /// All of them, for each connection of a store.
    static let all: [Collation] =
        [.case, .diacritics, [.case, .diacritics], .canonical].compactMap(folded)
        + [.localized, .localizedCaseInsensitive, .localizedStandard].compactMap(localized)

    private static func folded(_ folding: StringFolding) -> Collation? {
        name(of: folding).map { name in
            Collation(name) { left, right in
                let order = left.withMemoryRebound(to: UInt8.self) { left in
                    right.withMemoryRebound(to: UInt8.self) { folding.order(left, $0) }
                }
                return ComparisonResult(order: order)
            }
        }
    }

    private static func localized(_ comparison: SortComparison) -> Collation? {
        name(of: comparison).map { name in
            Collation(name) { left, right in
                comparison.compare(String(decoding: left, as: UTF8.self), String(decoding: right, as: UTF8.self))
            }
        }
    }
}
