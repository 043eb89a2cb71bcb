import CoreData
import Expectations
import TestSupport
import Testing

/// The properties of expressions and comparisons.
@Suite("Accessors of expressions")
struct ExpressionAccessorTests {
    private static func parsed(_ format: String) throws -> NSExpression {
        try NSExpression(validating: format)
    }

    @Test func `each kind of expression has Apple's raw value`() throws {
        let kinds: [(String, UInt)] = [
            ("3", 0), ("SELF", 1), ("$x", 2), ("a.b", 3), ("sqrt(2)", 4), ("FUNCTION(a, 'length')", 4),
            ("a UNION b", 5),
            ("a INTERSECT b", 6), ("a MINUS b", 7), ("SUBQUERY(a, $x, $x.b == 1)", 13), ("{1, a}", 14), ("ANYKEY", 15),
            ("TERNARY(a == 1, 2, 3)", 20),
        ]
        for (text, value) in kinds {
            try expectEqual(Self.parsed(text).expressionType.rawValue, value, "\(text)")
        }
        let block = NSExpression(forBlock: { _, _, _ in 1 }, arguments: nil)
        expectEqual(block.expressionType.rawValue, 19)
        expectEqual(NSFetchRequestExpressionType.rawValue, 50)
    }

    @Test func `accessors give what an expression is made of`() throws {
        try expectEqual(Self.parsed("3").constantValue as? Int, 3)
        try expect(Self.parsed("nil").constantValue == nil)
        try expectEqual(Self.parsed("a.b").keyPath, "a.b")
        try expectEqual(Self.parsed("$x").variable, "x")

        let sum = try Self.parsed("a + 1")
        expectEqual(sum.function, "add:to:")
        expectEqual(sum.arguments?.map(\.description), ["a", "1"])
        let method = try Self.parsed("FUNCTION(a, 'containsString:', 'x')")
        expectEqual(method.function, "containsString:")
        expectEqual(method.operand, NSExpression(forKeyPath: "a"))
        expectEqual(method.arguments?.count, 1)

        let subquery = try Self.parsed("SUBQUERY(a.c, $x, $x.b == 1)")
        expectEqual(subquery.collection as? NSExpression, NSExpression(forKeyPath: "a.c"))
        expectEqual(subquery.variable, "x")
        expectEqual(subquery.predicate, NSPredicate(format: "$x.b == 1"))
        let members = try Self.parsed("{1, a}").collection as? [NSExpression]
        expectEqual(members?.map(\.expressionType), [.constantValue, .keyPath])

        let union = try Self.parsed("a UNION {1}")
        expectEqual(union.left.keyPath, "a")
        expectEqual(union.right.expressionType, .aggregate)
        let choice = try Self.parsed("TERNARY(a == 1, 2, b)")
        expectEqual(choice.predicate, NSPredicate(format: "a == 1"))
        expectEqual(choice.true.constantValue as? Int, 2)
        expectEqual(choice.false.keyPath, "b")
        try expectEqual(Self.parsed("a").arguments, nil)
    }

    @Test func `copies are equal and as good as the original`() throws {
        for text in [
            "3", "a.b", "SELF", "$x", "a + 1", "{1, 2}", "SUBQUERY(a, $x, $x.b == 1)", "TERNARY(a == 1, 2, 3)",
        ] {
            let expression = try Self.parsed(text)
            let copy = try require(expression.copy() as? NSExpression)
            expect(copy == expression && copy.hash == expression.hash)
            expectEqual(copy.description, expression.description)
        }
        for text in ["a == 1", "ANY a.b LIKE[cd] 'x'", "a == 1 AND b == 2", "NOT a == 1"] {
            let predicate = try NSPredicate(validating: text)
            let copy = try require(predicate.copy() as? NSPredicate)
            expect(copy == predicate && copy.hash == predicate.hash)
            expectEqual(copy.formatText, predicate.formatText)
        }
    }

    @Test func `a comparison gives its parts, with Apple's raw values`() throws {
        let operators: [(String, UInt)] = [
            ("a < 1", 0), ("a <= 1", 1), ("a > 1", 2), ("a >= 1", 3), ("a == 1", 4), ("a != 1", 5),
            ("a MATCHES 'x'", 6),
            ("a LIKE 'x'", 7), ("a BEGINSWITH 'x'", 8), ("a ENDSWITH 'x'", 9), ("a IN {1}", 10), ("a CONTAINS 'x'", 99),
            ("a BETWEEN {1, 2}", 100),
        ]
        for (text, value) in operators {
            let comparison = try require(try NSPredicate(validating: text) as? NSComparisonPredicate)
            expectEqual(comparison.predicateOperatorType.rawValue, value, "\(text)")
            expectEqual(comparison.leftExpression.keyPath, "a")
            expectEqual(comparison.comparisonPredicateModifier.rawValue, 0)
            expect(comparison.options == [] && comparison.customSelector == nil)
        }
        let any = try require(try NSPredicate(validating: "ANY a ==[cd] b") as? NSComparisonPredicate)
        expectEqual(any.comparisonPredicateModifier.rawValue, 2)
        expectEqual(any.options.rawValue, 3)
        expectEqual(any.rightExpression.keyPath, "b")
        let all = try require(try NSPredicate(validating: "ALL a ==[n] b") as? NSComparisonPredicate)
        expectEqual(all.comparisonPredicateModifier.rawValue, 1)
        expectEqual(all.options.rawValue, 4)
    }

    @Test func `an accessor of another kind of expression stops the program, and names it`() async {
        func check(_ result: ExitTest.Result?, _ member: String) {
            let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
            expect(text.contains("NSExpression.\(member) is not defined"), "\(text)")
        }
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSExpression(forKeyPath: "a").constantValue
            },
            "constantValue"
        )
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSExpression(forConstantValue: 1).keyPath
            },
            "keyPath"
        )
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSExpression(forConstantValue: 1).collection
            },
            "collection"
        )
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSExpression(forVariable: "x").operand
            },
            "operand"
        )
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSExpression(forVariable: "x").true
            },
            "true"
        )
        check(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = NSExpression(forVariable: "x").predicate
            },
            "predicate"
        )
    }
}
