import CoreData
import Expectations
import Foundation
import StrataLocks
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// Copies of stores that are in use.
@Suite("Backups")
struct BackupTests {
    private static let lines = """
        <entity name="Picture" representedClassName="NSManagedObject"><attribute name="n" attributeType="String" optional="YES"/>
        <attribute name="pair" attributeType="Integer 64" defaultValueString="0" usesScalarValueType="YES"/>
        <attribute name="data" attributeType="Binary" optional="YES" allowsExternalBinaryDataStorage="YES"/></entity>
        """

    private let scratch: ScratchFolder
    private let url: URL
    private let model: NSManagedObjectModel

    init() throws {
        scratch = try ScratchFolder()
        url = scratch.file("shop.sqlite")
        model = try NSManagedObjectModel.parsing(Self.lines)
    }

    private func open(_ options: [AnyHashable: Any]? = nil, at place: URL? = nil) throws -> NSPersistentStoreCoordinator
    {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(type: .sqlite, at: place ?? url, options: options)
        return coordinator
    }

    private func context(_ coordinator: NSPersistentStoreCoordinator) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    private func fill(_ coordinator: NSPersistentStoreCoordinator, _ names: String...) throws {
        let context = context(coordinator)
        try context.performAndWait {
            for name in names {
                let picture = context.insert("Picture", ["n": name])
                picture.setValue(Data(repeating: name.utf8.first ?? 0, count: 200_000), forKey: "data")
            }
            try context.save()
        }
    }

    /// The names in a store, each with the size of its data; nothing may be wrong with the file.
    private func contents(_ place: URL) throws -> [String] {
        try expectEqual(StoreVerifier(storeURL: place, model: model).problems(), [])
        let coordinator = try open([NSReadOnlyPersistentStoreOption: true], at: place)
        let context = context(coordinator)
        return try context.performAndWait {
            try context.all("Picture").map { picture in
                let size = (picture.value(forKey: "data") as? Data)?.count ?? -1
                return "\(picture.value(forKey: "n") as? String ?? "") \(size)"
            }.sorted()
        }
    }

    // MARK: - What is copied

