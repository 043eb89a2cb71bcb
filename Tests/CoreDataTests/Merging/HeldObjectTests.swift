import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataBinaryStore
@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

/// Contexts report their objects as if they held them weakly.
@Suite("Objects that are held")
struct HeldObjectTests {
    /// Saves a change of some rows in another context, and gives its did-save notification.
    private func saved(_ stack: Stack, _ body: (NSManagedObjectContext) throws -> Void) throws -> Notification {
        let context = stack.context("writer")
        let log = NotificationLog([.NSManagedObjectContextDidSave], of: context)
        try context.performAndWait {
            try body(context)
            try context.save()
        }
        return try require(log.entries.last).notification
    }

    private func renamed(_ stack: Stack, _ ids: [NSManagedObjectID], _ name: String) throws -> Notification {
        try saved(stack) { context in
            for id in ids { try context.get(id, City.self).name = name }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `registered objects are those that are held, and those with changes`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro", "Braga"])
        let context = stack.context()
        try context.performAndWait {
            var cities = try context.fetch(citiesByName())
            expectEqual(context.registeredObjects, Set(cities))
            cities[0].name = "changed"
            let (changed, held) = (cities[0].objectID, cities[1].objectID)
            cities.remove(at: 2)
            cities.remove(at: 0)
            expectEqual(Set(context.registeredObjects.map(\.objectID)), [changed, held])
            cities = []
            expectEqual(Set(context.registeredObjects.map(\.objectID)), [changed])
            context.rollback()
            expect(context.registeredObjects.isEmpty)
            context.retainsRegisteredObjects = true
            _ = try context.fetch(citiesByName())
            expectEqual(context.registeredObjects.count, 3)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a reset names all registered objects, whether or not their IDs were asked for`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro", "Braga"])
        let reader = stack.context()
        let wanted = try reader.performAndWait { Set(try reader.fetch(citiesByName()).dropLast().map(\.objectID)) }
        let context = stack.context()
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        try context.performAndWait {
            let cities = Array(try context.fetch(citiesByName()).dropLast())
            context.reset()
            let ids = log.entries.last?.notification.userInfo?[NSInvalidatedAllObjectsKey] as? [NSManagedObjectID]
            try expectEqual(Set(require(ids)), wanted)
            expectEqual(cities.count, 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a merge reports updates and deletions of held objects only`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro", "Braga", "Lagos"])
        let context = stack.context()
        let log = NotificationLog(
            [.NSManagedObjectContextObjectsDidChange, .NSManagedObjectContextDidMergeChangesObjectIDs],
            of: context
        )
        try context.performAndWait {
            var cities = try context.fetch(citiesByName())
            let ids = cities.map(\.objectID)
            for city in cities { expect(!city.name.isEmpty) }
            cities.removeSubrange(2...)
            let (first, second) = (cities[0], cities[1])
            cities = []
            let notification = try saved(stack) { writer in
                for id in [ids[0], ids[2]] { try writer.get(id, City.self).population = 77 }
                for id in [ids[1], ids[3]] { writer.delete(try writer.get(id, City.self)) }
            }
            context.mergeChanges(fromContextDidSave: notification)
            try require(log.entries.count == 2)
            expectEqual(log.entries[0].objects(NSRefreshedObjectsKey), [first])
            expectEqual(log.entries[0].objects(NSDeletedObjectsKey), [second])
            expectEqual(log.entries[1].ids(NSUpdatedObjectIDsKey), [ids[0], ids[2]])
            expectEqual(log.entries[1].ids(NSRefreshedObjectIDsKey), [ids[0]])
            // Objects that were not held show what is stored.
            try expectEqual(context.get(ids[2], City.self).population, 77)
            expectThrows(CocoaError.self) { try context.existingObject(with: ids[3]) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that a merge has left as a fault is reported as refreshed once, until it is read`(
        _ kind: StoreKind
    )
        throws
    {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        let log = NotificationLog(
            [.NSManagedObjectContextObjectsDidChange, .NSManagedObjectContextDidMergeChangesObjectIDs],
            of: context
        )
        try context.performAndWait {
            let city: City = try typed(context.object(with: id))
            context.mergeChanges(fromContextDidSave: try renamed(stack, [id], "Faro"))
            expect(city.isFault && log.entries.count == 2)
            expectEqual(log.entries[0].objects(NSRefreshedObjectsKey), [city])
            expectEqual(log.entries[1].ids(NSRefreshedObjectIDsKey), [id])
            context.mergeChanges(fromContextDidSave: try renamed(stack, [id], "Braga"))
            expectEqual(log.entries.count, 3)
            expectEqual(log.entries[2].ids(NSUpdatedObjectIDsKey), [id])
            expect(log.entries[2].notification.userInfo?[NSRefreshedObjectIDsKey] == nil)
            expectEqual(city.name, "Braga")
            context.mergeChanges(fromContextDidSave: try renamed(stack, [id], "Lagos"))
            expectEqual(log.entries.count, 5)
            expectEqual(log.entries[4].ids(NSRefreshedObjectIDsKey), [id])
            expectEqual(city.name, "Lagos")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a controller follows a fault that is not reported as refreshed again`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        try context.performAndWait {
            let city: City = try typed(context.object(with: id))
            context.mergeChanges(fromContextDidSave: try renamed(stack, [id], "Faro"))
            let request = citiesByName()
            request.predicate = NSPredicate(format: "name == 'Braga'")
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expect(city.isFault)
            context.mergeChanges(fromContextDidSave: try renamed(stack, [id], "Braga"))
            expectEqual(controller.fetchedObjects, [city])
            recorder.expectCopy(of: controller)
        }
    }
}
