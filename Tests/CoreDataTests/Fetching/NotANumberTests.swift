import CoreData
import Expectations
import TestSupport
import Testing

/// Databases have no number that is none: such a value is nil there, so it is nil everywhere.
@Suite("Values that are not numbers")
struct NotANumberTests {
    @Test(
        arguments: StoreKind.allCases,
        [
            "%K == nil", "NOT (%K > %@)", "NOT (%K <= %@)", "%K == %K", "%K IN {nil}", "NOT (%K BETWEEN {%@, %@})",
            "%K == %@ OR %K == nil",
        ]
    )
    func `are nil to predicates, before and after they are saved`(_ kind: StoreKind, _ format: String) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let venue = context.insert("Venue", ["name": "Bar"])
            venue.setValue(Date(timeIntervalSinceReferenceDate: .nan), forKey: "createdAt")
            venue.setValue(Double.nan, forKey: "distance")
            let date = Date(timeIntervalSinceReferenceDate: 0)
            let requests = [("createdAt", date as Any), ("distance", 0.0)].map { key, value in
                let request = NSFetchRequest<NSManagedObject>(entityName: "Venue")
                let parts = format.split(separator: "%", omittingEmptySubsequences: false).dropFirst()
                let arguments = parts.map { $0.hasPrefix("K") ? key as Any : value }
                request.predicate = NSPredicate(format: format, argumentArray: arguments)
                return request
            }
            for request in requests {
                let predicate = try require(request.predicate)
                expect(predicate.evaluate(with: venue), "\(predicate) of the object")
                try expectEqual(context.count(for: request), 1, "\(predicate) in the context")
            }
            try context.save()
            for request in requests { try expectEqual(context.count(for: request), 1, "\(request) in the store") }
        }
    }
}
