import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

extension PrivateServer {
    /// Files in the server's folder that control the state of its disk.
    fileprivate enum DiskState: String {
        /// The disk is full.
        case full
        /// The next flush of the log fails, and removes the file.
        case fail
        /// Flushes of the log do not end.
        case hold
    }

    fileprivate func isSet(_ state: DiskState) -> Bool {
        FileManager.default.fileExists(atPath: "\(folder)/\(state)")
    }

    fileprivate func set(_ state: DiskState) throws {
        try require(FileManager.default.createFile(atPath: "\(folder)/\(state)", contents: nil))
    }

    fileprivate func unset(_ state: DiskState) throws {
        try FileManager.default.removeItem(atPath: "\(folder)/\(state)")
    }
}

@Suite("PostgreSQL stores on a disk that is full, slow or broken", .enabled(if: Server.isThere && Compiler.isThere))
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
            try server.set(.full)
            insert(2_000, context)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .fileWriteOutOfSpace)
            expectEqual((error?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "53100")
            expectEqual(context.insertedObjects.count, 2_000)
            // Stored rows can be read, and small changes fit into the pages that exist.
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

            try server.unset(.full)
            try context.save()
            expect(!context.hasChanges)
            try expectEqual(reader.performAndWait { try count(reader) }, 2_010)
        }
        try expectEqual(PostgreSQLStore.problems(at: server.url, GuideModel.make()), [])
    }

    @Test func `saves of one process commit together while the disk flushes, and a follower misses none`() throws {
        let server = try PrivateServer(["fsync=on", "synchronous_commit=on"], environment: ["STRATA_DISK": "1"])
        let stack = try ServerStack(server.url, history: true)
        // This insertion draws the keys of a block, which takes a flush as well.
        try stack.insert("Rome")
        let start = stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
        let session = try server.connection()
        try server.set(.hold)
        let saves = (0..<8).map { number in Errand { try stack.insert("\(number)") } }
        // All saves have come to their commits, so the next flush serves all of them.
        let committing = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = 'COMMIT'"
        let together = Result { try waitUntil { try session.query(committing).rowCount == 8 } }
        try server.unset(.hold)
        for save in saves { try save.wait() }
        try together.get()
        let context = stack.context()
        let followed = try context.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: start)
            return try (context.execute(request) as? NSPersistentHistoryResult)?.result
                as? [NSPersistentHistoryTransaction]
        }
        expectEqual(followed?.count, 8)
        expectEqual(Set(followed?.compactMap { $0.changes?.first?.changedObjectID } ?? []).count, 8)
    }

    @Test func `a save whose server falls as it flushes the log is found to be there, and is there once`() throws {
        let server = try PrivateServer(["fsync=on", "synchronous_commit=on"], environment: ["STRATA_DISK": "1"])
        let stack = try ServerStack(server.url)
        try stack.insert("Rome")
        try server.set(.fail)
        // The server does not know whether the commit is on the disk, but it is in the log, and the server finds it
        // there later.
        try stack.insert("Oslo")
        expect(!server.isSet(.fail))
        try expectEqual(stack.cities(), ["Oslo", "Rome"])
    }
}
