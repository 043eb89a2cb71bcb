import Expectations
import StrataPredicates
import Testing

/// Predicates and expressions that differ in one part each.
@Suite("Equality of predicates, in pairs")
struct EqualityTableTests {
    // nonisolated(unsafe): both are only read.
    private nonisolated(unsafe) static let expressions: [NSExpression] = {
        func parsed(_ text: String) -> NSExpression { NSExpression(format: text) }
        let texts = [
            "a", "b", "a.b", "$a", "$b", "SELF", "ANYKEY", "1", "2", "1.5", "'1'", "nil", "{1}", "{1, 2}", "{2, 1}",
            "{}", "{a}", "{a, b}", "{a, 1}",
            "a + b", "b + a", "a - b", "a + 1", "sqrt(a)", "sqrt(b)", "abs(a)", "sum(a)", "sum({a, b})", "now()",
            "random()", "a[0]", "a[1]", "a[FIRST]",
            "a UNION b", "a MINUS b", "a INTERSECT b", "b UNION a", "a UNION c", "SUBQUERY(a, $x, $x == 1)",
            "SUBQUERY(b, $x, $x == 1)",
            "SUBQUERY(a, $y, $y == 1)", "SUBQUERY(a, $x, $x == 2)", "TERNARY(a == 1, 2, 3)", "TERNARY(a == 1, 2, 4)",
            "TERNARY(a == 1, 3, 3)",
            "TERNARY(a == 2, 2, 3)", "FUNCTION(a, 'x')", "FUNCTION(b, 'x')", "FUNCTION(a, 'y')", "FUNCTION(a, 'x', 1)",
            "FUNCTION(a, 'x', 2)",
            "FUNCTION(a, 'x', 1, 2)", "$a.b", "$a.c", "CAST(a, 'NSDate')", "CAST(a, 'NSString')", "CAST(1, 'NSDate')",
            "FETCH(a, b, YES)",
            "FETCH(a, b, NO)", "FETCH(c, b, YES)", "FETCH(a, c, YES)",
        ]
        return texts.map(parsed) + [
            NSExpression(forConstantValue: Set([1, 2])), NSExpression(forConstantValue: Set([1, 3])),
            NSExpression(forConstantValue: Data([1])),
            NSExpression(forConstantValue: ["k": 1]), NSExpression(forConstantValue: ["k": 2]),
            NSExpression(forConstantValue: [[1], [2]]),
            NSExpression(forConstantValue: [[1], [3]]),
            NSExpression(block: { _, _, _ in 1 }, arguments: [NSExpression(forKeyPath: "a")]),
            NSExpression(block: { _, _, _ in 1 }, arguments: []),
        ]
    }()

    private nonisolated(unsafe) static let predicates: [NSPredicate] = {
        let texts = [
            "a == 1", "a != 1", "a < 1", "a <= 1", "a > 1", "a >= 1", "a == 2", "b == 1", "ANY a == 1", "ALL a == 1",
            "a ==[c] 1", "a ==[d] 1", "a ==[cd] 1",
            "a ==[n] 1", "a ==[l] 1", "a LIKE 'x'", "a MATCHES 'x'", "a BEGINSWITH 'x'", "a ENDSWITH 'x'",
            "a CONTAINS 'x'", "a IN {1}", "a BETWEEN {1, 2}",
            "TRUEPREDICATE", "FALSEPREDICATE", "NOT a == 1", "NOT (NOT a == 1)", "a == 1 AND b == 2",
            "a == 1 OR b == 2", "b == 2 AND a == 1",
            "a == 1 AND b == 2 AND c == 3", "a == 1 AND b == 3", "a == 1 AND (b == 2 OR c == 3)",
            "NOT (a == 1 AND b == 2)", "NOT (a == 1 OR b == 2)",
        ]
        func custom(_ selector: Selector) -> NSPredicate {
            NSComparisonPredicate(
                leftExpression: NSExpression(forKeyPath: "a"),
                rightExpression: NSExpression(forConstantValue: "x"),
                customSelector: selector
            )
        }
        return texts.map { NSPredicate(format: $0) } + [
            custom("hasPrefix:"), custom("hasSuffix:"), NSPredicate { _, _ in true }, NSPredicate { _, _ in true },
            NSCompoundPredicate(andPredicateWithSubpredicates: []),
            NSCompoundPredicate(orPredicateWithSubpredicates: []),
        ]
    }()

    private func hash(_ predicate: NSPredicate) -> Int {
        var hasher = Hasher()
        hashPredicate(predicate, into: &hasher)
        return hasher.finalize()
    }

