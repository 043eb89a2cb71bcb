import CoreData
import Expectations
import TestSupport
import Testing

@Suite("What a context counts as registered, and what a refresh and a reset tell of it")
struct RegisteredObjectsTests {
    private func storeRing(_ context: NSManagedObjectContext) throws {
        try autoreleasing {
            for number in 0..<5 {
                let venue = Venue(context: context)
                venue.name = "\(number)"
                let licence = Licence(context: context)
                licence.venue = venue
            }
            try context.save()
        }
    }

    private func autoreleasing<R>(_ body: () throws -> R) rethrows -> R { try body() }

    /// The objects under one key of the next objects-did-change notification.
    private func refreshed(
        _ context: NSManagedObjectContext,
        _ key: String = NSRefreshedObjectsKey,
        _ body: () throws -> Void
    ) rethrows -> [Set<NSManagedObject>] {
        let log = NoteLog(context)
        try body()
        return log.end().compactMap { $0[key] as? Set<NSManagedObject> }
    }

    @Test(arguments: StoreKind.allCases)
    func `objects that lead to each other stay registered until they are refreshed, and all of them are reported`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            try storeRing(context)
            expectEqual(context.registeredObjects.count, 10)
            let told = refreshed(context) {
                context.refreshAllObjects()
                context.processPendingChanges()
            }
            expectEqual(told.map(\.count), [10])
        }
        context.performAndWait {
            // Faults lead nowhere.
            expectEqual(context.registeredObjects.count, 0)
            let told = refreshed(context) {
                context.refreshAllObjects()
                context.processPendingChanges()
            }
            expectEqual(told.count, 0)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `objects that are not held or led to are neither registered nor reported`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let city = try context.performAndWait {
            // Nothing leads back from these objects.
            let city = try autoreleasing {
                for number in 0..<3 { City(context: context).name = "\(number)" }
                let city = City(context: context)
                city.name = "held"
                let venue = Venue(context: context)
                venue.city = city
                try context.save()
                return city
            }
            let registered = context.registeredObjects
            expect(registered.contains(city))
            let told = refreshed(context) {
                context.refreshAllObjects()
                context.processPendingChanges()
            }
            expectEqual(told, [registered])
            return city
        }
        context.performAndWait { expectEqual(context.registeredObjects, [city]) }
    }

    @Test
    func `an import of objects that lead to each other keeps no more of them than it has just made`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            for _ in 0..<20 {
                for _ in 0..<1000 { Licence(context: context).venue = Venue(context: context) }
                try context.save()
            }
            expect(context.registeredObjects.count < 12_000)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an unsaved object that was refreshed is a fault again after a further refresh`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "x"
            context.refresh(city, mergeChanges: false)
            expect(city.isFault)
            city.willAccessValue(forKey: nil)
            expect(!city.isFault)
            context.refresh(city, mergeChanges: false)
            expect(city.isFault)
            try context.save()
            expectEqual(try context.count(for: NSFetchRequest<City>(entityName: "City")), 0)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object of a context that was reset is no fault once its values are asked for`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "x"
            try context.save()
            context.reset()
            expect(city.isFault)
            city.willAccessValue(forKey: nil)
            expect(!city.isFault)
            expectEqual(city.name, "")
            expect(city.venues.isEmpty)
            city.name = "of no consequence"
            expect(!context.hasChanges && context.registeredObjects.isEmpty)
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a merge has deleted is among the deleted objects until the event ends`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let (view, other) = (stack.context(), stack.context())
        try view.performAndWait {
            let city = try view.get(id, City.self)
            expectEqual(city.name, "Porto")
            let saved = NoteLog(other, .NSManagedObjectContextDidSave)
            try other.performAndWait {
                other.delete(try other.existingObject(with: id))
                try other.save()
            }
            let note = try require(saved.notes.last)
            _ = saved.end()
            view.mergeChanges(fromContextDidSave: note)
            expectEqual(view.deletedObjects, [city])
            expect(city.isDeleted && !view.hasChanges)
            view.processPendingChanges()
            expect(view.deletedObjects.isEmpty)
            expect(!view.hasChanges)
        }
        view.performAndWait { expect(view.deletedObjects.isEmpty) }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that is inserted and deleted in one event is reported as deleted`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let log = NoteLog(context)
            let city = City(context: context)
            context.delete(city)
            context.processPendingChanges()
            let infos = log.end()
            expectEqual(infos.count, 1)
            expectEqual(infos.first?[NSDeletedObjectsKey] as? Set<NSManagedObject>, [city])
            expect(infos.first?[NSInsertedObjectsKey] == nil)
            expect(context.deletedObjects.isEmpty)
            try context.save()
            expect(!context.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the notification of a merge lists all objects that it has changed`(_ kind: StoreKind) throws {
        let key = "NSObjectsChangedByMergeChangesKey"
        let stack = try Stack(kind)
        let (changed, deleted) = (try stack.storeCity("changed"), try stack.storeCity("deleted"))
        let (view, other) = (stack.context(), stack.context())
        try view.performAndWait {
            let held = [try view.get(changed, City.self), try view.get(deleted, City.self)]
            expectEqual(held.map(\.name), ["changed", "deleted"])
            let saved = NoteLog(other, .NSManagedObjectContextDidSave)
            let newID = try other.performAndWait {
                try other.get(changed, City.self).population = 7
                other.delete(try other.existingObject(with: deleted))
                let new = City(context: other)
                new.name = "new"
                try other.save()
                return new.objectID
            }
            let note = try require(saved.notes.last)
            _ = saved.end()
            let log = NoteLog(view)
            view.mergeChanges(fromContextDidSave: note)
            let infos = log.end()
            expectEqual(infos.count, 1)
            let listed = infos.first?[key] as? Set<NSManagedObject> ?? []
            expectEqual(Set(listed.map(\.objectID)), [changed, deleted, newID])
            let own = NoteLog(view)
            held[0].population = 8
            view.processPendingChanges()
            expectEqual(own.end().count { $0[key] != nil }, 0)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the delegate of a controller gets refreshAllObjects as updates, and nothing of a reset`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            for name in ["a", "b", "c"] { City(context: context).name = name }
            try context.save()
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            let told = ToldKinds()
            controller.delegate = told
            try controller.performFetch()
            context.refreshAllObjects()
            context.processPendingChanges()
            expectEqual(told.kinds, [.update, .update, .update])
            told.kinds = []
            context.reset()
            context.processPendingChanges()
            expectEqual(told.kinds, [])
            // The controller continues from here.
            expectEqual(controller.fetchedObjects?.map(\.name), ["a", "b", "c"])
            City(context: context).name = "d"
            context.processPendingChanges()
            expectEqual(told.kinds, [.insert])
            expectEqual(controller.fetchedObjects?.map(\.name), ["a", "b", "c", "d"])
        }
    }
}

/// The kinds of changes that a delegate is notified of.
private final class ToldKinds: NSObject, NSFetchedResultsControllerDelegate {
    var kinds: [NSFetchedResultsChangeType] = []

    func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChange anObject: Any,
        at indexPath: IndexPath?,
        for type: NSFetchedResultsChangeType,
        newIndexPath: IndexPath?
    ) { kinds.append(type) }
}

/// The notifications of one context, in their order.
private final class NoteLog: @unchecked Sendable {
    // @unchecked Sendable: notified and read on the context's queue.
    private(set) var notes: [Notification] = []
    private var token: (any NSObjectProtocol)?

    init(_ context: NSManagedObjectContext, _ name: Notification.Name = .NSManagedObjectContextObjectsDidChange) {
        token = NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { [unowned self] in
            notes.append($0)
        }
    }

    /// Stops listening.
    ///
    /// - Returns: The user info of each notification.
    func end() -> [[AnyHashable: Any]] {
        if let token { NotificationCenter.default.removeObserver(token) }
        token = nil
        return notes.map { $0.userInfo ?? [:] }
    }
}
