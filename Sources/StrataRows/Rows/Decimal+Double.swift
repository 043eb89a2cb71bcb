import Foundation

extension Decimal {
    /// The shortest decimal that a double stands for, so that 10.11 comes back as such; `nil` for NaN and infinity.
    ///
    /// Doubles hold some 15 digits, and Apple's stores keep decimals as doubles.
    package init?(shortest double: Double) {
        guard double.isFinite else { return nil }
        if let whole = Int64(exactly: double) {
            self = Decimal(whole)
        } else if let decimal = Decimal(string: "\(double)", locale: Locale(identifier: "en_US_POSIX")) {
            self = decimal
        } else {
            return nil
        }
    }
}
