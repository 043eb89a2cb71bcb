import Foundation
import StrataPredicates
import StrataSQL
import StrataSQLite

/// The orders of texts other than by bytes, as collations of SQLite.
///
/// No index uses one, so that other programs can use the files.
package enum PredicateCollations {
    /// All of them, for each connection of a store.
    package static let all: [Collation] =
        [.case, .diacritics, [.case, .diacritics], .canonical].compactMap(folded)
        + [.localized, .localizedCaseInsensitive, .localizedStandard].compactMap(localized)

    private static func folded(_ folding: StringFolding) -> Collation? {
        Dialect.sqlite.foldingCollation(folding).map { name in
            Collation(name) { left, right in
                let order = left.withMemoryRebound(to: UInt8.self) { left in
                    right.withMemoryRebound(to: UInt8.self) { folding.order(left, $0) }
                }
                return ComparisonResult(order: order)
            }
        }
    }

    private static func localized(_ comparison: SortComparison) -> Collation? {
        Dialect.sqlite.sortCollation(comparison).map { name in
            Collation(name) { left, right in
                comparison.compare(String(decoding: left, as: UTF8.self), String(decoding: right, as: UTF8.self))
            }
        }
    }
}
