import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLiteStore

@Suite("The SQL of batches")
struct BatchStatementTests {
    /// The statements that change rows while `body` runs, without those of transactions and looks at pragmas.
    private func statements(_ stack: Stack, _ body: () throws -> Void) throws -> [String] {
        let log = Shared<[String]>([])
        let pool = try require(stack.coordinator.persistentStores.first as? SQLiteStore).openFile().pool
        pool.setTrace { event in log.update { $0.append(event.sql) } }
        try body()
        pool.setTrace(nil)
        return log.current.filter { !["BEGIN", "COMMIT", "ROLLBACK", "PRAGMA"].contains($0.prefix { $0 != " " }) }
    }

    private func tagModel() -> NSManagedObjectModel {
        let tag = GuideModel.entity("Tag", TestSupport.Tag.self)
        tag.properties = [GuideModel.attribute("title", .string)]
        let model = NSManagedObjectModel()
        model.entities = [tag]
        return model
    }

    @Test
    func `an update is one statement, with the IDs too`() throws {
        let stack = try Stack(.sqlite)
        try stack.storeNumberedVenues(100)
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.predicate = NSPredicate(format: "price > 10 AND city == nil")
        request.propertiesToUpdate = ["name": "secret", "price": NSExpression(format: "price + 1")]
        let plain = try statements(stack) { try stack.execute(request) }
        expect(plain.count == 1 && plain[0].hasPrefix("UPDATE ZVENUE AS t0 SET ") && !plain[0].contains("secret"))
        request.resultType = .updatedObjectIDsResultType
        let listing = try statements(stack) { try stack.execute(request) }
        expectEqual(listing, [plain[0] + " RETURNING Z_PK, Z_ENT"])
    }

    @Test
    func `a delete that nothing hangs on is one statement, with the IDs too`() throws {
        let stack = try Stack(.sqlite, model: tagModel())
        try stack.execute(NSBatchInsertRequest(entityName: "Tag", objects: (0..<100).map { ["title": "t\($0)"] }))
        let request = NSBatchDeleteRequest("Tag", "title ENDSWITH '0'")
        let plain = try statements(stack) { try stack.execute(request) }
        expect(plain.count == 1 && plain[0].hasPrefix("DELETE FROM ZTAG AS t0 WHERE "))
        request.resultType = .resultTypeObjectIDs
        let listing = try statements(stack) { try stack.execute(request) }
        expectEqual(listing, [plain[0] + " RETURNING Z_PK, Z_ENT"])
        try expectEqual(stack.count("Tag"), 90)
    }

    @Test
    func `the number of statements of a delete with rules does not grow with the rows`() throws {
        let stack = try Stack(.sqlite)
        var counts: [Int] = []
        for count in [2, 200] {
            try stack.storeNumberedVenues(count) { _, venue, context in venue.photos = [Photo(context: context)] }
            counts.append(try statements(stack) { try stack.execute(NSBatchDeleteRequest("Venue")) }.count)
        }
        // The first time the tables are made; else both take the same.
        expect(counts[0] >= counts[1] && counts[1] < 60)
        try expectEqual(stack.count("Photo"), 0)
    }

    @Test
    func `derived attributes follow a batch, also in contexts that follow`() throws {
        let (city, venue) = (
            GuideModel.entity("City", NSManagedObject.self), GuideModel.entity("Venue", NSManagedObject.self)
        )
        let count = StoreModels.derived("count", .integer64, NSExpression(format: "venues.@count"))
        city.properties = [GuideModel.attribute("name", .string), count]
        venue.properties = [GuideModel.attribute("name", .string)]
        GuideModel.relate(venue, "city", .one(.nullifyDeleteRule), city, "venues", .many(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [city, venue]
        let stack = try Stack(.database, model: model)
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        try context.performAndWait {
            let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
            try context.save()
            func counted() -> Int? { city.value(forKey: "count") as? Int }
            let rows = (0..<3).map { ["name": "v\($0)", "city": city.objectID as Any] }
            try context.execute(NSBatchInsertRequest(entityName: "Venue", objects: rows))
            expectEqual(counted(), 3)
            try context.execute(NSBatchDeleteRequest("Venue", "name == 'v1'"))
            expectEqual(counted(), 2)
            let move = NSBatchUpdateRequest(entityName: "Venue")
            move.propertiesToUpdate = ["city": NSNull()]
            try context.execute(move)
            expectEqual(counted(), 0)
            let derived = NSBatchUpdateRequest(entityName: "City")
            derived.propertiesToUpdate = ["count": 7]
            expectThrows(CocoaError.self) { try context.execute(derived) }
        }
        try expectEqual(stack.problems(), [])
    }
}
