import CoreData
import Expectations
import TestSupport
import Testing

/// Errors of the disk must not have these effects; `stress iofault` has found each of them.
@Suite("Stores on a disk that fails", .serialized)
struct FailingDiskTests {
    /// Runs `body` with the URL of a store that may fail, in a separate folder.
    func withStore(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer {
            FailingDisk.fail("", at: 0)
            try? FileManager.default.removeItem(at: folder)
        }
        try body(folder.appendingPathComponent("store.sqlite"))
    }

    func open(
        _ url: URL,
        model: NSManagedObjectModel = GuideModel.make(),
        synchronous: String = "FULL"
    ) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        coordinator.unreportableErrorHandler = { _, _ in }
        let pragmas = ["synchronous": synchronous]
        let options: [AnyHashable: Any] = [NSSQLitePragmasOption: pragmas]
        try coordinator.addPersistentStore(type: .sqlite, configuration: nil, at: url, options: options)
        return coordinator
    }

    func close(_ coordinator: NSPersistentStoreCoordinator) throws {
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    @Test
    func `a store opens with its write-ahead log or not at all, whichever operation fails`() throws {
        var operations = 0
        try withStore { url in
            FailingDisk.fail(url.path, at: 0)
            let coordinator = try open(url)
            operations = FailingDisk.operations
            try close(coordinator)
        }
        try require(operations > 10)
        for point in 1...operations {
            try withStore { url in
                FailingDisk.fail(url.path, at: point)
                let coordinator = try? open(url)
                FailingDisk.fail(url.path, at: 0)
                guard let coordinator else { return }
                // The file itself says so in its 19th byte: 2 stands for a log.
                let header = try require(try FileHandle(forReadingFrom: url).read(upToCount: 20))
                expectEqual(header[18], 2, "operation \(point) failed")
                try close(coordinator)
            }
        }
    }

    @Test
    func `a save that failed does not come back when the disk works again`() throws {
        // The disk fails from each operation of a save on. There is no read before, so that the writer's connection is
        // the file's only one.
        var point = 0
        var operations = 0
        repeat {
            point += 1
            try withStore { url in
                FailingDisk.fail(url.path, at: 0)
                let coordinator = try open(url)
                let context = NSManagedObjectContext(.privateQueue)
                context.persistentStoreCoordinator = coordinator
                try context.performAndWait {
                    let venue = Venue(context: context)
                    venue.name = "one"
                    try context.save()
                    context.delete(venue)
                    Venue(context: context).name = "two"
                    FailingDisk.fail(url.path, at: point, forGood: true)
                    let hasSaved = (try? context.save()) != nil
                    operations = FailingDisk.operations
                    FailingDisk.fail(url.path, at: 0)
                    if !hasSaved {
                        let stored = NSManagedObjectContext(.privateQueue)
                        stored.persistentStoreCoordinator = coordinator
                        let names = try stored.performAndWait {
                            try stored.fetch(NSFetchRequest<Venue>(entityName: "Venue")).map(\.name)
                        }
                        expectEqual(names, ["one"], "from operation \(point) on")
                        try context.save()
                    }
                    let request = NSFetchRequest<Venue>(entityName: "Venue")
                    try expectEqual(context.fetch(request).map(\.name), ["two"], "from operation \(point) on")
                }
                try close(coordinator)
            }
        } while point < operations
        expect(point > 3)
    }
}
