import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

extension PrivateServer {
    /// Lets the disk be full, or have room again.
    fileprivate func setFull(_ isFull: Bool) throws {
        let file = folder + "/full"
        if isFull {
            try require(FileManager.default.createFile(atPath: file, contents: nil))
        } else {
            try FileManager.default.removeItem(atPath: file)
        }
    }
}

@Suite("PostgreSQL stores on a full disk", .enabled(if: Server.isThere && Compiler.isThere))
struct DiskTests {
    private func count(_ context: NSManagedObjectContext) throws -> Int {
        try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "City"))
    }

    private func insert(_ count: Int, _ context: NSManagedObjectContext) {
        for _ in 0..<count {
            let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
            city.setValue(String(repeating: "x", count: 1_000), forKey: "name")
        }
    }

    @Test func `a save and a batch fail as a whole with fileWriteOutOfSpace, and pass when there is room again`() throws
    {
        let server = try PrivateServer(environment: ["STRATA_DISK": "1"])
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(
            type: .postgreSQL,
            configuration: nil,
            at: server.url,
            options: [NSPersistentHistoryTrackingKey: true]
        )
        defer { try? coordinator.remove(store) }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            insert(10, context)
            try context.save()
            try server.setFull(true)
            insert(2_000, context)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .fileWriteOutOfSpace)
            expectEqual((error?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "53100")
            expectEqual(context.insertedObjects.count, 2_000)
            // What is there can be read, and small changes have room in the pages that there are.
            let reader = NSManagedObjectContext(.privateQueue)
            reader.persistentStoreCoordinator = coordinator
            try expectEqual(reader.performAndWait { try count(reader) }, 10)
            let rows = (0..<2_000).map { ["name": String(repeating: "y\($0)", count: 200)] }
            let batchError = expectThrows(CocoaError.self) {
                try reader.performAndWait {
                    try reader.execute(NSBatchInsertRequest(entityName: "City", objects: rows))
                }
            }
            expectEqual(batchError?.code, .fileWriteOutOfSpace)
            try expectEqual(reader.performAndWait { try count(reader) }, 10)

            try server.setFull(false)
            try context.save()
            expect(!context.hasChanges)
            try expectEqual(reader.performAndWait { try count(reader) }, 2_010)
        }
        try expectEqual(PostgreSQLStore.problems(at: server.url, GuideModel.make()), [])
    }
}
