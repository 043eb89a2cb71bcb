import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Batches and prefetching in child contexts")
struct BatchesInTreesTests {
    private func child(of parent: NSManagedObjectContext) -> NSManagedObjectContext {
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = parent
        child.userInfo["stack"] = parent.userInfo["stack"]
        return child
    }

    private func request(_ size: Int = 10) -> NSFetchRequest<Venue> {
        let request = venues()
        request.fetchBatchSize = size
        return request
    }

    @Test(arguments: StoreKind.allCases)
    func `a batch is one query, and the parent registers nothing for it`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(45)
        stack.coolDown()
        let log = try QueryLog(stack)
        let parent = stack.context("parent")
        let child = child(of: self.child(of: parent))
        try child.performAndWait { () throws -> Void in
            let results = try child.batchedResults(for: request())
            expect(results.count == 45 && log.saw(1))
            expect(results[20..<30].map(\.name) == (20..<30).map { "0\($0)" } && log.saw(1))
            let found = try child.fetch(request())
            expect(log.saw(1))
            expect(found[3].name == "003" && log.saw(1))
            expect(found[..<30].compactMap(\.name).count == 30 && log.saw(1))
        }
        parent.performAndWait { expect(parent.registeredObjects.isEmpty) }
    }

    @Test(arguments: StoreKind.allCases)
    func `what the parent and the child have not saved counts`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(20)
        let parent = stack.context("parent")
        let child = child(of: parent)
        try parent.performAndWait { () throws -> Void in
            let changed: Venue = try parent.get(ids[2])
            changed.name = "0105"
            Venue(context: parent).name = "0035"
            Venue(context: parent).name = "0155"
            parent.delete(try parent.get(ids[5], Venue.self))
        }
        try child.performAndWait { () throws -> Void in
            let changed: Venue = try child.get(ids[7])
            changed.name = "0115"
            let fresh = try require(try child.fetch(venues("name == '0155'")).first)
            fresh.name = "0156"
            Venue(context: child).name = "zzz"
            child.delete(try child.get(ids[9], Venue.self))
            for limit in [0, 7, 19] {
                let plain = venues()
                plain.fetchLimit = limit
                let expected = try child.fetch(plain)
                let batched = request(4)
                batched.fetchLimit = limit
                let results = try child.batchedResults(for: batched)
                expectEqual(results.map(\.name), expected.map(\.name))
                expect(zip(results, expected).allSatisfy { $0 === $1 })
                try expectEqual(child.fetch(batched), expected)
            }
            let names = try child.batchedResults(for: request(4)).map(\.name)
            expect(names.count == 21 && names.contains("0156") && !names.contains("0155"))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a prefetched relationship is one query, and shows what the parent has changed`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(30)
        stack.coolDown()
        let parent = stack.context("parent")
        let child = child(of: parent)
        try child.performAndWait { () throws -> Void in
            let log = try QueryLog(stack)
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.relationshipKeyPathsForPrefetching = ["venues.city"]
            let cities = try child.fetch(request)
            expect(log.saw(2))
            expectEqual(cities.map(\.venues.count), [10, 10, 10])
            expect(cities.flatMap(\.venues).allSatisfy { $0.name != nil && $0.city != nil } && log.saw(0))
        }
        try parent.performAndWait { () throws -> Void in
            let venue: Venue = try parent.get(ids[0])
            venue.name = "moved"
            venue.city = try require(try parent.get(ids[1], Venue.self).city)
        }
        let second = self.child(of: parent)
        try second.performAndWait { () throws -> Void in
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.relationshipKeyPathsForPrefetching = ["venues"]
            let cities = try second.fetch(request)
            expectEqual(cities.map(\.venues.count), [9, 11, 10])
            expect(cities[1].venues.contains { $0.name == "moved" })
        }
    }
}