    @Test func `no two of them are equal, and each equals what its text says`() throws {
        // An empty AND is the constant true, and an empty OR false.
        let constants = [Set([22, Self.predicates.count - 2]), Set([23, Self.predicates.count - 1])]
        for (index, predicate) in Self.predicates.enumerated() {
            for (other, predicate2) in Self.predicates.enumerated() {
                let isSame = index == other || constants.contains([index, other])
                if predicatesAreEqual(predicate, predicate2) != isSame {
                    expect(false, "\(predicate.formatText) and \(predicate2.formatText)")
                }
            }
            guard let parsed = try? NSPredicate(validating: predicate.formatText), !predicate.formatText.contains("has")
            else { continue }
            expect(predicatesAreEqual(parsed, predicate), "\(predicate.formatText)")
            expectEqual(hash(parsed), hash(predicate))
            expectEqual(parsed.formatText, predicate.formatText)
        }
        for (index, expression) in Self.expressions.enumerated() {
            for (other, expression2) in Self.expressions.enumerated()
            where expressionsAreEqual(expression, expression2) != (index == other) {
                expect(false, "\(expression) and \(expression2)")
            }
            // A collection in a collection is an aggregate of aggregates once it is text.
            guard expression.expressionType != .block, !"\(expression)".hasPrefix("{{"),
                let parsed = try? NSExpression(validating: "\(expression)")
            else { continue }
            let isUnordered = isUnordered(expression.expressionType == .constantValue ? expression.constantValue : nil)
            expectEqual(expressionsAreEqual(parsed, expression), !isUnordered, "\(expression)")
            if !isUnordered { expectEqual(parsed.hash, expression.hash, "\(expression)") }
        }
        // Hashes need not differ, but most do.
        expect(Set(Self.predicates.map(hash)).count > 30)
        expect(Set(Self.expressions.map(\.hash)).count > 45)
        expect(NSExpression(forConstantValue: [1, 2]) == NSExpression(format: "{1, 2}"))
        expectEqual(NSExpression(forConstantValue: [1, 2]).hash, NSExpression(format: "{1, 2}").hash)
        expect(NSExpression(forConstantValue: 1.0) == NSExpression(format: "1"))
        expect(NSExpression(forKeyPath: "a") != NSObject())
    }

    /// What code sees of an expression, and the shape for logs.
    @Test func `the parts of expressions, and predicates without their values`() throws {
        let shapes = Self.predicates.prefix(34).map(\.shape)
        let others = [
            "a == $x AND b IN {1, 2, c}", "a == CAST(1, 'NSDate')", "SUBQUERY(a, $x, $x.b == 'secret').@count > 3",
            "a BETWEEN {1, 2}",
        ]
        .map { NSPredicate(format: $0).shape }
        expectTable(wrapped("shapes", shapes) + wrapped("others", others), Self.shapes)
        final class Collector: NSPredicateValidating {
            var seen: [String] = []
            func visit(_ predicate: NSPredicate) { seen.append("<\(predicate.formatText)>") }
            func visit(_ expression: NSExpression) { seen.append("\(expression)") }
            func visit(_ operatorType: NSComparisonPredicate.Operator) { seen.append("op \(operatorType.rawValue)") }
        }
        let texts = [
            "a + 1 == sqrt(b) AND NOT c IN {1, d}", "SUBQUERY(a, $x, $x.y == 1).@count > TERNARY(b == 2, c, 3)",
            "ANY (a UNION b) == FUNCTION(c, 'x', d)",
        ]
        let visits = try texts.flatMap { text in
            let collector = Collector()
            try NSPredicate(validating: text).allowEvaluation(validator: collector)
            return wrapped(">", collector.seen)
        }
        expectTable(visits, Self.visits)
    }

    @Test func `variables are replaced in every kind of expression`() throws {
        let texts = [
            "$v == 1", "a == $v", "ANY $v == 1", "ALL a ==[cd] $v", "a + $v == 1", "{$v, 1} == a",
            "FUNCTION($v, 'x', $v) == 1", "$v.name == 1",
            "($v UNION a) == b", "(a UNION $v) == b", "SUBQUERY($v, $x, $x == $v).@count == 1",
            "SUBQUERY(a, $v, $v == 1).@count == $v",
            "TERNARY($v == 1, $v, a) == 1", "TERNARY(a == 1, a, $v) == 1", "NOT ($v == 1 OR a == $v)",
            "a BETWEEN {$v, $v}", "a[$v] == 1",
        ]
        let lines = try texts.flatMap { text in
            try [5, NSNull(), [1, 2]].map { (value: Any) in
                try NSPredicate(validating: text).withSubstitutionVariables(["v": value, "x": 9]).formatText
            }
        }
        expectTable(lines, Self.substituted)
        let custom = NSComparisonPredicate(
            leftExpression: NSExpression(forVariable: "v"),
            rightExpression: NSExpression(forKeyPath: "a"),
            customSelector: "hasPrefix:"
        )
        expectEqual(custom.withSubstitutionVariables(["v": "x"]).formatText, "\"x\" hasPrefix: a")
        let block = NSExpression(
            block: { _, arguments, _ in arguments[0] },
            arguments: [NSExpression(forVariable: "v")]
        )
        let comparison = NSComparisonPredicate(
            leftExpression: block,
            rightExpression: block,
            modifier: .direct,
            type: .equalTo
        )
        let both = comparison.withSubstitutionVariables(["v": 3])
        expectEqual(both.leftExpression.expressionValue(with: nil, context: nil) as? Int, 3)
    }
}
