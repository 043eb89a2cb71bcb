import Foundation
import StrataSQL
import StrataSQLite

/// Decimals as Apple's stores have them: numbers, of which a double holds some 15 digits.
enum StoredDecimal {
    /// The decimal that a column holds: the shortest one that the number stands for, so that 10.11 comes back as such.
    static func read(_ value: Value) -> Decimal? {
        switch value.kind {
        case .null: return nil
        case .integer: return Decimal(value.int64)
        case .real: return Decimal(shortest: value.double)
        case .text, .blob: return Decimal(string: value.string, locale: Locale(identifier: "en_US_POSIX"))
        }
    }

    /// What is stored for a decimal, and whether reading that gives the same decimal.
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
