import CoreData
import Expectations
import TestSupport
import Testing

/// As the suite "Commits of others", with a process of its own.
@Suite("Commits of other processes")
struct OthersCommitsInProcessesTests {
    @Test func `commits of another process are found`() async throws {
        let folder = try SharedFolder()
        let store = folder.store
        let context = try store.context()
        let id = try context.performAndWait {
            context.makeCity("Ulm")
            try context.save()
            return try context.city().objectID
        }
        func name() throws -> String {
            let new = NSManagedObjectContext(.privateQueue)
            new.persistentStoreCoordinator = context.persistentStoreCoordinator
            return try new.performAndWait { try new.get(id, City.self).name }
        }
        try expectEqual(name(), "Ulm")
        await #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let context = try store.context()
            try await context.perform {
                try context.city().name = "Bonn"
                try context.save()
            }
        }
        try expectEqual(name(), "Bonn")
    }
}
