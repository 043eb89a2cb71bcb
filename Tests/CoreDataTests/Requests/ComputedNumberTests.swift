import CoreData
import Expectations
import TestSupport
import Testing

/// Numbers that a store computes, at the edges of the types that they become.
@Suite("Computed numbers")
struct ComputedNumberTests {
    /// No row could be read that had such a number.
    @Test(arguments: StoreKind.allCases, ["1e300", "-1e300", "1e308 * 10"])
    func `a batch refuses a number that no decimal can hold, and changes nothing`(_ kind: StoreKind, _ factor: String)
        throws
    {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, _ in (venue.distance, venue.rating) = (1, Decimal(string: "2.5"))
        }
        let context = stack.context()
        func update(_ text: String) throws {
            let request = NSBatchUpdateRequest(entityName: "Venue")
            request.propertiesToUpdate = ["rating": NSExpression(format: text)]
            try context.performAndWait { _ = try context.execute(request) }
        }
        let error = expectThrows(CocoaError.self) { try update("distance * \(factor)") }
        expectEqual(error?.code, .persistentStoreOperation)
        expectEqual(
            error?.localizedDescription,
            "A batch update of Venue is refused: a value that was worked out does not fit into its attribute."
        )
        try expectEqual(stack.read(id, Venue.self) { $0.rating }, Decimal(string: "2.5"))
        for (text, value) in [("distance * 1e100", "1e100"), ("rating * 2", "2e100"), ("distance - 3.25", "-2.25")] {
            try update(text)
            try expectEqual(stack.read(id, Venue.self) { $0.rating }, Decimal(string: value), "\(text)")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `functions of several integers have fractions where these have some`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        _ = try stack.store(Venue.self) { venue, _ in (venue.price, venue.seats) = (1, 2) }
        let wanted = ["median": 1.5, "stddev": 0.5, "average": 1.5, "sum": 3, "max": 2, "min": 1, "count": 2]
        let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = wanted.keys.sorted().map { name in
            let description = NSExpressionDescription()
            (description.name, description.expression) = (name, NSExpression(format: "\(name)({price, seats})"))
            return description
        }
        let context = stack.context()
        try context.performAndWait {
            let found = try require(context.fetch(request).first)
            for (name, value) in wanted { expectEqual((found[name] as? NSNumber)?.doubleValue, value, "\(name)") }
        }
        let filtered = NSFetchRequest<Venue>(entityName: "Venue")
        filtered.predicate = NSPredicate(format: "median({price, seats}) == 1.5 AND stddev({price, seats}) < 1")
        try expectEqual(context.performAndWait { try context.count(for: filtered) }, 1)
    }
}
