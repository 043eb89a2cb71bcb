import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

// That this compiles is the test: Foundation has a type of that name too.
private typealias NSExpression = CoreData.NSExpression

@Suite("The type NSExpression beside Foundation")
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
}
