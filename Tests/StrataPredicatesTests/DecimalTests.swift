import Expectations
import StrataPredicates
import Testing

@Suite("Decimals as doubles")
struct DecimalTests {
    @Test func `a decimal becomes what the same literal of a double is`() throws {
        var texts = [
            "0", "-0.1", "3.03", "10.11", "1e100", "123456789012345678901234567890", "9007199254740993", "-1e-30",
            "90071992547409.93", "-9007199254740.993",
        ]
        for whole in stride(from: -997, to: 997, by: 7) {
            for part in 0..<100 { texts.append("\(whole).\(part < 10 ? "0" : "")\(part)") }
        }
        for text in texts {
            let decimal = try require(Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")))
            expectEqual(decimal.nearestDouble, Double(text), "\(text)")
        }
        expect(Decimal.nan.nearestDouble.isNaN)
    }

    @Test func `a decimal in a predicate equals the number`() {
        expect(NSPredicate(format: "%@ == 3.03", Decimal(string: "3.03")).evaluate(with: nil))
        expect(NSPredicate(format: "%@ == 3.03", NSDecimalNumber(string: "3.03")).evaluate(with: nil))
    }
}
