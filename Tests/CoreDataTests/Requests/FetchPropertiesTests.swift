import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

/// Each test says what the class reference says of a property.
@Suite("The properties of a fetch request")
struct FetchPropertiesTests {
    // MARK: - fetchLimit and fetchOffset

    @Test(arguments: StoreKind.allCases)
    func `the fetch limit is the maximum number of objects that a request returns, and 0 is no limit`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(10)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            expectEqual(request.fetchLimit, 0)
            try expectEqual(context.fetch(request).count, 10)
            request.fetchLimit = 4
            try expectEqual(context.fetch(request).map(\.name), ["000", "001", "002", "003"])
            try expectEqual(context.count(for: request), 4)
            request.fetchLimit = 40
            try expectEqual(context.fetch(request).count, 10)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch that returns a, b, c, d gives b, c, d with an offset of 1 and nothing with one of 4`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(4)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.fetchOffset = 1
            try expectEqual(context.fetch(request).map(\.name), ["001", "002", "003"])
            request.fetchOffset = 4
            try expect(context.fetch(request).isEmpty)
            request.fetchOffset = 1
            request.fetchLimit = 2
            try expectEqual(context.fetch(request).map(\.name), ["001", "002"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a negative limit, offset or batch size is refused`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        context.performAndWait {
            let changes: [(NSFetchRequest<Venue>) -> Void] = [
                { $0.fetchLimit = -1 }, { $0.fetchOffset = -1 }, { $0.fetchBatchSize = -1 }, { $0.fetchLimit = .min },
            ]
            for change in changes {
                let request = venues()
                change(request)
                expectThrows(CocoaError.self) { try context.fetch(request) }
                expect(message { _ = try context.count(for: request) }.contains("may not be negative"))
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the largest limits and offsets do no harm`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(3)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.fetchLimit = .max
            try expectEqual(context.fetch(request).count, 3)
            request.fetchOffset = .max
            try expect(context.fetch(request).isEmpty && context.count(for: request) == 0)
            Venue(context: context).name = "pending"
            try expect(context.fetch(request).isEmpty && context.count(for: request) == 0)
            request.fetchOffset = 1
            try expectEqual(context.fetch(request).count, 3)
        }
    }

    // MARK: - Entities and stores

    @Test(arguments: StoreKind.allCases)
    func `without subentities the receiver fetches objects of exactly the entity type`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(3)
        _ = try stack.store(Bar.self) { bar, _ in bar.name = "bar" }
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            expect(request.includesSubentities)
            try expectEqual(context.fetch(request).map(\.name), ["000", "001", "002", "bar"])
            try expect(context.fetch(request).last is Bar)
            request.includesSubentities = false
            try expectEqual(context.fetch(request).map(\.name), ["000", "001", "002"])
            Bar(context: context).name = "pending bar"
            try expect(context.fetch(request).count == 3 && context.count(for: request) == 3)
            request.fetchBatchSize = 2
            try expectEqual(context.fetch(request).count, 3)
            try expectEqual(context.batchedResults(for: request).count, 3)
            request.includesSubentities = true
            try expect(context.batchedResults(for: request).last is Bar)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch of an abstract entity returns matching instances of all concrete subentities`(_ kind: StoreKind)
        throws
    {
        let model = GuideModel.make()
        try require(model.entitiesByName["Venue"]).isAbstract = true
        let stack = try Stack(kind, model: model)
        _ = try stack.store(Bar.self) { bar, _ in
            bar.name = "concrete"
            bar.beers = 7
        }
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            let found = try context.fetch(request)
            expect(found.map(\.name) == ["concrete"] && (found.first as? Bar)?.beers == 7)
            request.includesSubentities = false
            try expect(context.fetch(request).isEmpty)
        }
    }

    @Test func `affected stores are the stores that a request searches`() throws {
        let stack = try Stack(.database)
        try stack.storeVenues(2)
        let first = try require(stack.coordinator.persistentStores.first)
        let second = try stack.coordinator.addPersistentStore(
            type: .inMemory,
            configuration: nil,
            at: URL(fileURLWithPath: "/dev/null")
        )
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let stored = Venue(context: context)
            stored.name = "second"
            context.assign(stored, to: second)
            try context.save()
            let pending = Venue(context: context)
            pending.name = "pending in the second"
            context.assign(pending, to: second)

            let request = venues()
            expectEqual(request.affectedStores, nil)
            try expectEqual(context.fetch(request).count, 4)
            request.affectedStores = [first]
            try expectEqual(context.fetch(request).map(\.name), ["000", "001"])
            try expectEqual(context.count(for: request), 2)
            try expectEqual(context.batchedResults(for: request).map(\.name), ["000", "001"])
            request.affectedStores = [second]
            try expectEqual(context.fetch(request), [pending, stored])
            request.affectedStores = []
            try expect(context.fetch(request).isEmpty)
        }
    }

    // MARK: - What is read

