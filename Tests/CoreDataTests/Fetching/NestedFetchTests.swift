import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@Suite("Fetches inside of predicates")
struct NestedFetchTests {
    private func fetch(_ request: Any, in context: Any, countOnly: Bool = false) -> NSExpression {
        NSFetchRequestExpression.expression(
            forFetch: NSExpression(forConstantValue: request),
            context: NSExpression(forConstantValue: context),
            countOnly: countOnly
        )
    }

    private func cities(_ format: String) -> NSFetchRequest<City> {
        let request = NSFetchRequest<City>(entityName: "City")
        request.predicate = NSPredicate(format: format)
        return request
    }

    @Test func `the expression gives its parts`() throws {
        let context = NSManagedObjectContext(.privateQueue)
        let request = NSFetchRequest<City>(entityName: "City")
        let expression = try require(fetch(request, in: context, countOnly: true) as? NSFetchRequestExpression)

        expect(expression.expressionType == NSFetchRequestExpressionType && expression.expressionType.rawValue == 50)
        expect(expression.requestExpression.constantValue as? NSFetchRequest<City> === request)
        expect(expression.contextExpression.constantValue as? NSManagedObjectContext === context)
        expect(expression.isCountOnlyRequest && expression.description.hasPrefix("FETCH("))
    }

    @Test(arguments: StoreKind.allCases)
    func `the format language has it as FETCH`(_ kind: StoreKind) throws {
        try VenueGuide(kind).read { context throws in
            let format = "FETCH(%@, $context, YES)"
            let parsed = NSExpression(format: format, cities("population > 100000"))
            let count = try require(parsed as? NSFetchRequestExpression)
            expect(count.isCountOnlyRequest)
            expectEqual(count.expressionValue(with: nil, context: ["context": context]) as? Int, 2)

            let list = "FETCH(FUNCTION($manager, \"request:\", \"City\"), $manager.sourceContext, NO)"
            let printed = try NSExpression(validating: list).description
            expectEqual(printed, list)
            // The expression also works inside a predicate.
            let predicate = NSPredicate(format: "name IN FETCH($request, $context, NO)")
            expectEqual(predicate.formatText, "name IN FETCH($request, $context, NO)")
        }
    }

    @Test(arguments: ["FETCH(a, b)", "FETCH(a, b, 'c')", "FETCH(a, b, NO, 1)"])
    func `other arguments of FETCH are an error of the text`(_ format: String) {
        expectThrows(PredicateFormatError.self) { try NSExpression(validating: format) }
    }

