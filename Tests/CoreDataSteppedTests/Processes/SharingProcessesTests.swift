import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

/// Several processes can write to a store of any kind.
@Suite("Processes that share a store")
struct SharingProcessesTests {
    @Test func `a process that is killed in the middle of a write holds no other up, and nothing of the write stays`()
        async throws
    {
        let folder = try SharedFolder()
        let store = folder.store
        let context = try await store.contextWithCity(population: 1, options: [NSPersistentStoreTimeoutOption: 5])

        await #expect(processExitsWith: .signal(SIGKILL)) { [store = store as SharedStore] in
            try store.dieAmidWrite()
        }

        try await context.perform {
            let city = try context.storedCity()
            expectEqual(city.population, 1)
            city.population = 2
            try context.save()
            try expectEqual(context.count(for: NSFetchRequest<TestSupport.Tag>(entityName: "Tag")), 0)
        }
    }

    @Test func `several processes may make one store at the same time`() async throws {
        let folder = try SharedFolder()
        let store = folder.store

        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    await #expect(processExitsWith: .success) { [store = store as SharedStore] in
                        let context = try store.context()
                        try await context.perform {
                            context.makeCity("Bonn")
                            try context.save()
                        }
                    }
                }
            }
        }

        let context = try store.context()
        let count = try await context.perform { try context.count(for: NSFetchRequest<City>(entityName: "City")) }
        expectEqual(count, 4)
    }

    @Test func `if two processes change one object, the later save conflicts, and nothing is lost`() async throws {
        let folder = try SharedFolder(signals: "read", "saved")
        let store = folder.store
        let context = try await store.contextWithCity(population: 10)
        async let other = #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let context = try store.context()
            try await context.perform {
                let city = try context.city()
                city.population += 5
                store.signal("read")
                store.wait(for: "saved")
                let error = expectThrows(CocoaError.self) { try context.save() }
                expectEqual(error?.code, .managedObjectMerge)
                let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict]
                let conflict = try require(conflicts?.first)
                expect(conflict.sourceObject === city && conflict.newCount == 2)
                expect(city.population == 15 && city.hasChanges)

                context.refresh(city, mergeChanges: false)
                expectEqual(city.population, 11)
                city.population += 5
                try context.save()
            }
        }
        await store.arrival(of: "read")
        try await context.perform {
            try context.city().population += 1
            try context.save()
        }
        store.signal("saved")
        _ = await other

        try await context.perform {
            let city = try context.storedCity()
            expectEqual(city.population, 16)
        }
    }

    @Test func `a deletion in one process and a change in another conflict`() async throws {
        let folder = try SharedFolder(signals: "read", "deleted")
        let store = folder.store
        let context = try await store.contextWithCity(population: 10)
        async let other = #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let context = try store.context()
            try await context.perform {
                let city = try context.city()
                city.population += 5
                store.signal("read")
                store.wait(for: "deleted")
                let error = expectThrows(CocoaError.self) { try context.save() }
                expectEqual(error?.code, .managedObjectMerge)
                context.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
                try context.save()
                expect(city.isDeleted || city.managedObjectContext == nil)
            }
        }
        await store.arrival(of: "read")
        try await context.perform {
            context.delete(try context.city())
            try context.save()
        }
        store.signal("deleted")
        _ = await other
        let count = try await context.perform { try context.count(for: NSFetchRequest<City>(entityName: "City")) }
        expectEqual(count, 0)
    }

    @Test func `no update is lost between processes with several contexts each`() async throws {
        let folder = try SharedFolder()
        let store = folder.store
        let context = try await store.contextWithCity()

        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    await #expect(processExitsWith: .success) { [store = store as SharedStore] in
                        let coordinator = try store.coordinator()
                        try await withThrowingTaskGroup(of: Void.self) { group in
                            for _ in 0..<2 {
                                let context = NSManagedObjectContext(.privateQueue)
                                context.persistentStoreCoordinator = coordinator
                                group.addTask { try await Self.increment(context, times: 40) }
                            }
                            try await group.waitForAll()
                        }
                    }
                }
            }
        }

        try await context.perform {
            let city = try context.storedCity()
            expectEqual(city.population, 3 * 2 * 40)
        }
    }

    /// Adds one to a number that all processes increment, and tries again if another was faster.
    private static func increment(_ context: NSManagedObjectContext, times: Int) async throws {
        for _ in 0..<times {
            try await context.perform {
                let city = try context.storedCity()
                while true {
                    city.population += 1
                    do {
                        return try context.save()
                    } catch let error as CocoaError where error.code == .managedObjectMerge {
                        context.refresh(city, mergeChanges: false)
                    }
                }
            }
        }
    }
}
