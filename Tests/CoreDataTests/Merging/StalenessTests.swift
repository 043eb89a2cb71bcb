import CoreData
import Expectations
import TestSupport
import Testing

@Suite("How old a row may be")
struct StalenessTests {
    /// A city that another coordinator changes without the knowledge of the first one's row cache.
    ///
    /// Nothing reports the change: a server keeps no history here, and a file has another journal than the write-ahead
    /// log.
    private func withStaleCity(_ body: (Stack, NSManagedObjectContext, City, NSManagedObjectID) throws -> Void) throws {
        let options: [AnyHashable: Any] = [NSSQLitePragmasOption: ["journal_mode": "DELETE"]]
        let stack = try Stack(.database, model: GuideModel.make(), options: StoreKind.isPostgreSQL ? nil : options)
        try withStaleCity(of: stack, options, body)
    }

    private func withStaleCity(
        of stack: Stack,
        _ options: [AnyHashable: Any]?,
        _ body: (Stack, NSManagedObjectContext, City, NSManagedObjectID) throws -> Void
    ) throws {
        let id = try stack.storeCity("old")
        let second = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try second.addPersistentStore(
            type: stack.kind.type,
            at: stack.storeURL,
            options: stack.kind == .sqlite ? options : nil
        )
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            expectEqual(city.name, "old")
            try second.change(id) { $0.name = "theirs" }
            try body(stack, context, city, id)
        }
        for store in second.persistentStores { try second.remove(store) }
    }

    @Test(arguments: [-1, 0, 3600])
    func `a row that another coordinator has overwritten is not used, whatever the interval (CS-71)`(
        _ interval: TimeInterval
    ) throws {
        // Only the write-ahead log shows it at once.
        try withStaleCity(of: Stack(.sqlite), nil) { stack, context, city, id in
            context.stalenessInterval = interval
            expectEqual(city.name, "old")
            context.refresh(city, mergeChanges: false)
            expectEqual(city.name, "theirs")
            let shown = try stack.read(id, City.self) { $0.name }
            expectEqual(shown, "theirs")
        }
    }

    @Test func `by default a cached row never expires: a fault shows it, and so does a refresh (CS-70)`() throws {
        try withStaleCity { stack, context, city, id in
            expect(context.stalenessInterval < 0)
            expectEqual(city.name, "old")
            context.refresh(city, mergeChanges: false)
            expectEqual(city.name, "old")
            try expectEqual(stack.read(id, City.self) { $0.name }, "old")
            // A fetch reads the store, whatever the cache holds.
            context.refresh(city, mergeChanges: false)
            _ = try context.all(City.self)
            expectEqual(city.name, "theirs")
        }
    }

    @Test func `with an interval of zero every fault reads the store, and no other object does (CS-70)`() throws {
        try withStaleCity { _, context, city, _ in
            context.stalenessInterval = 0
            expectEqual(city.name, "old")
            context.refresh(city, mergeChanges: false)
            expectEqual(city.name, "theirs")
        }
    }

    @Test func `a row younger than the interval is good enough (CS-70)`() throws {
        try withStaleCity { _, context, city, _ in
            context.stalenessInterval = 3600
            context.refresh(city, mergeChanges: false)
            expectEqual(city.name, "old")
        }
    }

    @Test func `refreshAllObjects shows the new values, with unsaved edits on top (CS-67, 71)`() throws {
        try withStaleCity { _, context, city, _ in
            context.stalenessInterval = 0
            city.population = 5
            context.refreshAllObjects()
            expect(city.name == "theirs" && city.population == 5)
            expectEqual(context.updatedObjects, [city])
            try context.save()
        }
    }

    @Test func `a merge from elsewhere shows the new values whatever the interval (CS-71, user demand 15)`() throws {
        try withStaleCity { _, context, city, id in
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSUpdatedObjectIDsKey: [id]], into: [context])
            expectEqual(city.name, "theirs")
        }
    }
}