    @Test func `a backup of a store in use has what is in its log, its external data and its history`() throws {
        let coordinator = try open([
            NSPersistentHistoryTrackingKey: true, NSSQLitePragmasOption: ["wal_autocheckpoint": "0"],
        ])
        try fill(coordinator, "a", "b")
        let copy = scratch.file("copy.sqlite")

        try coordinator.backUp(to: copy)

        try fill(coordinator, "c")
        try expectEqual(contents(copy), ["a 200000", "b 200000"])
        try expectEqual(contents(url).count, 3)
        let files = try FileManager.default.contentsOfDirectory(
            atPath: scratch.file(".copy_SUPPORT/_EXTERNAL_DATA").path
        )
        expectEqual(files.count, 2)
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.folder.path)
        expect(!names.contains { $0.contains("migration-") || $0.hasPrefix("copy.sqlite-") }, "\(names)")
        let restored = try open([NSPersistentHistoryTrackingKey: true], at: copy)
        let context = context(restored)
        try context.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            let result = try require(try context.execute(request) as? NSPersistentHistoryResult)
            expectEqual((result.result as? [NSPersistentHistoryTransaction])?.count, 1)
        }
        expectEqual(restored.persistentStores[0].identifier, coordinator.persistentStores[0].identifier)
    }

    @Test(arguments: ["_Media", "_Metadata_", "_ModelCaches", "_Migration_1", "_PrimaryKeys"])
    func `a backup has the external data of entities whose tables have names like the store's own`(_ name: String)
        throws
    {
        let model = ModelSketch.model("\(name): n String, data Data")
        model.entitiesByName[name]?.attributesByName["data"]?.allowsExternalBinaryDataStorage = true
        let data = Data(repeating: 7, count: 200_000)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(type: .sqlite, at: url)
        let writer = context(coordinator)
        try writer.performAndWait {
            writer.make(name, "a", ["data": data])
            try writer.save()
        }
        let copy = scratch.file("copy.sqlite")

        try coordinator.backUp(to: copy)

        try expectEqual(StoreVerifier(storeURL: copy, model: model).problems(), [])
        let restored = NSPersistentStoreCoordinator(managedObjectModel: model)
        try restored.addPersistentStore(type: .sqlite, at: copy)
        let reader = context(restored)
        try reader.performAndWait {
            try expectEqual(reader.all(name).map { $0.value(forKey: "data") as? Data }, [data])
        }
    }

    @Test func `backups under load are each the store of one moment`() throws {
        let coordinator = try open([NSSQLitePragmasOption: ["wal_autocheckpoint": "20"]])
        let isOver = Shared(false)
        let copies = (0..<6).map { scratch.file("copy-\($0).sqlite") }
        // Another stack for one of them, as another process has.
        let stacks = [coordinator, try open(), coordinator]
        DispatchQueue.concurrentPerform(iterations: 4) { number in
            guard number > 0 else {
                #expect(throws: Never.self) { for copy in copies { try coordinator.backUp(to: copy) } }
                return isOver.update { $0 = true }
            }
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = stacks[number - 1]
            for round in 1... {
                #expect(throws: Never.self) { try Self.replacePair(number, round, context) }
                if isOver.current { break }
            }
        }
        for copy in copies {
            try expectEqual(StoreVerifier(storeURL: copy, model: model).problems(), [])
            let context = context(try open([NSReadOnlyPersistentStoreOption: true], at: copy))
            try context.performAndWait {
                let pairs = Dictionary(grouping: try context.all("Picture")) { $0.value(forKey: "n") as? String ?? "" }
                for (_, pair) in pairs {
                    expectEqual(pair.count, 2)
                    let rounds = Set(pair.compactMap { $0.value(forKey: "pair") as? Int64 })
                    expectEqual(rounds.count, 1)
                    for picture in pair {
                        let data = picture.value(forKey: "data") as? Data
                        expectEqual(data?.count, 150_000)
                        expectEqual(data?.first, rounds.first.map { UInt8(truncatingIfNeeded: $0) })
                    }
                }
            }
        }
    }

    /// Replaces the pair of pictures of one round by the next, in one save.
    private static func replacePair(_ writer: Int, _ round: Int, _ context: NSManagedObjectContext) throws {
        try context.performAndWait {
            for old in try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Picture"))
            where (old.value(forKey: "n") as? String) == "w\(writer)" {
                context.delete(old)
            }
            for _ in 0..<2 {
                let picture = context.insert("Picture", ["n": "w\(writer)", "pair": round])
                picture.setValue(Data(repeating: UInt8(truncatingIfNeeded: round), count: 150_000), forKey: "data")
            }
            try context.save()
        }
    }

    @Test func `a store that lacks a file of external data is copied as it is`() throws {
        let coordinator = try open()
        try fill(coordinator, "a", "b")
        let folder = scratch.file(".shop_SUPPORT/_EXTERNAL_DATA")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        try FileManager.default.removeItem(at: folder.appendingPathComponent(files[0]))
        let copy = scratch.file("copy.sqlite")

        try coordinator.backUp(to: copy)

        let copied = try FileManager.default.contentsOfDirectory(
            atPath: scratch.file(".copy_SUPPORT/_EXTERNAL_DATA").path
        )
        expectEqual(copied, [files[1]])
    }

    @Test func `a binary store is backed up as a file`() throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(type: .binary, at: scratch.file("shop.store"))
        let context = context(coordinator)
        try context.performAndWait {
            context.insert("Picture", ["n": "a"])
            try context.save()
        }

        try coordinator.backUp(to: scratch.file("copy.store"))

        let other = NSPersistentStoreCoordinator(managedObjectModel: model)
        try other.addPersistentStore(type: .binary, at: scratch.file("copy.store"))
        let reader = self.context(other)
        try expectEqual(reader.performAndWait { try reader.all("Picture").count }, 1)
        let error = expectThrows(CocoaError.self) { try coordinator.backUp(to: scratch.file("copy.store")) }
        expectEqual(error?.code, .fileWriteFileExists)
    }

    // MARK: - What is refused

    @Test func `nothing is replaced, and nothing is left behind by a backup that fails`() throws {
        let coordinator = try open()
        try fill(coordinator, "a")
        let taken = scratch.file("taken.sqlite")
        try Data("mine".utf8).write(to: taken)
        let before = try scratch.names

        let exists = expectThrows(CocoaError.self) { try coordinator.backUp(to: taken) }
        expectEqual(exists?.code, .fileWriteFileExists)
        expectThrows(CocoaError.self) { try coordinator.backUp(to: scratch.file("none/copy.sqlite")) }
        try expectEqual(Data(contentsOf: taken), Data("mine".utf8))
        try expectEqual(scratch.names, before)
    }

    @Test func `a copy that would share the folder of external data is refused, and the data stays`() throws {
        let coordinator = try open()
        try fill(coordinator, "a")
        let sibling = scratch.file("shop.backup")

        let backup = expectThrows(CocoaError.self) { try coordinator.backUp(to: sibling) }
        expectEqual(backup?.code, .persistentStoreOperation)
        let replacing = expectThrows(CocoaError.self) {
            try coordinator.replacePersistentStore(at: sibling, withPersistentStoreFrom: url, type: .sqlite)
        }
        expectEqual(replacing?.code, .persistentStoreOperation)
        try expectEqual(contents(url), ["a 200000"])
    }

    @Test func `what is no file is not backed up, and one of several stores has to be named`() throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let memory = try coordinator.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
        let copy = scratch.file("copy.sqlite")
        expect(
            expectThrows(CocoaError.self) { try coordinator.backUp(to: copy) }?.code == .persistentStoreInvalidType
        )
        try coordinator.remove(memory)
        try coordinator.addPersistentStore(type: .sqlite, at: URL(fileURLWithPath: "/dev/null"))
        expect(
            expectThrows(CocoaError.self) { try coordinator.backUp(to: copy) }?.code == .persistentStoreInvalidType
        )
        let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
        expect(
            expectThrows(CocoaError.self) { try coordinator.backUp(to: copy) }?.code == .persistentStoreOperation
        )
        try coordinator.backUp(store, to: copy)
        try expectEqual(contents(copy), [])
        let other = NSPersistentStoreCoordinator(managedObjectModel: model)
        expectThrows(CocoaError.self) { try other.backUp(store, to: scratch.file("other.sqlite")) }
    }

    @Test func `without space nothing is written`() {
        let error = expectThrows(SQLiteError.self) { try DiskSpace.require(.max, in: scratch.folder.path) }
        expectEqual(error?.code, .full)
        #expect(throws: Never.self) { try DiskSpace.require(1, in: scratch.folder.path) }
    }
}
