import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataOperations

extension Stack {
    /// Runs a block in a context of another coordinator, and saves.
    fileprivate func saveElsewhere(_ body: (NSManagedObjectContext) throws -> Void) throws {
        let other = try secondCoordinator()
        defer { for store in other.persistentStores { try? other.remove(store) } }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = other
        try context.performAndWait {
            try body(context)
            try context.save()
        }
    }

    /// Renames the first city in a context of another coordinator.
    fileprivate func renameElsewhere(_ name: String) throws {
        try saveElsewhere { context in
            let city = try require(try context.fetch(citiesByName()).first)
            city.name = name
        }
    }
}

/// Contexts see commits of which they get no message: those of other processes, and of other coordinators in this one.
///
/// A SQLite file shows such commits at once. A database shows them a moment later, and only if it keeps a history. The
/// suite "Commits, one's own and others'" tests the behaviour of such a store.
@Suite("Commits of others")
struct OthersCommitsTests {
    private let stack: Stack
    private let id: NSManagedObjectID

    init() throws {
        stack = try Stack(.sqlite)
        id = try stack.storeCity("Porto")
    }

    @Test func `a context does not read rows that were cached before another coordinator has written`() throws {
        try expectEqual(stack.read(id, City.self) { $0.name }, "Porto")
        try stack.renameElsewhere("Faro")
        // The first read is by ID.
        try expectEqual(stack.read(id, City.self) { $0.name }, "Faro")
        try stack.renameElsewhere("Braga")
        // The second read is by a fault.
        let context = stack.context()
        try context.performAndWait {
            let city: City = try typed(context.object(with: id))
            expect(city.isFault && city.name == "Braga")
        }
        try stack.renameElsewhere("Lagos")
        // The third read is a fetch, with the rows that it brings.
        let names = try context.performAndWait {
            context.reset()
            return try context.fetch(citiesByName()).map(\.name)
        }
        expectEqual(names, ["Lagos"])
    }

    @Test func `a relationship leads to what another coordinator has written`() throws {
        let venue = try stack.store(Venue.self) { venue, context in
            venue.name = "Casa"
            venue.city = try? typed(context.object(with: id))
        }
        try expectEqual(stack.read(venue, Venue.self) { $0.city?.name }, "Porto")
        try stack.renameElsewhere("Faro")
        try expectEqual(stack.read(venue, Venue.self) { $0.city?.name }, "Faro")
    }

    @Test func `objects that are realised stay as they are`() throws {
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            expectEqual(city.name, "Porto")
            try stack.renameElsewhere("Faro")
            expectEqual(city.name, "Porto")
            // Another context's read does not change them either.
            try expectEqual(stack.read(id, City.self) { $0.name }, "Faro")
            expectEqual(city.name, "Porto")
            context.refresh(city, mergeChanges: true)
            expectEqual(city.name, "Faro")
        }
    }

    @Test func `what another coordinator has deleted is not found by its ID`() throws {
        try expectEqual(stack.read(id, City.self) { $0.name }, "Porto")
        try stack.saveElsewhere { context in
            for city in try context.fetch(citiesByName()) { context.delete(city) }
        }
        let error = expectThrows(CocoaError.self) { try stack.read(id, City.self) { $0.name } }
        expectEqual(error?.code, .managedObjectReferentialIntegrity)
    }

    @Test func `another coordinator's commit is found even before one's own`() throws {
        try expectEqual(stack.read(id, City.self) { $0.name }, "Porto")
        try stack.renameElsewhere("Faro")
        _ = try stack.storeCity("Lagos")
        try expectEqual(stack.read(id, City.self) { $0.name }, "Faro")
    }
}

/// Any store handles its own commits, and others' commits that come without a message.
@Suite("Commits, one's own and others'")
struct OwnAndOthersCommitsTests {
    private let stack: Stack
    private let id: NSManagedObjectID

    init() throws {
        stack = try Stack(.database)
        id = try stack.storeCity("Porto")
    }

    private var cache: RowCache {
        get throws { try require(stack.coordinator.openStore(at: 0)).cache }
    }

    @Test func `one's own commits leave the cached rows where they are`() throws {
        _ = try stack.read(id, City.self) { $0.name }
        let before = try cache.removals
        for index in 0..<50 {
            _ = try stack.storeCity("City \(index)")
            _ = try stack.read(id, City.self) { $0.name }
        }
        try stack.change(id, City.self) { city, _ in city.population += 1 }
        try expectEqual(cache.removals, before)
        try expect(cache.count > 50)
        // A server reports others' commits by the history, which this store does not keep.
        guard stack.kind == .sqlite else { return }
        try stack.renameElsewhere("Faro")
        _ = try stack.read(id, City.self) { $0.name }
        try expectEqual(cache.removals, before + 1)
    }

    @Test func `saves of many threads are never taken for those of another coordinator`() async throws {
        let before = try cache.removals
        let (stack, id) = (stack, id)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    for index in 0..<50 {
                        if thread % 2 == 0 {
                            _ = try stack.storeCity("City \(thread) \(index)")
                        } else {
                            _ = try stack.read(id, City.self) { $0.name }
                        }
                        await Task.yield()
                    }
                }
            }
            try await group.waitForAll()
        }
        try expectEqual(cache.removals, before)
    }

    @Test func `a pinned context reads its version`() throws {
        let context = stack.context()
        try context.performAndWait {
            try context.setQueryGenerationFrom(.current)
            try expectEqual(context.get(id, City.self).name, "Porto")
            context.refreshAllObjects()
            try stack.renameElsewhere("Faro")
            let newest = stack.context("newest")
            try expectEqual(newest.performAndWait { try newest.storedCityNames() }, ["Faro"])
            try expectEqual(context.get(id, City.self).name, "Porto")
        }
    }

    @Test func `a save finds the conflict with what another coordinator has written`() throws {
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.name = "Mine"
            try stack.renameElsewhere("Faro")
            expectThrows(CocoaError.self) { try context.save() }
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            try context.save()
        }
        try expectEqual(stack.read(id, City.self) { $0.name }, "Mine")
    }
}
