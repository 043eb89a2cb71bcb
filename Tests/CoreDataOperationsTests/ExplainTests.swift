import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Explaining a fetch")
struct ExplainTests {
    private static func indexed() -> NSManagedObjectModel {
        let model = GuideModel.make()
        if let venue = model.entitiesByName["Venue"], let price = venue.propertiesByName["price"] {
            let element = NSFetchIndexElementDescription(property: price, collationType: .binary)
            venue.indexes = [NSFetchIndexDescription(name: "byPrice", elements: [element])]
        }
        return model
    }

    @Test func `the statement, the plan and the index are shown, and no value`() throws {
        let stack = try Stack(.sqlite, model: Self.indexed())
        let context = stack.context()
        try context.performAndWait { () throws in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "price == %d", 4711)
            let answer = try require(try context.explain(request).answers.first)
            let statement = try require(answer.statement)
            expect(statement.hasPrefix("SELECT") && statement.contains("?") && !statement.contains("4711"))
            expect(answer.indexes.count == 1 && answer.indexes.first?.contains("byPrice") == true)
            expect(answer.scannedTables.isEmpty && !answer.plan.isEmpty)
        }
    }

    @Test func `a table that is read from one end to the other is named`() throws {
        let stack = try Stack(.sqlite)
        let context = stack.context()
        try context.performAndWait { () throws in
            let request = citiesRequest()
            request.predicate = NSPredicate(format: "name == %@", "Faro")
            let explanation = try context.explain(request)
            expectEqual(explanation.answers.first?.scannedTables, ["ZCITY"])
            expectEqual(explanation.answers.first?.indexes, [])
            expect(explanation.description.contains("Scanned: ZCITY"))
            request.resultType = .countResultType
            try expectEqual(context.explain(request).answers.first?.statement?.hasPrefix("SELECT COUNT(*)"), true)
        }
    }

    @Test func `the first object with a value is found without a sort, and a scan for it is named`() throws {
        let model = Self.indexed()
        let venue = try require(model.entitiesByName["Venue"])
        venue.indexes[0].elements += [
            NSFetchIndexElementDescription(
                property: try require(venue.propertiesByName["distance"]),
                collationType: .binary
            )
        ]
        let context = try Stack(.sqlite, model: model).context()
        try context.performAndWait { () throws in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.fetchLimit = 1
            request.predicate = NSPredicate(format: "price == 1")
            let found = try require(context.explain(request).answers.first)
            expect(!found.plan.contains { $0.contains("TEMP B-TREE") }, "\(found.plan)")
            expect(found.indexes.count == 1 && found.scannedTables.isEmpty, "\(found.plan)")
            request.predicate = NSPredicate(format: "seats == 1")
            try expectEqual(context.explain(request).answers.first?.scannedTables, ["ZVENUE"])
        }
    }

    @Test func `a store in memory has no statement, and dictionaries are refused`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait { () throws in
            try expectEqual(context.explain(citiesRequest()).answers.map(\.statement), [nil])
            let request = NSFetchRequest<NSDictionary>(entityName: "City")
            request.resultType = .dictionaryResultType
            expectThrows(CocoaError.self) { try context.explain(request) }
        }
    }
}
