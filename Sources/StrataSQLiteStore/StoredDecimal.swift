import Foundation
import StrataSQL
import StrataSQLite

/// Decimals in the form of Apple's stores: numbers.
///
/// A double holds some 15 digits of one.
enum StoredDecimal {
    /// The decimal in a column: the shortest one that the number stands for, so that 10.11 comes back as such.
    static func read(_ value: Value) -> Decimal? {
        switch value.kind {
        case .null: return nil
        case .integer: return Decimal(value.int64)
        case .real: return Decimal(shortest: value.double)
        case .text, .blob: return Decimal(string: value.string, locale: Locale(identifier: "en_US_POSIX"))
        }
    }

    /// The stored form of a decimal, and whether reading that gives the same decimal.
    static func stored(_ decimal: Decimal) -> (value: SQLBinding, isExact: Bool) {
        guard !decimal.isNaN else { return (.null, false) }
        if let whole = wholeNumber(decimal) { return (.integer(whole), true) }
        guard let double = Double("\(decimal)") else { return (.null, false) }
        return (.double(double), Decimal(shortest: double) == decimal)
    }

    private static func wholeNumber(_ decimal: Decimal) -> Int64? {
        guard decimal.exponent >= 0 || decimal.isZero else { return nil }
        return Int64("\(decimal)")
    }
}
