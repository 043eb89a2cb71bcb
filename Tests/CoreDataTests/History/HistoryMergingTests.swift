import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Following a store by its history")
struct HistoryMergingTests {
    private func context(on coordinator: NSPersistentStoreCoordinator) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    @Test
    func `the notification of a transaction refreshes what a context has registered (CS-198)`() throws {
        let stack = try Stack.recording()
        let (changed, deleted) = (try stack.saveCity("old"), try stack.saveCity("going"))
        let second = try stack.secondStack()
        let context = context(on: second)
        let cities = try context.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.returnsObjectsAsFaults = false
            return UncheckedCities(try context.fetch(request))
        }
        let token = try require(second.currentPersistentHistoryToken(fromStores: nil))
        try stack.change(changed, City.self) { city, context in
            city.name = "new"
            City(context: context).name = "fresh"
            context.delete(try context.existingObject(with: deleted))
        }
        let transactions = try second.transactions(after: token)
        expectEqual(transactions.count, 1)
        let notification = try require(transactions.first).objectIDNotification()
        expectEqual(notification.name, .NSManagedObjectContextDidSaveObjectIDs)
        expect(
            notification.userInfo?[NSPersistentHistoryTokenKey] as? NSPersistentHistoryToken == transactions[0].token
        )
        for key in [NSInsertedObjectIDsKey, NSUpdatedObjectIDsKey, NSDeletedObjectIDsKey] {
            expectEqual((notification.userInfo?[key] as? Set<NSManagedObjectID>)?.count, 1, "\(key)")
        }
        context.performAndWait {
            expectEqual(cities.value.map(\.name), ["going", "old"])
            context.mergeChanges(fromContextDidSave: notification)
            expectEqual(cities.value[1].name, "new")
            expect(cities.value[0].isDeleted)
        }
    }

    @Test
    func `two stacks on one file follow each other by token and author, whatever the staleness interval (CS-203)`()
        throws
    {
        let stack = try Stack.recording()
        let id = try stack.saveCity("zero", author: "one")
        let second = try stack.secondStack()
        let context = context(on: second)
        let uri = id.uriRepresentation()
        let city = try context.performAndWait {
            context.transactionAuthor = "two"
            context.stalenessInterval = 3600
            let id = try require(second.managedObjectID(forURIRepresentation: uri))
            let city = try require(try context.existingObject(with: id) as? City)
            expectEqual(city.name, "zero")
            return UncheckedCities([city])
        }
        var token = try require(second.currentPersistentHistoryToken(fromStores: nil))
        for round in 1...3 {
            try stack.change(id, City.self) { city, context in
                context.transactionAuthor = "one"
                city.population = Int64(round)
            }
            try context.performAndWait {
                City(context: context).name = "noise"
                try context.save()
                let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
                let others = NSFetchRequest<any NSFetchRequestResult>()
                others.entity = NSPersistentHistoryTransaction.entityDescription(with: context)
                others.predicate = NSPredicate(format: "author != %@", "two")
                request.fetchRequest = others
                let result = try require(try context.execute(request) as? NSPersistentHistoryResult)
                let found = try require(result.result as? [NSPersistentHistoryTransaction])
                expectEqual(found.map(\.author), ["one"])
                for transaction in found {
                    context.mergeChanges(fromContextDidSave: transaction.objectIDNotification())
                }
                expectEqual(city.value[0].population, Int64(round))
            }
            token = try require(second.currentPersistentHistoryToken(fromStores: nil))
        }
        try expectEqual(stack.transactions().compactMap(\.author).count { $0 == "two" }, 3)
    }

    @Test
    func `a loaded relationship shows members that another process has added`() throws {
        let stack = try Stack.recording()
        let id = try stack.saveCity()
        let second = try stack.secondStack()
        let context = context(on: second)
        let uri = id.uriRepresentation()
        let city = try context.performAndWait {
            let id = try require(second.managedObjectID(forURIRepresentation: uri))
            let city = try require(try context.existingObject(with: id) as? City)
            expect(city.venues.isEmpty)
            return UncheckedCities([city])
        }
        let token = try require(second.currentPersistentHistoryToken(fromStores: nil))
        try stack.write { context in
            let venue = Bar(context: context)
            venue.name = "added"
            venue.city = try context.existingObject(with: id) as? City
            return venue
        }
        let transactions = try second.transactions(after: token)
        context.performAndWait {
            for transaction in transactions {
                context.mergeChanges(fromContextDidSave: transaction.objectIDNotification())
            }
            expectEqual(city.value[0].venues.map(\.name), ["added"])
        }
    }

    @Test
    func `results that are fetched by a controller move with the history`() throws {
        let stack = try Stack.recording()
        let second = try stack.secondStack()
        let context = context(on: second)
        // Without a delegate a controller follows nothing.
        let delegate = SilentDelegate()
        defer { withExtendedLifetime(delegate) {} }
        let controller = try context.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "population > 5")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            controller.delegate = delegate
            try controller.performFetch()
            return UncheckedController(controller)
        }
        let token = try require(second.currentPersistentHistoryToken(fromStores: nil))
        try stack.write { context in
            let city = City(context: context)
            (city.name, city.population) = ("large", 10)
            return city
        }
        let transactions = try second.transactions(after: token)
        context.performAndWait {
            expectEqual(controller.value.fetchedObjects?.isEmpty, true)
            for transaction in transactions {
                context.mergeChanges(fromContextDidSave: transaction.objectIDNotification())
            }
            expectEqual(controller.value.fetchedObjects?.map(\.name), ["large"])
        }
    }
}

/// Objects on their way from one block of their context to the next.
private struct UncheckedCities: @unchecked Sendable {
    // @unchecked Sendable: used inside the context's scope only.
    let value: [City]
    init(_ value: [City]) { self.value = value }
}

/// A controller on its way from one block of its context to the next.
private struct UncheckedController: @unchecked Sendable {
    // @unchecked Sendable: used inside the context's scope only.
    let value: NSFetchedResultsController<City>
    init(_ value: NSFetchedResultsController<City>) { self.value = value }
}

/// Wants to hear of changes, and makes nothing of it.
private final class SilentDelegate: NSObject, NSFetchedResultsControllerDelegate {}
