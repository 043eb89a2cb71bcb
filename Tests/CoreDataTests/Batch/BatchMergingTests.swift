import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataBinaryStore
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Contexts and batches")
struct BatchMergingTests {
    private func update(_ values: [AnyHashable: Any], _ predicate: String? = nil) -> NSBatchUpdateRequest {
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.propertiesToUpdate = values
        request.predicate = predicate.map { NSPredicate(format: $0) }
        return request
    }

    @Test(arguments: StoreKind.allCases)
    func `contexts that follow merge a batch as one change, the one that runs it at once`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeNumberedVenues(3)
        let (own, other, still) = (stack.context("own"), stack.context("other"), stack.context("still"))
        for context in [own, other] { context.automaticallyMergesChangesFromParent = true }
        let venues = try [own, other, still].map { context in
            try context.performAndWait {
                UncheckedSendable(
                    try ids.map { id in
                        let venue = try context.get(id, Venue.self)
                        expect(venue.price < 3)
                        return venue
                    }
                )
            }
        }
        let log = NotificationLog([.NSManagedObjectContextDidMergeChangesObjectIDs], of: other)
        try own.performAndWait {
            venues[0].value[0].name = "mine"
            try own.execute(update(["price": 7, "name": "theirs"]))
            expectEqual(venues[0].value.map(\.price), [7, 7, 7])
            // Unsaved changes keep precedence.
            expectEqual(venues[0].value.map(\.name), ["mine", "theirs", "theirs"])
        }
        other.performAndWait { expectEqual(venues[1].value.map(\.price), [7, 7, 7]) }
        still.performAndWait { expectEqual(venues[2].value.map(\.price), [0, 1, 2]) }
        expectEqual(log.entries.count, 1)
        expectEqual(log.entries.first?.ids(NSUpdatedObjectIDsKey), Set(ids))
        try own.performAndWait {
            own.rollback()
            try own.execute(NSBatchDeleteRequest("Venue", "name == 'theirs'"))
            expect(venues[0].value.allSatisfy { $0.isDeleted || $0.managedObjectContext == nil })
            expect(!own.hasChanges)
        }
        let left = try other.performAndWait { try other.all(Venue.self).count }
        expectEqual(left, 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `relationships that are loaded follow insertions, changes and deletions`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let city = try stack.storeCity()
        let tag = try stack.store(TestSupport.Tag.self) { tag, _ in tag.title = "tag" }
        try stack.storeNumberedVenues(3) { number, venue, context in
            venue.city = context.object(with: city) as? City
            if number < 2, let tag = context.object(with: tag) as? TestSupport.Tag { venue.tags = [tag] }
        }
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        try context.performAndWait {
            let (city, tag) = (try context.get(city, City.self), try context.get(tag, TestSupport.Tag.self))
            expect(city.venues.count == 3 && tag.venues.count == 2)
            let objects = [["name": "new", "city": city.objectID as Any]]
            try context.execute(NSBatchInsertRequest(entityName: "Venue", objects: objects))
            expectEqual(city.venues.count, 4)
            try context.execute(NSBatchDeleteRequest("Venue", "price == 1"))
            expect(city.venues.count == 3 && tag.venues.count == 1)
            try context.execute(update(["city": NSNull()], "name == 'new'"))
            expectEqual(city.venues.count, 2)
            try context.execute(update(["city": city], "name == 'new'"))
            expectEqual(city.venues.count, 3)
            try context.execute(NSBatchDeleteRequest("Venue"))
            expect(city.venues.isEmpty && tag.venues.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `merging a result's IDs refreshes loaded objects, and marks deleted ones (CS-168)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let ids = try stack.storeNumberedVenues(2)
        let context = stack.context()
        try context.performAndWait {
            let venues = try ids.map { try context.get($0, Venue.self) }
            expectEqual(venues.map(\.price), [0, 1])
            let request = update(["price": 5])
            request.resultType = .updatedObjectIDsResultType
            let updated = (try context.execute(request) as? NSBatchUpdateResult)?.result as? [NSManagedObjectID] ?? []
            expectEqual(venues.map(\.price), [0, 1])
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSUpdatedObjectsKey: updated], into: [context])
            expectEqual(venues.map(\.price), [5, 5])
            let deletion = NSBatchDeleteRequest("Venue", "name == 'v0'")
            deletion.resultType = .resultTypeObjectIDs
            let deleted = (try context.execute(deletion) as? NSBatchDeleteResult)?.result as? [NSManagedObjectID] ?? []
            expect(!venues[0].isDeleted)
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSDeletedObjectsKey: deleted], into: [context])
            expectEqual(venues.map { $0.managedObjectContext == nil || $0.isDeleted }, [true, false])
            try expectEqual(context.all(Venue.self), [venues[1]])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `faults never show rows from before a batch`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeNumberedVenues(200)[7]
        let warm = stack.context("warm")
        _ = try warm.performAndWait { try warm.all(Venue.self).map(\.price) }
        try stack.execute(update(["price": 77]))
        let context = stack.context()
        try context.performAndWait {
            expectEqual((context.object(with: id) as? Venue)?.price, 77)
            try context.execute(NSBatchDeleteRequest("Venue", "name == 'v7'"))
        }
        let last = stack.context()
        let error = last.performAndWait { expectThrows(CocoaError.self) { try last.existingObject(with: id) } }
        expectEqual(error?.code, .managedObjectReferentialIntegrity)
    }

    @Test(arguments: StoreKind.allCases)
    func `controllers of fetched results and live results move`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeNumberedVenues(3)
        let context = stack.context("list")
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        request.predicate = NSPredicate(format: "price < 10")
        var live = context.results(for: request).makeAsyncIterator()
        try await expectEqual(live.next()?.objectIDs.count, 3)
        try await context.perform {
            context.automaticallyMergesChangesFromParent = true
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.predicate = NSPredicate(format: "price < 10")
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            // Results follow changes while the controller has a delegate.
            let listener = Listener()
            controller.delegate = listener
            try controller.performFetch()
            func names() -> [String] { controller.fetchedObjects?.compactMap(\.name) ?? [] }
            expectEqual(names(), ["v0", "v1", "v2"])
            try context.execute(NSBatchInsertRequest(entityName: "Venue", objects: [["name": "a"], ["name": "z"]]))
            expectEqual(names(), ["a", "v0", "v1", "v2", "z"])
            let change = NSBatchUpdateRequest(entityName: "Venue")
            change.predicate = NSPredicate(format: "name == 'v1'")
            change.propertiesToUpdate = ["price": 50]
            try context.execute(change)
            expectEqual(names(), ["a", "v0", "v2", "z"])
            try context.execute(NSBatchDeleteRequest("Venue", "name == 'v0'"))
            expectEqual(names(), ["a", "v2", "z"])
            withExtendedLifetime(listener) {}
        }
        // The commits in between may arrive together.
        try await expect(live.next() != nil)
        let last = try await context.perform { try context.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
        expectEqual(last, 4)
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's batch goes to the store, and comes back through the parent`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeNumberedVenues(1)[0]
        let parent = stack.context("parent")
        parent.automaticallyMergesChangesFromParent = true
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = parent
        child.automaticallyMergesChangesFromParent = true
        let venue = try child.performAndWait { () throws -> UncheckedSendable<Venue> in
            let venue = try child.get(id, Venue.self)
            expectEqual(venue.price, 0)
            try child.execute(update(["price": 3]))
            return UncheckedSendable(venue)
        }
        parent.performAndWait {}
        child.performAndWait { expectEqual(venue.value.price, 3) }
    }

    @Test(arguments: StoreKind.allCases)
    func `new rows with derived attributes are inserted, and not updated too`(_ kind: StoreKind) throws {
        let entity = GuideModel.entity("Thing", NSManagedObject.self)
        let folded = NSDerivedAttributeDescription()
        folded.name = "folded"
        folded.type = .string
        folded.derivationExpression = NSExpression(format: "canonical:(name)")
        entity.properties = [GuideModel.attribute("name", .string), folded]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let stack = try Stack(kind, model: model)
        let other = stack.context("other")
        other.automaticallyMergesChangesFromParent = true
        let log = NotificationLog([.NSManagedObjectContextDidMergeChangesObjectIDs], of: other)
        try stack.execute(NSBatchInsertRequest(entityName: "Thing", objects: [["name": "Été"], ["name": "B"]]))
        let ids = try other.performAndWait {
            let things = try other.fetch(NSFetchRequest<NSManagedObject>(entityName: "Thing"))
            expectEqual(Set(things.compactMap { $0.value(forKey: "folded") as? String }), ["ete", "b"])
            return Set(things.map(\.objectID))
        }
        expectEqual(log.entries.count, 1)
        expectEqual(log.entries.first?.ids(NSInsertedObjectIDsKey), ids)
        expectEqual(log.entries.first?.ids(NSUpdatedObjectIDsKey), [])
    }
}

/// A delegate that does nothing.
private final class Listener: NSObject, NSFetchedResultsControllerDelegate {}
