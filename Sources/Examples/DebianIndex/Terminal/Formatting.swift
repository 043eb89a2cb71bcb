import Foundation

extension Int {
    /// The number with its digits in groups of three, the same in every locale: `63,440`.
    var grouped: String {
        var digits = String(magnitude)
        var groups: [Substring] = []
        while digits.count > 3 {
            groups.insert(digits.suffix(3), at: 0)
            digits = String(digits.dropLast(3))
        }
        return (self < 0 ? "-" : "") + ([digits[...]] + groups).joined(separator: ",")
    }
}

extension Int64 {
    /// The number as a size: `1.3 GB`, `42 kB`, `512 B`.
    var asByteCount: String {
        var value = Double(self)
        var units = ["B", "kB", "MB", "GB", "TB"][...]
        while value.magnitude >= 999.5, units.count > 1 {
            value /= 1000
            units = units.dropFirst()
        }
        let isExact = units.startIndex == 0 || value.magnitude >= 99.95
        return String(format: isExact ? "%.0f " : "%.1f ", value) + (units.first ?? "")
    }
}