    @Test(arguments: StoreKind.allCases)
    func `without property values only identities are fetched, and firing a fault goes to the store a second time`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(3)
        stack.coolDown()
        let log = try QueryLog(stack)
        let store = try require(stack.coordinator.openStores.first)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.includesPropertyValues = false
            let found = try context.fetch(request)
            expect(found.count == 3 && found.allSatisfy { $0.isFault && $0.current == nil })
            expect(store.cache.count == 0 && log.saw(1))
            expectEqual(found.map(\.name), ["000", "001", "002"])
            expect(log.saw(3))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a normal fetch fills the row cache, and firing a fault does not go back to the store`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        try stack.storeVenues(3)
        stack.coolDown()
        let log = try QueryLog(stack)
        let store = try require(stack.coordinator.openStores.first)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            expect(request.includesPropertyValues && request.returnsObjectsAsFaults)
            let found = try context.fetch(request)
            expect(found.allSatisfy { $0.isFault } && store.cache.count == 3)
            expect(found.map(\.name) == ["000", "001", "002"] && log.saw(1))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `objects that are not returned as faults immediately say so`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(3)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.returnsObjectsAsFaults = false
            let found = try context.fetch(request)
            expect(found.count == 3 && found.allSatisfy { !$0.isFault })
            request.fetchBatchSize = 2
            context.reset()
            let batched = try context.fetch(request)
            expect(batched[0].name == "000" && !batched[1].isFault && batched[2].isFault)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a refetch refreshes realised objects only if it should, and keeps unsaved edits`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(3)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            expect(!request.shouldRefreshRefetchedObjects)
            let found = try context.fetch(request)
            expectEqual(found.map(\.price), [0, 1, 2])
            found[1].name = "001 mine"
            for id in ids { try stack.change(id, Venue.self) { venue, _ in venue.price += 10 } }
            try expectEqual(context.fetch(request).map(\.price), [0, 1, 2])

            request.shouldRefreshRefetchedObjects = true
            request.includesPropertyValues = false
            try expectEqual(context.fetch(request), found)
            expect(found.map(\.price) == [10, 11, 12] && found[1].name == "001 mine")
            try context.save()
        }
        try expect(stack.read(ids[1], Venue.self) { $0.name == "001 mine" && $0.price == 11 })
    }

    @Test(arguments: StoreKind.allCases)
    func `a refetch that should refresh objects does so with a batch size too`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(6)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            let found = try context.fetch(request)
            expectEqual(found.map(\.price), [0, 1, 2, 3, 4, 5])
            for id in ids { try stack.change(id, Venue.self) { venue, _ in venue.price += 10 } }
            request.shouldRefreshRefetchedObjects = true
            request.fetchBatchSize = 2
            try expectEqual(context.fetch(request).map(\.price), [10, 11, 12, 13, 14, 15])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `without pending changes a fetch returns only what matches in the store`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(4)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let changed: Venue = try context.get(ids[0])
            changed.price = 100
            context.delete(try context.get(ids[1], Venue.self))
            Venue(context: context).name = "new"
            let request = venues("price < 50")
            expect(request.includesPendingChanges)
            try expectEqual(context.fetch(request).map(\.name), ["002", "003", "new"])
            request.includesPendingChanges = false
            try expectEqual(context.fetch(request).map(\.objectID), ids)
            try expectEqual(context.count(for: request), 4)
        }
    }

    // MARK: - Sorting and predicates

    @Test(arguments: StoreKind.allCases)
    func `sort descriptors are applied in the order in which they appear`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(6)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.sortDescriptors = [
                NSSortDescriptor(key: "city.name", ascending: false), NSSortDescriptor(key: "price", ascending: true),
            ]
            try expectEqual(context.fetch(request).map(\.price), [2, 5, 1, 4, 0, 3])
            request.fetchBatchSize = 2
            try expectEqual(context.batchedResults(for: request).map(\.price), [2, 5, 1, 4, 0, 3])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an empty compound predicate is no predicate`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(3)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            for empty in [
                NSCompoundPredicate(andPredicateWithSubpredicates: []),
                NSCompoundPredicate(orPredicateWithSubpredicates: []),
            ] {
                let request = venues("price > 100")
                try expect(context.fetch(request).isEmpty)
                request.predicate = empty
                expectEqual(request.predicate, nil)
                try expectEqual(context.fetch(request).count, 3)
            }
            let request = venues()
            request.predicate = NSCompoundPredicate(notPredicateWithSubpredicate: NSPredicate(value: true))
            expect(request.predicate != nil)
            try expect(context.fetch(request).isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the count of a fetch with self is 0 if the target object has been deleted`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(3)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let target: Venue = try context.get(ids[1])
            try expectEqual(context.fetch(venues("self == %@", target)), [target])
            try stack.delete(ids[1])
            try expect(context.fetch(venues("self == %@", target)).isEmpty)
            try expect(context.fetch(venues("self == %@", ids[1])).isEmpty)
            try expectEqual(context.fetch(venues("self IN %@", ids)).map(\.name), ["000", "002"])
        }
    }
}
