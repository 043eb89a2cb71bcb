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

@Suite("What a context posts")
struct NotificationTests {
    @Test(arguments: StoreKind.allCases)
    func `a save posts will-save, did-save and did-save of IDs, in order, in its scope and at once (CS-118, 119, 120)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let (changedID, deletedID) = (try stack.storeCity("changed"), try stack.storeCity("deleted"))
        let context = stack.context()
        let saving = Shared<String?>(nil)
        let log = NotificationLog(.ofContexts, of: context) {
            "\(saving.current ?? "nobody") saves, \(context.isInScope ? "inside" : "outside") on \(Thread.current)"
        }
        try context.performAndWait {
            let (changed, deleted) = (try context.get(changedID, City.self), try context.get(deletedID, City.self))
            changed.population = 4
            context.delete(deleted)
            let new = City(context: context)
            new.name = "new"
            context.processPendingChanges()
            log.clear()
            saving.update { $0 = "the test" }
            try context.save()
            saving.update { $0 = nil }
            expect(
                log.names == [
                    .NSManagedObjectContextWillSave, .NSManagedObjectContextDidSave,
                    .NSManagedObjectContextDidSaveObjectIDs,
                ]
            )
            let entries = log.entries
            expect(entries.allSatisfy { $0.probed == "the test saves, inside on \(Thread.current)" })
            let posters = entries.compactMap { $0.notification.object as? NSManagedObjectContext }
            expectEqual(posters, [context, context, context])
            expect(entries[0].notification.userInfo == nil)
            expectEqual(entries[1].objects(NSInsertedObjectsKey), [new])
            expectEqual(entries[1].objects(NSUpdatedObjectsKey), [changed])
            expectEqual(entries[1].objects(NSDeletedObjectsKey), [deleted])
            expectEqual(entries[2].ids(NSInsertedObjectIDsKey), [new.objectID])
            expectEqual(entries[2].ids(NSUpdatedObjectIDsKey), [changedID])
            expectEqual(entries[2].ids(NSDeletedObjectIDsKey), [deletedID])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an observer of all names, or of one by its text, finds sets of objects and of IDs`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (context, following) = (stack.context(), stack.context("following"))
        following.automaticallyMergesChangesFromParent = true
        let (all, byText, followed) = (Shared<[String]>([]), Shared<[String]>([]), Shared<[String]>([]))
        func observe(
            _ name: String?,
            of context: NSManagedObjectContext,
            _ found: Shared<[String]>
        ) -> any NSObjectProtocol {
            NotificationCenter.default.addObserver(
                forName: name.map { Notification.Name($0) },
                object: context,
                queue: nil
            ) { notification in
                let objects = notification.userInfo?["inserted"] as? Set<NSManagedObject>
                let ids = notification.userInfo?["inserted_objectIDs"] as? Set<NSManagedObjectID>
                guard objects != nil || ids != nil else { return }
                found.update { $0.append("\(notification.name.rawValue) \(objects?.count ?? 0) \(ids?.count ?? 0)") }
            }
        }
        let observers = [
            observe(nil, of: context, all),
            observe("NSManagingContextDidSaveChangesNotification", of: context, byText),
            observe(nil, of: following, followed),
        ]
        defer { for observer in observers { NotificationCenter.default.removeObserver(observer) } }
        try context.performAndWait {
            City(context: context).name = "Lagos"
            try context.save()
        }
        following.performAndWait {}
        expectEqual(
            all.current,
            [
                "NSObjectsChangedInManagingContextNotification 1 0", "NSManagingContextDidSaveChangesNotification 1 0",
                "NSManagedObjectContextDidSaveObjectIDsNotification 0 1",
            ]
        )
        expectEqual(byText.current, ["NSManagingContextDidSaveChangesNotification 1 0"])
        expect(
            followed.current.contains("NSManagedObjectContextDidMergeChangesObjectIDsNotification 0 1"),
            "\(followed.current)"
        )
    }

    @Test func `the names and keys are Apple's`() {
        expect(
            [
                Notification.Name.NSManagedObjectContextWillSave, .NSManagedObjectContextDidSave,
                .NSManagedObjectContextObjectsDidChange, .NSManagedObjectContextDidSaveObjectIDs,
                .NSManagedObjectContextDidMergeChangesObjectIDs,
            ].map(\.rawValue) == [
                "NSManagingContextWillSaveChangesNotification", "NSManagingContextDidSaveChangesNotification",
                "NSObjectsChangedInManagingContextNotification", "NSManagedObjectContextDidSaveObjectIDsNotification",
                "NSManagedObjectContextDidMergeChangesObjectIDsNotification",
            ]
        )
        expect(
            [NSInsertedObjectsKey, NSUpdatedObjectsKey, NSDeletedObjectsKey, NSRefreshedObjectsKey] == [
                "inserted", "updated", "deleted", "refreshed",
            ]
        )
        expect(
            [NSInsertedObjectIDsKey, NSUpdatedObjectIDsKey, NSDeletedObjectIDsKey, NSRefreshedObjectIDsKey] == [
                "inserted_objectIDs", "updated_objectIDs", "deleted_objectIDs", "refreshed_objectIDs",
            ]
        )
        expect(NSInvalidatedObjectsKey == "invalidated" && NSInvalidatedAllObjectsKey == "invalidatedAll")
        expectEqual(NSManagedObjectContext.didSaveObjectsNotification, .NSManagedObjectContextDidSave)
        expectEqual(NSManagedObjectContext.NotificationKey.updatedObjects.rawValue, NSUpdatedObjectsKey)
    }

    @Test(arguments: StoreKind.allCases)
    func `objects-did-change comes at the end of an event with what happened in it (CS-121, 124)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let ids = try ["changed", "deleted", "refreshed"].map { try stack.storeCity($0) }
        let context = stack.context()
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        try context.performAndWait {
            let cities = try ids.map { try context.get($0, City.self) }
            for city in cities { _ = city.name }
            cities[0].population = 2
            context.delete(cities[1])
            context.refresh(cities[2], mergeChanges: true)
            let new = City(context: context)
            let passing = City(context: context)
            context.delete(passing)
            expect(log.entries.isEmpty)
            context.processPendingChanges()
            let entry = try require(log.entries.first)
            expectEqual(log.entries.count, 1)
            expectEqual(entry.objects(NSInsertedObjectsKey), [new])
            expectEqual(entry.objects(NSUpdatedObjectsKey), [cities[0]])
            // An object that was inserted and deleted in one event is reported only as deleted.
            expectEqual(entry.objects(NSDeletedObjectsKey), [cities[1], passing])
            expectEqual(entry.objects(NSRefreshedObjectsKey), [cities[2]])
            log.clear()
            context.processPendingChanges()
            expect(log.entries.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `fetching and firing faults posts nothing (CS-122)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        _ = try stack.storeCity()
        let context = stack.context()
        let log = NotificationLog(.ofContexts, of: context)
        try context.performAndWait {
            for city in try context.all(City.self) { _ = (city.name, city.venues) }
            context.processPendingChanges()
        }
        expect(log.entries.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a failed save posts will-save only (CS-125)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let context = stack.context()
        let log = NotificationLog(.ofContexts, of: context)
        try context.performAndWait {
            try context.get(id, City.self).population = 2
            context.processPendingChanges()
            try stack.change(id, City.self) { city, _ in city.population = 3 }
            log.clear()
            expectThrows(CocoaError.self) { try context.save() }
            context.processPendingChanges()
            expectEqual(log.names, [.NSManagedObjectContextWillSave])
        }
    }

    @Test(
        arguments: StoreKind.allCases,
        [
            Notification.Name.NSManagedObjectContextWillSave, .NSManagedObjectContextDidSave,
            .NSManagedObjectContextDidSaveObjectIDs, .NSManagedObjectContextObjectsDidChange,
        ]
    )
    func `no lock is held: a handler may fetch, and let other contexts save`(
        _ kind: StoreKind,
        _ name: Notification.Name
    )
        throws
    {
        let stack = try Stack(kind)
        let (context, other) = (stack.context(), stack.context("other"))
        try context.performAndWait {
            var calls = 0
            let token = whenPosted(name, by: context) {
                calls += 1
                #expect(throws: Never.self) { try context.count(for: City.fetchRequest()) }
                other.performAndWait {
                    City(context: other).name = "other"
                    #expect(throws: Never.self) { try other.save() }
                }
            }
            City(context: context).name = "own"
            try context.save()
            token.remove()
            expect(calls > 0)
            try expectEqual(context.count(for: City.fetchRequest()), calls + 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a did-change handler changes is an event of its own`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        context.performAndWait {
            let city = City(context: context)
            let token = whenPosted(.NSManagedObjectContextObjectsDidChange, by: context) {
                if city.population < 3 { city.population += 1 }
            }
            context.processPendingChanges()
            context.processPendingChanges()
            context.processPendingChanges()
            token.remove()
            expectEqual(log.entries.map { $0.objects(NSInsertedObjectsKey).count }, [1, 0, 0])
            expectEqual(log.entries.map { $0.objects(NSUpdatedObjectsKey).count }, [0, 1, 1])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a did-change handler changes at the end of a block is reported, and delete rules are applied`(
        _ kind: StoreKind
    ) async throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in venue.photos = [Photo(context: context)] }
        let context = stack.context()
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        // The block sets and reads it, and the code after the block reads it.
        nonisolated(unsafe) var token: Observation?
        try await context.perform {
            let venue = try context.get(id, Venue.self)
            token = whenPosted(.NSManagedObjectContextObjectsDidChange, by: context) {
                if !venue.isDeleted { context.delete(venue) }
            }
            City(context: context).name = "Porto"
        }
        token?.remove()
        expectEqual(log.entries.map { $0.objects(NSInsertedObjectsKey).count }, [1, 0])
        expectEqual(log.entries.map { $0.objects(NSDeletedObjectsKey).count }, [0, 2])
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `delete rules wait for the end of the event, or for the save, on every store (CS-92)`(
        _ kind: StoreKind,
        _ atEnd: Bool
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in venue.photos = [Photo(context: context)] }
        let context = stack.context()
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        try context.performAndWait {
            expect(context.propagatesDeletesAtEndOfEvent)
            context.propagatesDeletesAtEndOfEvent = atEnd
            let venue = try context.get(id, Venue.self)
            let photo = try require(venue.photos.first)
            context.delete(venue)
            context.processPendingChanges()
            expectEqual(photo.isDeleted, atEnd)
            let deleted: Set<NSManagedObject> = atEnd ? [venue, photo] : [venue]
            expectEqual(log.entries.first?.objects(NSDeletedObjectsKey), deleted)
            try context.save()
        }
        try expectEqual(stack.count("Photo"), 0)
    }
}

