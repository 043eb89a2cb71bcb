extension Decimal {
    // Doubles represent all of these exactly.
    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20,
        1e21, 1e22,
    ]

    /// The double that is nearest to the number, as for a literal.
    ///
    /// Foundation's own conversion is wrong in the last bit for one number in three (3.03, for instance). Then a
    /// decimal would not be equal to the value that a store has made of it.
    package var nearestDouble: Double {
        if isNaN { return .nan }
        let digits = NSDecimalNumber(decimal: significand).doubleValue
        // One operation on two exact operands gives the nearest result. An operand from 2⁵³ on may have been rounded.
        if digits.magnitude < 0x1p53, exponent.magnitude < Self.powersOfTen.count {
            let power = Self.powersOfTen[Int(exponent.magnitude)]
            let value = exponent < 0 ? digits / power : digits * power
            return sign == .minus ? -value : value
        }
        return Double("\(self)") ?? .nan
    }
}
