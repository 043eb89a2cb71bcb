import CoreData
import Expectations
import StrataSQLite
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Statements about what is read and written, and what is not")
struct ReadingStatementTests {
    @Test(arguments: StoreKind.allCases)
    func `registeredObject and object(with:) read nothing, whatever the store holds (CS-32, 33)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(2)
        try stack.delete(ids[1])
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        context.performAndWait {
            expectEqual(context.registeredObject(for: ids[0]), nil)
            let (there, gone) = (context.object(with: ids[0]), context.object(with: ids[1]))
            expect(there.isFault && gone.isFault)
            expect(context.registeredObject(for: ids[0]) === there && context.registeredObject(for: ids[1]) === gone)
            expect(log.saw(0))
            // Only realising it shows that there is no such row.
            expect(there.value(forKey: "name") as? String == "000" && !there.isDeleted)
            expect(gone.value(forKey: "name") == nil && gone.isDeleted)
            expect(log.saw(2))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `existingObject reads a row that is not registered once, and a registered one never (CS-34)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(1)
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws in
            let venue = try context.existingObject(with: ids[0])
            expect(!venue.isFault && log.saw(1))
            try expect(context.existingObject(with: ids[0]) === venue)
            expect(log.saw(0))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `realising an object reads its row, and its to-many relationship apart from that (CS-61, 63)`(
        _ kind: StoreKind
    )
        throws
    {
        let stack = try Stack(kind)
        try stack.storeVenues(3)
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws in
            let request = NSFetchRequest<City>(entityName: "City")
            request.includesPropertyValues = false
            let city = try require(try context.fetch(request).first)
            expect(city.isFault && log.saw(1))
            expectEqual(city.name, "City 0")
            expect(!city.isFault && city.hasFault(forRelationshipNamed: "venues") && log.saw(1))
            expectEqual(city.venues.count, 1)
            expect(!city.hasFault(forRelationshipNamed: "venues") && log.saw(1))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a rollback shows the last committed values without a fetch, whatever others have saved (CS-69)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("mine", population: 1)
        let context = stack.context()
        try context.performAndWait { () throws in
            let city = try context.get(id, City.self)
            city.population = 2
            context.delete(city)
            let added = City(context: context)
            try stack.change(id, City.self) { city, _ in city.population = 3 }
            stack.coolDown()
            let log = try QueryLog(stack)
            context.rollback()
            expect(city.population == 1 && !city.isFault && !city.isDeleted)
            expect(added.managedObjectContext == nil && !context.hasChanges)
            expect(log.saw(0))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a refetch changes realised objects only if it should, and keeps unsaved edits (CS-72)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old", population: 1)
        let context = stack.context()
        try context.performAndWait { () throws in
            let city = try context.get(id, City.self)
            city.population = 2
            try stack.change(id, City.self) { city, _ in
                city.name = "new"
                city.population = 3
            }
            let request = NSFetchRequest<City>(entityName: "City")
            expect(!request.shouldRefreshRefetchedObjects)
            try expectEqual(context.fetch(request).map(\.name), ["old"])
            request.shouldRefreshRefetchedObjects = true
            try expectEqual(context.fetch(request), [city])
            expect(city.name == "new" && city.population == 2 && city.isUpdated)
            try context.save()
        }
    }

    @Test func `a save without changes writes nothing (CS-82)`() throws {
        let stack = try Stack(.sqlite)
        let id = try stack.storeCity("Porto", population: 1)
        let observer = try Connection(path: stack.storeURL.path, access: .readOnly)
        func version() throws -> Int64 {
            let statement = try observer.statement("PRAGMA data_version")
            defer { statement.reset() }
            return try statement.step() ? statement.int64(0) : -1
        }
        let context = stack.context()
        try context.performAndWait { () throws in
            let city = try context.get(id, City.self)
            _ = city.name
            let before = try version()
            try context.save()
            // Nor does one of a value that was set back.
            city.population = 2
            city.population = 1
            try context.save()
            try expectEqual(version(), before)
            city.population = 3
            try context.save()
            try expect(version() != before)
        }
    }
}
