import CoreData
import Expectations
import TestSupport
import Testing

/// Each conversion of the format language, with typical numbers and with extreme ones.
@Suite("Arguments of formats")
struct FormatArgumentTests {
    private func constant(_ format: String, _ value: Any) throws -> NSNumber {
        let predicate = try NSPredicate(validating: "a == \(format)", arguments: [value])
        let comparison = try require(predicate as? NSComparisonPredicate)
        return try require(comparison.rightExpression.constantValue as? NSNumber)
    }

    private static let integers = [
        "%d", "%D", "%i", "%u", "%U", "%x", "%X", "%o", "%O", "%c", "%C", "%hi", "%hu", "%hd", "%ld", "%lu", "%lld",
        "%llu", "%qi", "%qu", "%qx", "%qX", "%zd",
    ]

    @Test(arguments: integers)
    func `a conversion for integers takes any, and the whole part of other numbers`(_ format: String) throws {
        try expectEqual(constant(format, 42), 42)
        try expectEqual(constant(format, UInt8(200)), 200)
        try expectEqual(constant(format, Int64.min).int64Value, .min)
        try expectEqual(constant(format, Int64.max).int64Value, .max)
        try expectEqual(constant(format, 3.75), 3)
        try expectEqual(constant(format, -3.75), -3)
        try expectEqual(constant(format, true), 1)
        try expectEqual(constant(format, NSNumber(value: 7)), 7)
    }

    @Test(arguments: integers)
    func `what 64 bits do not hold stays the number it is`(_ format: String) throws {
        try expectEqual(constant(format, UInt64.max).doubleValue, Double(UInt64.max))
        try expectEqual(constant(format, NSNumber(value: UInt64.max)).doubleValue, Double(UInt64.max))
        try expectEqual(constant(format, 1e30), 1e30)
        try expectEqual(constant(format, -1e30), -1e30)
    }

    @Test(arguments: integers)
    func `what is no integer is an error that says what was expected`(_ format: String) {
        for value in ["1", Date(), Double.nan, Double.infinity, NSNull()] as [Any] {
            let error = expectThrows(PredicateFormatError.self) { try constant(format, value) }
            expectEqual(error?.expected.contains("an integer"), true)
        }
    }

    @Test(arguments: ["%e", "%E", "%f", "%F", "%g", "%G", "%lf", "%Lf", "%a"])
    func `a conversion for numbers takes integers and doubles`(_ format: String) throws {
        try expectEqual(constant(format, 0.125), 0.125)
        try expectEqual(constant(format, 3), 3)
        try expectEqual(constant(format, Float(0.5)), 0.5)
        try expectEqual(constant(format, UInt64.max).doubleValue, Double(UInt64.max))
        expectThrows(PredicateFormatError.self) { try constant(format, "1") }
    }

    @Test(arguments: ["%e", "%f", "%lf"])
    func `a conversion for numbers takes what is not a number, which counts as nil`(_ format: String) throws {
        for value in [Double.nan, Float.nan, NSNumber(value: Double.nan)] as [Any] {
            expect(try constant(format, value).doubleValue.isNaN)
            let predicate = NSPredicate(format: "score == \(format)", argumentArray: [value])
            expect(predicate.evaluate(with: ["score": NSNull()]))
            expect(!predicate.evaluate(with: ["score": 1]))
        }
    }

    @Test(arguments: ["%s", "%S"])
    func `a conversion for text takes text`(_ format: String) throws {
        let predicate = try NSPredicate(validating: "a == \(format)", arguments: ["x' OR 1 == 1"])
        expectEqual((predicate as? NSComparisonPredicate)?.rightExpression.constantValue as? String, "x' OR 1 == 1")
        expectThrows(PredicateFormatError.self) {
            try NSPredicate(validating: "a == \(format)", arguments: [1])
        }
    }

    @Test(arguments: ["%", "%y", "%l", "%5d", "%.2f", "%-d", "%*d", "%p", "%n"])
    func `other conversions are errors`(_ format: String) {
        expectThrows(PredicateFormatError.self) {
            try NSPredicate(validating: "a == \(format)", arguments: [1])
        }
    }
}