@Suite("Rows that a store changes on its own")
struct RereadRowTests {
    /// Orders with items: an order knows the sum of its items' prices.
    private static func model() -> NSManagedObjectModel {
        let (order, item) = (StoreModels.entity("Order"), StoreModels.entity("Item"))
        let (items, orderOf) = (StoreModels.toMany("items", item), StoreModels.toOne("order", order))
        StoreModels.connect(items, orderOf)
        order.properties = [items, StoreModels.derived("total", .double, NSExpression(format: "items.@sum.price"))]
        item.properties = [orderOf, StoreModels.attribute("price", .double)]
        return StoreModels.model(order, item)
    }

    @Test(arguments: StoreKind.allCases)
    func `are refreshed objects in the saving context, and updated ones where the save is merged`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind, model: Self.model())
        let (context, other, following) = (stack.context("saving"), stack.context("other"), stack.context("following"))
        following.automaticallyMergesChangesFromParent = true
        let orderEntity = try require(stack.coordinator.managedObjectModel.entitiesByName["Order"])
        let itemEntity = try require(stack.coordinator.managedObjectModel.entitiesByName["Item"])
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        let id = try context.performAndWait {
            let order = NSManagedObject(entity: orderEntity, insertInto: context)
            let item = NSManagedObject(entity: itemEntity, insertInto: context)
            item.setValue(1.5, forKey: "price")
            item.setValue(order, forKey: "order")
            try context.save()
            expectEqual(order.value(forKey: "total") as? Double, 1.5)
            expectEqual(log.entries.last?.objects(NSRefreshedObjectsKey), [order])
            return order.objectID
        }
        let followed = following.performAndWait { following.object(with: id) }
        let box = UncheckedSendable(followed)
        following.performAndWait { expectEqual(box.value.value(forKey: "total") as? Double, 1.5) }
        try context.performAndWait {
            let order = context.object(with: id)
            let item = try require((order.value(forKey: "items") as? Set<NSManagedObject>)?.first)
            context.processPendingChanges()
            log.clear()
            item.setValue(2.5, forKey: "price")
            try context.save()
            expectEqual(order.value(forKey: "total") as? Double, 2.5)
            expect(!order.hasChanges)
            expectEqual(log.entries.last?.objects(NSRefreshedObjectsKey), [order])
            log.clear()
            // Nothing else has changed.
            item.setValue(2.5, forKey: "price")
            try context.save()
            expect(log.entries.allSatisfy { $0.objects(NSRefreshedObjectsKey).isEmpty })
        }
        following.performAndWait { expectEqual(box.value.value(forKey: "total") as? Double, 2.5) }
        other.performAndWait { expectEqual(other.object(with: id).value(forKey: "total") as? Double, 2.5) }
    }
}
