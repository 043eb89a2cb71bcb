import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Stores that a pinned context reads as they are")
struct UnpinnedStoresTests {
    private let stack: Stack
    private let memory: NSPersistentStore

    /// Makes a store that keeps versions, and one in memory, which keeps none.
    init() throws {
        stack = try Stack(.database)
        let url = stack.folder.appendingPathComponent("memory")
        memory = try stack.coordinator.addPersistentStore(type: .inMemory, at: url)
    }

    private func add(_ name: String, to store: NSPersistentStore) throws {
        let context = stack.context("writer")
        try context.performAndWait {
            let city = City(context: context)
            city.name = name
            context.assign(city, to: store)
            try context.save()
        }
    }

    private func names(_ context: NSManagedObjectContext) throws -> [String] {
        try context.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name).sorted()
    }

    @Test
    func `are reported, before and after the first read, and show what others save`() throws {
        let context = stack.context()
        try context.performAndWait {
            expect(context.storesReadUnpinned.isEmpty)
            try context.setQueryGenerationFrom(.current)
            expect(context.queryGenerationToken != nil)
            expectEqual(context.storesReadUnpinned, [memory])
            try expect(names(context).isEmpty)
            expectEqual(context.storesReadUnpinned, [memory])
        }
        try add("kept back", to: stack.coordinator.persistentStores[0])
        try add("seen", to: memory)
        try context.performAndWait {
            try expectEqual(names(context), ["seen"])
            let child = NSManagedObjectContext(.privateQueue)
            child.parent = context
            child.performAndWait { expect(child.storesReadUnpinned.isEmpty) }
            try context.setQueryGenerationFrom(nil)
            expect(context.storesReadUnpinned.isEmpty)
            try expectEqual(names(context), ["kept back", "seen"])
        }
    }

    @Test
    func `are those of the first read, of which stores that are removed or added later are none`() throws {
        let context = stack.context()
        try context.performAndWait {
            try context.setQueryGenerationFrom(.current)
            _ = try names(context)
        }
        let url = stack.folder.appendingPathComponent("later")
        let later = try stack.coordinator.addPersistentStore(type: .inMemory, at: url)
        context.performAndWait { expectEqual(context.storesReadUnpinned, [memory]) }
        try stack.coordinator.remove(memory)
        try context.performAndWait {
            expect(context.storesReadUnpinned.isEmpty)
            try context.setQueryGenerationFrom(.current)
            expectEqual(context.storesReadUnpinned, [later])
        }
    }

    @Test
    func `are none where all stores keep versions, or the context is not pinned as none does`() throws {
        try stack.coordinator.remove(memory)
        let memoryOnly = try Stack(.memory)
        for (context, isPinned) in [(stack.context(), true), (memoryOnly.context(), false)] {
            try context.performAndWait {
                try context.setQueryGenerationFrom(.current)
                _ = try names(context)
                expectEqual((context.queryGenerationToken != nil), isPinned)
                expect(context.storesReadUnpinned.isEmpty)
            }
        }
    }
}
