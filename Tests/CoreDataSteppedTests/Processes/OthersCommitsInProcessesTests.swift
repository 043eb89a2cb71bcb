import CoreData
import Expectations
import TestSupport
import Testing

/// The same as the suite "Commits of others", with a separate process.
@Suite("Commits of other processes")
struct OthersCommitsInProcessesTests {
    @Test func `commits of another process are found`() async throws {
        let folder = try SharedFolder()
        let store = folder.store
        // A server reports them through the history.
        let context = try store.context(options: Stack.following)
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
            let context = try store.context(options: Stack.following)
            try await context.perform {
                try context.city().name = "Bonn"
                try context.save()
            }
        }
        // A file shows the commit at once, and a server reports it a moment later.
        let end = ContinuousClock.now + .seconds(60)
        while store.kind != .sqlite, try name() != "Bonn", .now < end { try await Task.sleep(for: .milliseconds(1)) }
        try expectEqual(name(), "Bonn")
    }
}
