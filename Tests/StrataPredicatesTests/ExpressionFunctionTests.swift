import Expectations
import StrataPredicates
import Testing

/// `FUNCTION(target, "name:", …)` calls functions of the program, besides the methods that expressions know.
@Suite("Functions of the program in expressions")
struct ExpressionFunctionTests {
    private struct Refused: Error {}

    /// An object that offers functions to expressions.
    private final class Rates: ExpressionFunctionTarget {
        let factor: Double
        init(factor: Double) { self.factor = factor }

        func function(named name: String) -> (([Any?]) throws -> Any?)? {
            switch name {
            case "convert:": { arguments in (arguments[0] as? Double).map { $0 * self.factor } }
            case "sum:of:": { arguments in arguments.compactMap { $0 as? Double }.reduce(0, +) }
            case "refuse": { _ in throw Refused() }
            case "uppercaseString": { _ in "mine" }
            case "valueForKeyPath:": { _ in "never" }
            default: nil
            }
        }
    }

    private func context(_ factor: Double = 2) -> NSMutableDictionary {
        ["rates": Rates(factor: factor)]
    }

    @Test func `a target's own function is called with the values of the arguments`() throws {
        let one = try NSExpression(validating: #"FUNCTION($rates, "convert:", price)"#)
        let two = try NSExpression(validating: #"FUNCTION($rates, "sum:of:", price, price + 1)"#)
        let item: [String: Any] = ["price": 2.5]

        expectEqual(one.expressionValue(with: item, context: context()) as? Double, 5)
        expectEqual(one.expressionValue(with: item, context: context(4)) as? Double, 10)
        expectEqual(two.expressionValue(with: item, context: context()) as? Double, 6)
        expect(one.expressionValue(with: ["price": NSNull()], context: context()) == nil)
        let made = NSExpression(
            forFunction: NSExpression(forVariable: "rates"),
            selectorName: "convert:",
            arguments: [NSExpression(forKeyPath: "price")]
        )
        expectEqual(made.expressionValue(with: item, context: context()) as? Double, 5)
        expectEqual(made, one)
    }

    @Test func `a registered function is called on targets of any type, until it is removed`() throws {
        let name = "reversedFor\(#line)"
        let text = "FUNCTION(name, '\(name)') == 'xeR'"
        let dog = ["name": "Rex"]
        #expect(throws: (any Error).self) { try NSPredicate(validating: text).evaluateOrThrow(with: dog) }

        NSExpression.setFunction({ target, _ in (target as? String).map { String($0.reversed()) } }, forName: name)
        expect(NSExpression.functionNames().contains(name))
        try expect(NSPredicate(validating: text).evaluateOrThrow(with: dog))
        try expect(!NSPredicate(validating: text).evaluateOrThrow(with: ["name": "Tom"]))

        NSExpression.setFunction(nil, forName: name)
        expect(!NSExpression.functionNames().contains(name))
        #expect(throws: (any Error).self) { try NSPredicate(validating: text).evaluateOrThrow(with: dog) }
    }

    @Test func `the target's function comes before a registered one, which comes before a method`() throws {
        let (own, registered) = ("convert:", "capitalizedString")
        NSExpression.setFunction({ _, _ in "registered" }, forName: own)
        NSExpression.setFunction({ _, _ in "registered" }, forName: registered)
        defer {
            NSExpression.setFunction(nil, forName: own)
            NSExpression.setFunction(nil, forName: registered)
        }
        func value(_ text: String) throws -> Any? {
            try NSExpression(validating: text).valueOrThrow(with: ["price": 2.5], context: context())
        }

        try expectEqual(value("FUNCTION($rates, 'convert:', price)") as? Double, 5)
        try expectEqual(value("FUNCTION('x', 'convert:', price)") as? String, "registered")
        try expectEqual(value("FUNCTION('x', 'capitalizedString')") as? String, "registered")
        try expectEqual(value("FUNCTION($rates, 'uppercaseString')") as? String, "mine")
        try expectEqual(value("FUNCTION('x', 'uppercaseString')") as? String, "X")
        // A key path is no function.
        try expectEqual(value("$rates.factor") as? Double, 2)
    }

    @Test func `a function on nil is not called, and its value is nil`() throws {
        let name = "countedFor\(#line)"
        NSExpression.setFunction({ _, _ in 1 }, forName: name)
        defer { NSExpression.setFunction(nil, forName: name) }
        let expression = try NSExpression(validating: "FUNCTION(name, '\(name)')")

        try expectEqual(expression.valueOrThrow(with: ["name": "x"]) as? Int, 1)
        try expect(expression.valueOrThrow(with: ["name": NSNull()]) == nil)
    }

    @Test(arguments: [
        "FUNCTION($rates, 'nosuch:', 1) == 1", "FUNCTION($rates, 'nosuch') == nil",
        "FUNCTION($rates, 'convert:') == nil",
        "FUNCTION($rates, 'convert:', 1, 2) == nil", "FUNCTION($rates, 'refuse', 1) == nil",
    ])
    func `an unknown name and a wrong number of arguments are errors`(_ text: String) throws {
        let bindings = ["rates": Rates(factor: 2)]
        let predicate = try NSPredicate(validating: text)

        #expect(throws: (any Error).self) { try predicate.evaluateOrThrow(with: nil, substitutionVariables: bindings) }
        expect(!predicate.evaluate(with: nil, substitutionVariables: bindings))
    }

    @Test func `what a function throws ends the evaluation`() throws {
        let expression = try NSExpression(validating: "FUNCTION($rates, 'refuse')")

        expectThrows(Refused.self) { try expression.valueOrThrow(with: nil, context: context()) }
        expect(expression.expressionValue(with: nil, context: context()) == nil)
        let predicate = try NSPredicate(validating: "FUNCTION($rates, 'refuse') == nil")
        expect(!predicate.evaluate(with: nil, substitutionVariables: ["rates": Rates(factor: 2)]))
    }
}
