import CoreData
import Expectations
import TestSupport
import Testing

extension FailingDiskTests {
    private func context(_ coordinator: NSPersistentStoreCoordinator) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    private func names(_ context: NSManagedObjectContext) throws -> [String] {
        try context.performAndWait {
            try context.fetch(NSFetchRequest<Venue>(entityName: "Venue")).compactMap(\.name).sorted()
        }
    }

    private func store(_ name: String, _ coordinator: NSPersistentStoreCoordinator) throws {
        let context = context(coordinator)
        try context.performAndWait {
            Venue(context: context).name = name
            try context.save()
        }
    }

    @Test
    func `a version that a failed read has ended is an error, and never the newest one`() throws {
        try withStore { url in
            FailingDisk.fail(url.path, at: 0)
            let coordinator = try open(url)
            try store("old", coordinator)
            let (pinned, sharing) = (context(coordinator), context(coordinator))
            try pinned.performAndWait {
                try pinned.setQueryGenerationFrom(.current)
                // Other pages than those of the venues.
                _ = try pinned.count(for: NSFetchRequest<City>(entityName: "City"))
            }
            FailingDisk.fail(url.path, at: 1)
            expectThrows(CocoaError.self) { try names(pinned) }
            FailingDisk.fail(url.path, at: 0)
            let token = pinned.performAndWait { pinned.queryGenerationToken }
            try sharing.performAndWait { try sharing.setQueryGenerationFrom(token) }
            // Nothing was committed since, so this one would share the connection if it were good.
            let late = context(coordinator)
            try late.performAndWait { try late.setQueryGenerationFrom(.current) }
            try expectEqual(names(late), ["old"])
            try store("new", coordinator)
            for context in [pinned, sharing] {
                let error = expectThrows(CocoaError.self) { try names(context) }
                expectEqual(error?.code, .persistentStoreOperation)
                expectEqual(error?.localizedDescription.contains("lost"), true)
            }
            try expectEqual(names(late), ["old"])
            try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
            try expectEqual(names(pinned), ["new", "old"])
            try close(coordinator)
        }
    }
}
