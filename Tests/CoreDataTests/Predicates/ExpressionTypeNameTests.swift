import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

// That this compiles is the test: Foundation has types of these names too.
private typealias NSExpression = CoreData.NSExpression
private typealias NSComparisonPredicate = CoreData.NSComparisonPredicate

@Suite("The types NSExpression and NSComparisonPredicate beside Foundation")
struct ExpressionTypeNameTests {
    private func paths(_ expressions: [NSExpression]) -> [String] { expressions.map(\.keyPath) }

    @Test
    func `the name of the type means the framework's where a module says so`() {
        let expression: NSExpression = NSExpression(forKeyPath: "city.name")
        expectEqual(paths([expression]), ["city.name"])
        let description = NSExpressionDescription()
        description.expression = expression
        expectEqual(description.expression?.keyPath, "city.name")
    }

    private func modifier(_ predicate: NSPredicate) -> NSComparisonPredicate.Modifier? {
        (predicate as? NSComparisonPredicate)?.comparisonPredicateModifier
    }

    @Test
    func `so does the name of the class of comparisons, also for what a class inherits from`() {
        final class Exactly: NSComparisonPredicate {}
        let exact = Exactly(
            leftExpression: NSExpression(forKeyPath: "name"),
            rightExpression: NSExpression(forConstantValue: "Bar"),
            modifier: .direct,
            type: .equalTo
        )
        expect(exact.evaluate(with: ["name": "Bar"]) && !exact.evaluate(with: ["name": "Baz"]))
        expectEqual(modifier(exact), .direct)
        expectEqual(modifier(NSPredicate(format: "ANY tags.title == 'a'")), .any)
        expectEqual(modifier(NSPredicate(format: "a == 1 OR b == 2")), nil)
    }
}
