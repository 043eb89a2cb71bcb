import Expectations
import StrataPredicates
import Testing

@Suite("Validators")
struct ValidatingTests {
    private struct Refused: Error, Equatable {
        let what: String
    }

    /// Writes down what it sees, and refuses one thing.
    private final class Recorder: NSPredicateValidating {
        var seen: [String] = []
        var refused: String?

        private func note(_ text: String) throws {
            seen.append(text)
            if text == refused { throw Refused(what: text) }
        }

        func visit(_ predicate: NSPredicate) throws { try note(predicate.formatText) }
        func visit(_ expression: NSExpression) throws { try note(expression.description) }
        func visit(_ operatorType: NSComparisonPredicate.Operator) throws { try note("\(operatorType)") }
    }

    @Test func `every part is shown, from the outside in`() throws {
        let recorder = Recorder()

        try NSPredicate(format: "NOT a == 1 AND b IN {2, c}").allowEvaluation(validator: recorder)

        expect(
            recorder.seen == [
                "NOT a == 1 AND b IN {2, c}", "NOT a == 1", "a == 1", "a", "equalTo", "1", "b IN {2, c}", "b", "in",
                "{2, c}", "2", "c",
            ]
        )
    }

    @Test(arguments: [
        "secret == 1", "a == secret + 1", "SUBQUERY(a, $x, secret == 1).@count > 0", "TERNARY(secret == 1, 1, 2) == 1",
        "a IN {1, {secret}}", "FUNCTION(secret, 'length') == 1", "a IN (b UNION secret)", "NOT (a == 1 OR secret == 2)",
        "CAST(secret, 'NSString') == 'a'", "a[secret] == 1", "$x.y == secret",
    ])
    func `a forbidden key is found wherever it stands`(_ text: String) throws {
        let recorder = Recorder()
        recorder.refused = "secret"
        let predicate = try NSPredicate(validating: text)

        #expect(throws: Refused(what: "secret")) { try predicate.allowEvaluation(validator: recorder) }
        #expect(throws: Refused(what: "secret")) {
            try NSExpression(
                forConditional: predicate,
                trueExpression: NSExpression(forConstantValue: 1),
                falseExpression: NSExpression(forConstantValue: 2)
            ).allowEvaluation(validator: recorder)
        }
    }

    @Test func `a validator that implements nothing accepts everything`() throws {
        final class Anything: NSPredicateValidating {}

        try NSPredicate(format: "a == 1").allowEvaluation(validator: Anything())
        try NSExpression(format: "a + 1").allowEvaluation(validator: Anything())
    }
}
