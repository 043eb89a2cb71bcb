import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations

@Suite("Statements about fetching and pending changes")
struct FetchStatementTests {
    /// Runs `body` with four stored venues.
    ///
    /// The context has changed, deleted and added some without saving.
    private func withPending(_ kind: StoreKind, _ body: (NSManagedObjectContext, [NSManagedObjectID]) throws -> Void)
        throws
    {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(4)
        let context = stack.context()
        try context.performAndWait {
            // The venue 000 no longer matches, 001 is deleted, and "new" comes first.
            try context.get(ids[0], Venue.self).price = 100
            context.delete(try context.get(ids[1], Venue.self))
            let added = Venue(context: context)
            added.name = "0"
            added.price = 1
            try body(context, ids)
        }
    }

    private func idRequest(_ format: String) -> NSFetchRequest<NSManagedObjectID> {
        let request = NSFetchRequest<NSManagedObjectID>(entityName: "Venue")
        request.resultType = .managedObjectIDResultType
        request.predicate = NSPredicate(format: format)
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        return request
    }

    @Test(arguments: StoreKind.allCases)
    func `objects, IDs and counts know of unsaved insertions, deletions and edits (CS-137)`(_ kind: StoreKind) throws {
        try withPending(kind) { context, _ in
            let request = venues("price < 50")
            expect(request.includesPendingChanges)
            let found = try context.fetch(request)
            expectEqual(found.map(\.name), ["0", "002", "003"])
            try expectEqual(context.fetch(idRequest("price < 50")), found.map(\.objectID))
            try expectEqual(context.count(for: request), 3)
            try expectEqual(context.count(for: idRequest("price >= 50")), 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `without pending changes membership is what is saved, and objects show what is in memory (CS-138)`(
        _ kind: StoreKind
    ) throws {
        try withPending(kind) { context, ids in
            let request = venues("price < 50")
            request.includesPendingChanges = false
            let found = try context.fetch(request)
            expectEqual(found.map(\.objectID), ids)
            expectEqual(found.map(\.price), [100, 1, 2, 3])
            expect(found[1].isDeleted)
            try expectEqual(context.count(for: request), 4)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `dictionaries show what is stored, whatever is pending (CS-139)`(_ kind: StoreKind) throws {
        try withPending(kind) { context, _ in
            let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["name", "price"]
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            for pending in [true, false] {
                request.includesPendingChanges = pending
                let found = try context.fetch(request)
                expectEqual(found.map { $0["name"] as? String }, ["000", "001", "002", "003"])
                expectEqual(found.map { $0["price"] as? Int16 }, [0, 1, 2, 3])
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the window is cut from the merged and sorted answer, of IDs too (CS-140, 141)`(_ kind: StoreKind) throws {
        try withPending(kind) { context, _ in
            let all = try context.fetch(venues("price < 50"))
            for (offset, limit) in [(0, 2), (1, 1), (1, 5), (2, 0), (3, 1)] {
                let request = venues("price < 50")
                let ids = idRequest("price < 50")
                (request.fetchOffset, request.fetchLimit) = (offset, limit)
                (ids.fetchOffset, ids.fetchLimit) = (offset, limit)
                let expected = Array(all.dropFirst(offset).prefix(limit == 0 ? 9 : limit))
                try expectEqual(context.fetch(request), expected)
                try expectEqual(context.fetch(ids), expected.map(\.objectID))
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a count is one number, with pending changes counted unless they are left out (CS-142)`(_ kind: StoreKind)
        throws
    {
        try withPending(kind) { context, _ throws in
            let request = NSFetchRequest<NSNumber>(entityName: "Venue")
            request.resultType = .countResultType
            request.predicate = NSPredicate(format: "price < 50")
            try expectEqual(context.fetch(request), [3])
            request.includesPendingChanges = false
            try expectEqual(context.fetch(request), [4])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `sub-entities count by default, stored and unsaved alike (CS-143)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        _ = try stack.store(Bar.self) { bar, _ in bar.name = "stored bar" }
        _ = try stack.store(Venue.self) { venue, _ in venue.name = "stored venue" }
        let context = stack.context()
        try context.performAndWait { () throws in
            Bar(context: context).name = "new bar"
            Venue(context: context).name = "new venue"
            let request = venues()
            expect(request.includesSubentities)
            try expectEqual(context.fetch(request).map(\.name), ["new bar", "new venue", "stored bar", "stored venue"])
            request.includesSubentities = false
            try expectEqual(context.fetch(request).map(\.name), ["new venue", "stored venue"])
            try expectEqual(context.count(for: request), 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `prefetching fills rows and unsaved objects alike, and replaces no pending edit (CS-144)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(3)
        stack.coolDown()
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let changed: Venue = try context.get(ids[0])
            let city = try require(changed.city)
            city.name = "mine"
            let added = Venue(context: context)
            added.name = "new"
            added.city = try require((try context.existingObject(with: ids[1]) as? Venue)?.city)
            let request = venues()
            request.relationshipKeyPathsForPrefetching = ["city.venues"]
            let found = try context.fetch(request)
            let log = try QueryLog(stack)
            expectEqual(found.map { $0.city?.name }, ["mine", "City 1", "City 2", "City 1"])
            expectEqual(found[3].city?.venues, [found[1], added])
            expect(log.saw(0))
            expect(city.isUpdated)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a to-many in propertiesToFetch, groups of objects, and having without groups are refused (CS-145)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(1)
        let context = stack.context()
        context.performAndWait {
            let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["tags"]
            expect(message { _ = try context.fetch(request) }.contains("tags"))
            request.propertiesToFetch = ["price"]
            request.havingPredicate = NSPredicate(format: "price > 1")
            expect(message { _ = try context.fetch(request) }.contains("propertiesToGroupBy"))
            let objects = venues()
            objects.propertiesToGroupBy = ["price"]
            expect(message { _ = try context.fetch(objects) }.contains("dictionaryResultType"))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `with a batch size all objects are there, and rows come batch by batch as they are touched (CS-146)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(30)
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.fetchBatchSize = 10
            let found = try context.fetch(request)
            expect(found.map(\.objectID) == ids && log.saw(1))
            expect(found[25].name == "025" && log.saw(1))
            expect(found[20...].allSatisfy { $0.name != nil } && log.saw(0))
            expect(found[..<20].allSatisfy { $0.isFault })
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `an object is found in its batch whether the batches are in the order of the keys or not`(
        _ kind: StoreKind,
        _ isInOrder: Bool
    ) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(33)
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.predicate = NSPredicate(format: "name > %@", "002")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: isInOrder)]
            request.fetchBatchSize = 10
            let found = try context.fetch(request)
            expectEqual(found.map(\.objectID), isInOrder ? ids.suffix(30) : ids.suffix(30).reversed())
            expect(log.saw(1))
            for (first, touched) in [(20, 29), (0, 0), (10, 14)] {
                expect(found[touched].name != nil && log.saw(1))
                expect(found[first..<first + 10].allSatisfy { $0.name != nil } && log.saw(0))
            }
            // This one is in no batch.
            let other = try context.object(Venue.self, ids[1])
            expect(other.name == "001" && log.saw(1))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `affectedStores restricts a fetch to those stores, and nil means all (CS-147)`(_ kind: StoreKind) throws {
        let parts = try TwoStores(kind)
        let context = parts.context()
        try context.performAndWait {
            for (title, store) in [("a", parts.first), ("b", parts.second)] {
                let label = parts.insert("Label", ["title": title], context)
                context.assign(label, to: store)
            }
            try context.save()
            let request = NSFetchRequest<NSManagedObject>(entityName: "Label")
            request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
            func titles() throws -> [String?] {
                try context.fetch(request).map { $0.value(forKey: "title") as? String }
            }
            expectEqual(request.affectedStores, nil)
            try expectEqual(titles(), ["a", "b"])
            request.affectedStores = [parts.second]
            try expectEqual(titles(), ["b"])
            try expectEqual(context.count(for: request), 1)
            // An unsaved object belongs to the store that it is assigned to.
            context.assign(parts.insert("Label", ["title": "c"], context), to: parts.first)
            try expectEqual(titles(), ["b"])
            request.affectedStores = [parts.first]
            try expectEqual(titles(), ["a", "c"])
        }
    }
}
