import CoreData
import TestSupport
import Testing

@Suite("How old a row may be")
struct StalenessTests {
    /// A city that another coordinator changes behind the row cache of the first one.
    private func withStaleCity(_ body: (Stack, NSManagedObjectContext, City, NSManagedObjectID) throws -> Void) throws {
        let stack = try Stack(.sqlite)
        let id = try stack.storeCity("old")
        let second = try stack.secondCoordinator()
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            #expect(city.name == "old")
            try second.change(id) { $0.name = "theirs" }
            try body(stack, context, city, id)
        }
        for store in second.persistentStores { try second.remove(store) }
    }

    @Test func `by default a cached row never expires: a fault shows it, and so does a refresh (CS-70, 71)`() throws {
        try withStaleCity { stack, context, city, id in
            #expect(context.stalenessInterval < 0)
            #expect(city.name == "old")
            context.refresh(city, mergeChanges: false)
            #expect(city.name == "old")
            #expect(try stack.read(id, City.self) { $0.name } == "old")
            // A fetch reads the store, whatever the cache holds.
            context.refresh(city, mergeChanges: false)
            _ = try context.all(City.self)
            #expect(city.name == "theirs")
        }
    }

    @Test func `with an interval of zero every fault reads the store, and no other object does (CS-70)`() throws {
        try withStaleCity { _, context, city, _ in
            context.stalenessInterval = 0
            #expect(city.name == "old")
            context.refresh(city, mergeChanges: false)
            #expect(city.name == "theirs")
        }
    }

    @Test func `a row younger than the interval is good enough (CS-70)`() throws {
        try withStaleCity { _, context, city, _ in
            context.stalenessInterval = 3600
            context.refresh(city, mergeChanges: false)
            #expect(city.name == "old")
        }
    }

    @Test func `refreshAllObjects shows the new values, with unsaved edits on top (CS-67, 71)`() throws {
        try withStaleCity { _, context, city, _ in
            context.stalenessInterval = 0
            city.population = 5
            context.refreshAllObjects()
            #expect(city.name == "theirs" && city.population == 5)
            #expect(context.updatedObjects == [city])
            try context.save()
        }
    }

    @Test func `a merge from elsewhere shows the new values whatever the interval (CS-71, user demand 15)`() throws {
        try withStaleCity { _, context, city, id in
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSUpdatedObjectIDsKey: [id]], into: [context])
            #expect(city.name == "theirs")
        }
    }
}
