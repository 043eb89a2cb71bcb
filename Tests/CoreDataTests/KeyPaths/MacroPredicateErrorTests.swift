import CoreData
import Expectations
import TestSupport
import Testing

@Suite("NSPredicate from #Predicate: what has no counterpart")
struct MacroPredicateErrorTests {
    private func error(_ predicate: Predicate<Venue>) -> String? {
        expectEqual(NSPredicate(predicate) as NSPredicate?, nil)
        do {
            _ = try NSPredicate(translating: predicate)
            return nil
        } catch {
            expect(error is PredicateTranslationError)
            return "\(error)"
        }
    }

    @Test func `a cast to what is no entity`() {
        let message = error(#Predicate { ($0.colour as? NSMutableArray) != nil })
        expectEqual(message?.contains("to NSMutableArray"), true)
        expectEqual(error(#Predicate { $0.colour is NSMutableArray })?.contains("to NSMutableArray"), true)
    }

    @Test func `a dictionary that is too large`() {
        let prices = Dictionary(uniqueKeysWithValues: (0..<200).map { ("\($0)", Int16($0)) })
        expectEqual(error(#Predicate { prices[$0.name!] == 3 })?.contains("200 entries is too large"), true)
    }

    @Test func `a property of a value`() {
        expectEqual(error(#Predicate { $0.createdAt!.timeIntervalSinceReferenceDate > 3 })?.contains("of Date"), true)
        expectEqual(error(#Predicate { $0.name?.first == nil })?.contains("of String"), true)
    }

    @Test func `a property that the model does not have`() {
        expectEqual(error(#Predicate { $0.isInserted })?.contains("has no name in the model"), true)
    }

    @Test func `a constant of an unknown type`() {
        struct Point: Codable, Equatable, Sendable { var x = 0 }
        let point = Point()
        let predicate = Predicate<Venue> {
            PredicateExpressions.build_Equal(
                lhs: PredicateExpressions.build_Conditional(
                    PredicateExpressions.build_KeyPath(root: $0, keyPath: \.favorite),
                    PredicateExpressions.build_Arg(point),
                    PredicateExpressions.build_Arg(point)
                ),
                rhs: PredicateExpressions.build_Arg(point)
            )
        }
        expectEqual(error(predicate)?.contains("Point cannot stand in an NSPredicate"), true)
    }

    @Test func `a collection of the program that is filtered by a value of the object`() {
        let numbers: [Int16] = [1, 2]
        let message = error(#Predicate { venue in numbers.filter { $0 > venue.price }.contains(2) })
        expectEqual(message?.contains("can only be asked for count and isEmpty"), true)
    }

    @Test func `a variable of another predicate`() {
        let stray = PredicateExpressions.Variable<Venue>()
        let predicate = Predicate<Venue> { _ in PredicateExpressions.build_KeyPath(root: stray, keyPath: \.favorite) }
        expectEqual(error(predicate)?.contains("variable of another predicate"), true)
    }

    @Test func `what SQL cannot do fails in the fetch`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.predicate = try NSPredicate(translating: #Predicate<Venue> { $0.photos[0].title == "a" })
        context.performAndWait {
            _ = #expect(throws: (any Error).self) { try context.fetch(request) }
        }
    }
}
