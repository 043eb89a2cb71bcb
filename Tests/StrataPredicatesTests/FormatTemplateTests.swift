import Expectations
import Foundation
import StrataPredicates
import Testing

/// Formats that are used more than once, with other arguments each time.
@Suite("Formats used again")
struct FormatTemplateTests {
    /// Formats, each with several lists of arguments.
    private static var formats: [(String, [[Any?]])] {
        [
            ("name == %@", [["a"], [3], [nil], [NSNull()], [["a", "b"]], [Date(timeIntervalSince1970: 1)]]),
            ("SELF == %@", [["a"], [nil]]),
            ("name ==[cd] %@ && price < %d", [["a", 1], ["b", 2.5], ["c", true]]),
            ("owner.address.city == %@ AND price >= %f AND sold == NO", [["Porto", 1.5], ["Faro", 2]]),
            ("price IN %@", [[[1, 2]], [[]], [["a"]]]),
            ("price BETWEEN %@", [[[1, 2]], [[3, 4]]]),
            ("name BEGINSWITH[c] 'a' AND size == 3.5 AND note == nil", [[], []]),
            ("name LIKE %@", [["a*"], ["b*"]]),
            ("%K == %@", [["name", "a"], ["price", 3]]),
            ("name == %K", [["other"], ["third"]]),
            ("name == other", [[], []]),
            ("NOT name == %@", [["a"], ["b"]]),
            ("ANY tags.title == %@", [["a"], ["b"]]),
            ("name == %@ OR name == %@", [["a", "b"], ["c", "d"]]),
            ("(name == %@) AND price == %d", [["a", 1], ["b", 2]]),
            ("price == -%d", [[1], [2]]),
            ("price == %d + 1", [[1], [2]]),
            ("price == %@.size", [["a"], ["b"]]),
            ("price == 1 + 2 AND name == %@", [["a"], ["b"]]),
            ("#and == %@ AND first == %@", [["a", "b"], ["c", "d"]]),
            ("tags.@count == %d", [[1], [2]]),
            ("name == '%@' AND price == %d", [[1], [2]]),
            ("name == %@ AND price == %@", [["a", NSNumber(value: 1)], [UUID(), Decimal(3)]]),
            ("name == %s AND count == %ld AND size == %i", [["a", 1, 2], ["b", 3, 4]]),
        ]
    }

    @Test func `a format means the same each time it is used`() throws {
        for (format, lists) in Self.formats {
            for _ in 0..<2 {
                for list in lists {
                    let arguments = list.map { $0 ?? NSNull() }
                    // This initialiser parses each text anew.
                    let parsed: NSPredicate = try NSPredicate(validating: format, arguments: arguments)
                    let made: NSPredicate = NSPredicate(format: format, argumentArray: arguments)
                    let comment = "\(format) with \(arguments)"
                    expectEqual(made.formatText, parsed.formatText, "\(comment)")
                    expect(Swift.type(of: made) == Swift.type(of: parsed), "\(comment)")
                    expect(made.isEqual(parsed), "\(comment)")
                }
            }
        }
    }

    @Test func `a predicate of a format keeps its own values`() throws {
        let first: NSPredicate = NSPredicate(format: "keeps == %@ AND own == %d", "a", 1)
        let second: NSPredicate = NSPredicate(format: "keeps == %@ AND own == %d", "b", 2)
        expectEqual(first.formatText, "keeps == \"a\" AND own == 1")
        expectEqual(second.formatText, "keeps == \"b\" AND own == 2")
    }

    @Test func `an expression as an argument stays an expression, however deep`() throws {
        let format = "limit < %@ AND used == YES"
        for text in ["price", "price * 2", "price"] {
            let argument = NSExpression(format: text)
            let made: NSPredicate = NSPredicate(format: format, argumentArray: [argument])
            let parsed: NSPredicate = try NSPredicate(validating: format, arguments: [argument])
            expectEqual(made.formatText, parsed.formatText)
        }
    }

    @Test func `an argument that does not fit is reported after one that did`() async throws {
        await #expect(processExitsWith: .failure) {
            _ = NSPredicate(format: "fits == %d", 1) as NSPredicate
            _ = NSPredicate(format: "fits == %d", 2) as NSPredicate
            _ = NSPredicate(format: "fits == %d", "no number") as NSPredicate
        }
    }
}