    @Test(arguments: StoreKind.allCases)
    func `its value is what the fetch gives, or the number of it`(_ kind: StoreKind) throws {
        try VenueGuide(kind).read { context throws in
            let request = cities("population > 100000")

            let objects = fetch(request, in: context).expressionValue(with: nil, context: nil) as? [City]
            let count = fetch(request, in: context, countOnly: true).expressionValue(with: nil, context: nil)

            expectEqual(Set(objects?.map(\.name) ?? []), ["Porto", "Lisbon"])
            expectEqual(count as? Int, 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `request and context may be variables`(_ kind: StoreKind) throws {
        try VenueGuide(kind).read { context throws in
            let expression = NSFetchRequestExpression.expression(
                forFetch: NSExpression(forVariable: "request"),
                context: NSExpression(forVariable: "context"),
                countOnly: true
            )
            let variables: NSMutableDictionary = ["request": cities("population > 0"), "context": context]

            expectEqual(expression.expressionValue(with: nil, context: variables) as? Int, 3)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `objects of a fetch can be what a predicate looks for`(_ kind: StoreKind) throws {
        try VenueGuide(kind).read { context throws in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.sortDescriptors = [.by("distance")]
            request.predicate = NSPredicate(format: "city IN %@", fetch(cities("name BEGINSWITH 'L'"), in: context))
            try expectEqual(context.fetch(request).map(\.distance), [0.5, 1, 4])
            // In memory the same predicate gives the same result.
            let all = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
            expectEqual(all.filter { request.predicate?.evaluate(with: $0) == true }.count, 3)

            request.predicate = NSPredicate(format: "NOT city IN %@", fetch(cities("name == 'Nowhere'"), in: context))
            try expectEqual(context.fetch(request).count, 6)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `IDs, values and numbers of a fetch can be compared with`(_ kind: StoreKind) throws {
        try VenueGuide(kind).read { context throws in
            let ids = NSFetchRequest<NSManagedObjectID>(entityName: "City")
            ids.resultType = .managedObjectIDResultType
            ids.predicate = NSPredicate(format: "name == 'Porto'")
            let prices = NSFetchRequest<NSDictionary>(entityName: "Venue")
            prices.resultType = .dictionaryResultType
            prices.propertiesToFetch = [aggregate("max", "max:", "price")]
            let request = NSFetchRequest<Venue>(entityName: "Venue")

            request.predicate = NSPredicate(format: "city IN %@", fetch(ids, in: context))
            try expectEqual(context.count(for: request), 2)
            request.predicate = NSPredicate(format: "price IN %@", fetch(prices, in: context))
            try expectEqual(context.fetch(request).map(\.name), ["Cais"])
            request.predicate = NSPredicate(
                format: "tags.@count < %@ AND price == 10",
                fetch(cities("population > 500000"), in: context, countOnly: true)
            )
            try expectEqual(context.fetch(request).map(\.name), ["Doca"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what is wrong with the inner fetch is the error of the outer one`(_ kind: StoreKind) throws {
        try VenueGuide(kind).read { context throws in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            let wrong: [(NSExpression, String)] = [
                (fetch(cities("mayor == 1"), in: context), "mayor"),
                (fetch("no request", in: context), "requestExpression"),
                (fetch(cities("population > 1"), in: "no context"), "contextExpression"),
            ]
            for (expression, word) in wrong {
                request.predicate = NSPredicate(format: "city IN %@", expression)
                let error = expectThrows(CocoaError.self) { try context.fetch(request) }
                expectEqual(error?.localizedDescription.contains(word), true)
            }
        }
    }

    @Test func `an evaluation that fails is nil, the coordinator learns why, and the block fails`() throws {
        let guide = try VenueGuide(.memory)
        let reports = Locked<[String]>([])
        guide.stack.coordinator.unreportableErrorHandler = { error, _ in
            reports.withLock { $0.append(error.localizedDescription) }
        }
        let error = expectThrows(CocoaError.self) {
            try guide.read { context throws in
                expect(fetch(cities("mayor == 1"), in: context).expressionValue(with: nil, context: nil) == nil)
            }
        }
        expectEqual(error?.code, .persistentStoreOperation)
        expect(reports.withLock { $0.count == 1 && $0[0].contains("mayor") })
    }

    // MARK: - execute()

    @Test(arguments: StoreKind.allCases)
    func `execute gives results of the request's type in the scope of a context`(_ kind: StoreKind) throws {
        try VenueGuide(kind).read { context throws in
            let objects = cities("name == 'Porto'")
            let ids = NSFetchRequest<NSManagedObjectID>(entityName: "City")
            ids.resultType = .managedObjectIDResultType
            ids.predicate = objects.predicate
            let count = NSFetchRequest<NSNumber>(entityName: "City")
            count.resultType = .countResultType
            let values = NSFetchRequest<NSDictionary>(entityName: "City")
            values.resultType = .dictionaryResultType
            values.predicate = objects.predicate

            let porto = try require(try objects.execute().first)
            let id: NSManagedObjectID? = try ids.execute().first
            let number: NSNumber? = try count.execute().first
            let value: NSDictionary? = try values.execute().first
            expect(porto.managedObjectContext === context && porto.name == "Porto")
            expect(id == porto.objectID && number == 3)
            expect(value?["name"] as? String == "Porto" && value?["population"] as? Int == 230_000)
        }
    }

    @Test func `execute outside of any context's scope throws`() throws {
        let error = expectThrows(CocoaError.self) { try NSFetchRequest<City>(entityName: "City").execute() }
        expectEqual(error?.code, .persistentStoreOperation)
    }

    @Test func `a request for any results gives each kind`() throws {
        try VenueGuide(.memory).read { context throws in
            let request = NSFetchRequest<NSFetchRequestResult>(entityName: "City")
            try expectEqual(context.fetch(request).count, 3)
            request.resultType = .dictionaryResultType
            try expect(context.fetch(request).allSatisfy { $0 is NSDictionary })
            request.resultType = .countResultType
            try expectEqual(context.fetch(request).first as? NSNumber, 3)
            request.resultType = .managedObjectIDResultType
            try expect(context.fetch(request).allSatisfy { $0 is NSManagedObjectID })
        }
    }
}
