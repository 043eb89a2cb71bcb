import Expectations
import StrataPredicates
import Testing

/// Input that was made to hurt: it may fail, but soon, with an error, and without taking the process with it.
@Suite("Hostile input")
struct HostileTests {
    // MARK: - Text

    @Test func `a key path of a hundred thousand steps is read in one go`() throws {
        let steps = Array(repeating: "self", count: 100_000).joined(separator: ".")

        let predicate = try NSPredicate(validating: "\(steps) == 3")

        expect(predicate.evaluate(with: 3))
        try expectEqual(NSPredicate(validating: predicate.formatText), predicate)
        expectThrows(PredicateResolutionError.self) {
            try PredicateResolver.resolve(predicate, schema: ToySchema.person)
        }
    }

    @Test func `a key path through ever more collections ends`() throws {
        let loop: NSArray = [[[[[[1]]]]]]
        let path = Array(repeating: "@unionOfObjects.self", count: 5_000).joined(separator: ".")

        try expect(!NSPredicate(validating: "ANY \(path) == 1").evaluate(with: loop))
    }

    @Test(arguments: [
        "{", "(", "a == (", "a IN {", "abs(", "a == -", "NOT ", "!", "a[", "SUBQUERY(a, $x, ", "TERNARY(", "CAST(", "~",
        "FUNCTION(", "a == {{", "1 + (", "a.", "$x.", "a AND (", "a == 1 AND ", "a == 1 OR NOT ", "ANY ", "a ** ", "#",
    ])
    func `ten thousand of anything are an error`(_ piece: String) {
        let text = String(repeating: piece, count: 10_000)

        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: text) }
        expectThrows(PredicateFormatError.self) { try NSExpression(validating: text) }
    }

    @Test func `literals of a megabyte are values like any other`() throws {
        let text = String(repeating: "ä'\\\" OR 1=1 --", count: 80_000)
        let predicate = try NSPredicate(validating: "a == %@ AND NOT a IN {%@, 'x'}", arguments: [text, text + "x"])
        let number = "0." + String(repeating: "3", count: 1_000_000)

        expect(predicate.evaluate(with: ["a": text]))
        try expectEqual(NSPredicate(validating: predicate.formatText), predicate)
        try expect(NSPredicate(validating: "a < \(number)4").evaluate(with: ["a": 0.3]))
        expectThrows(PredicateFormatError.self) {
            try NSPredicate(validating: "a == 0x" + String(repeating: "F", count: 1_000_000))
        }
        let name = String(repeating: "n", count: 1_000_000)
        try expect(!NSPredicate(validating: "\(name) == 1").evaluate(with: ["a": 1]))
    }

    @Test(arguments: [
        "' OR '1' = '1", "1; DROP TABLE ZPERSON", "a\" == \"a", "x') --", "%@", "$x", "NULL", "\\", "\u{0}",
        "TRUEPREDICATE",
    ])
    func `an argument stays a value`(_ value: String) throws {
        let predicate = try NSPredicate(validating: "a == %@", arguments: [value])

        expectEqual((predicate as? NSComparisonPredicate)?.rightExpression, NSExpression(forConstantValue: value))
        expect(predicate.evaluate(with: ["a": value]))
        expect(!predicate.evaluate(with: ["a": "a"]))
        try expectEqual(NSPredicate(validating: predicate.formatText), predicate)
    }

    @Test func `placeholders and arguments have to go together`() {
        let wrong: [(String, [Any?])] = [
            ("a == %@", []), ("a == 1", [1]), ("a == %@", [1, 2]), ("%K == 1", [3]), ("%K == 1", [nil]),
            ("%K == 1", [""]),
            ("%K == 1", ["a..b"]), ("a == %d", ["x"]), ("a == %f", [nil]), ("a == %s", [3]), ("a == %d", [[1]]),
            ("a.%K == 1", [["b"]]), ("a == %", [1]), ("a == %q", [1]), ("a %@ 1", ["=="]), ("%@", ["a == 1"]),
        ]
        for (text, arguments) in wrong {
            #expect(throws: PredicateFormatError.self, "\(text)") {
                try NSPredicate(validating: text, arguments: arguments)
            }
        }
    }

    @Test func `a list of a hundred thousand values is searched once`() throws {
        let values = Array(0..<100_000)
        let predicate = try NSPredicate(validating: "SELF IN %@", arguments: [values])

        expectEqual(values.filter { predicate.evaluate(with: $0 * 2) }.count, 50_000)
    }

    // MARK: - Trees that code made

    /// NOT, over and over, made by the module and by Foundation.
    private func nots(_ depth: Int) -> NSPredicate {
        var predicate: NSPredicate = NSPredicate(format: "a == 1")
        for _ in 0..<depth { predicate = NSCompoundPredicate(notPredicateWithSubpredicate: predicate) }
        return predicate
    }

    private func sum(_ depth: Int) -> NSExpression {
        var expression = NSExpression(forKeyPath: "a")
        let one = NSExpression(forConstantValue: 1)
        for _ in 0..<depth { expression = NSExpression(forFunction: "add:to:", arguments: [expression, one]) }
        return expression
    }

    @Test func `an expression a hundred thousand levels deep is refused, and freed`() throws {
        let (deep, same) = (sum(100_000), sum(100_000))
        let predicate = NSComparisonPredicate(
            leftExpression: deep,
            rightExpression: NSExpression(forAggregate: [same]),
            modifier: .direct,
            type: .in
        )

        expectEqual(deep, same)
        expect(deep != sum(99_999))
        expectEqual(deep.hash, same.hash)
        expect(deep.expressionValue(with: ["a": 1], context: nil) == nil)
        expectEqual(deep.description, "<an expression 100001 levels deep>")
        expect(!predicate.evaluate(with: ["a": 1]))
        expectEqual(predicate.predicateFormat, "<a predicate 100003 levels deep>")
        expectThrows(PredicateResolutionError.self) {
            try PredicateResolver.resolve(predicate, schema: ToySchema.person)
        }
        expectEqual(sum(900).expressionValue(with: ["a": 1], context: nil) as? Int, 901)
    }

    @Test func `sets, arrays and conditions are freed level by level as well`() {
        var expression = NSExpression(forKeyPath: "a")
        let test = NSPredicate(format: "a == 1")
        for level in 0..<100_000 {
            switch level % 4 {
            case 0: expression = NSExpression(forAggregate: [expression])
            case 1: expression = NSExpression(forUnionSet: expression, with: expression)
            case 2:
                expression = NSExpression(forConditional: test, trueExpression: expression, falseExpression: expression)
            default: expression = NSExpression(forFunction: expression, selectorName: "count", arguments: nil)
            }
        }

        expectEqual(expression.depth, 100_001)
        expect(expression.expressionValue(with: nil, context: nil) == nil)
    }

    @Test func `a compound predicate four thousand levels deep is refused`() throws {
        let deep = nots(4_000)
        let parent = NSComparisonPredicate(
            leftExpression: NSExpression(
                forConditional: deep,
                trueExpression: NSExpression(forConstantValue: 1),
                falseExpression: NSExpression(forConstantValue: 2)
            ),
            rightExpression: NSExpression(forConstantValue: 1),
            modifier: .direct,
            type: .equalTo
        )

        expectEqual(TreeDepth.of(deep), 4_002)
        expectEqual(deep.formatText, "<a predicate 4002 levels deep>")
        expect(predicatesAreEqual(deep, nots(4_000)))
        expect(!predicatesAreEqual(deep, nots(4_001)))
        expect(!parent.evaluate(with: ["a": 1]))
        expectThrows(PredicateResolutionError.self) { try PredicateResolver.resolve(deep, schema: ToySchema.person) }
        expectThrows(PredicateResolutionError.self) {
            try PredicateResolver.resolve(parent, schema: ToySchema.person)
        }
    }

    @Test func `junctions of one member are seen through, however many there are`() throws {
        var predicate: NSPredicate = NSPredicate(format: "age == 1")
        for level in 0..<4_000 {
            predicate = NSCompoundPredicate(type: level.isMultiple(of: 2) ? .and : .or, subpredicates: [predicate])
        }

        expect(predicatesAreEqual(predicate, NSPredicate(format: "age == 1")))
        _ = try PredicateResolver.resolve(predicate, schema: ToySchema.person)
    }

    // MARK: - Regular expressions

    @Test(arguments: ["(", "[", "a{2,1}", "*", "(?<", "\\", "(?P<x>", "a**", "[[:foo:]]", "\\p{Nope}", "(?i"])
    func `a broken regular expression is no match, and no constant of a fetch`(_ pattern: String) {
        let predicate = NSPredicate(format: "name MATCHES %@", pattern)

        expect(!predicate.evaluate(with: ["name": "a"]))
        expectThrows(PredicateResolutionError.self) {
            try PredicateResolver.resolve(predicate, schema: ToySchema.person)
        }
    }
}
