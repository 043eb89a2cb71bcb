import CoreData
import Expectations
import Foundation
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLiteStore

@Suite("Files that are removed or replaced while a store is open")
struct MovedFileTests {
    /// The ways in which the files of an open store may go.
    enum Mishap: String, CaseIterable, Sendable {
        /// `rm store.sqlite*`
        case removed
        /// `rm store.sqlite-wal`
        case logRemoved
        /// `rm store.sqlite-shm`
        case indexRemoved
        /// `mv other.sqlite store.sqlite`
        case replaced
        /// The same, with the log of the other store.
        case replacedWithLog
        /// A copy of the same store, made before.
        case restored

        var word: String {
            switch self {
            case .removed, .logRemoved, .indexRemoved: "was removed"
            case .replaced, .replacedWithLog, .restored: "was replaced"
            }
        }

        /// The cities in the file at the path afterwards, if it is whole.
        var cities: [String]? {
            switch self {
            case .removed, .logRemoved, .indexRemoved: nil
            case .replaced, .replacedWithLog: ["Ulm"]
            case .restored: ["Bonn"]
            }
        }
    }

    private let stack: Stack
    private let context: NSManagedObjectContext
    private let backup: URL
    private let files = FileManager.default

    /// A store with the city of Bonn, a copy of it, and Kiel after that.
    init() throws {
        stack = try Stack(.sqlite)
        context = stack.context()
        backup = stack.folder.appendingPathComponent("backup.sqlite")
        try context.performAndWait {
            context.makeCity("Bonn")
            try context.save()
        }
        try NSPersistentStoreCoordinator.backUpPersistentStore(at: stack.storeURL, type: .sqlite, to: backup)
        try context.performAndWait {
            context.makeCity("Kiel")
            try context.save()
        }
    }

    private func occur(_ mishap: Mishap) throws {
        let path = stack.storeURL.path
        func move(_ source: String, _ suffixes: [String]) throws {
            for suffix in suffixes {
                try? files.removeItem(atPath: path + suffix)
                try files.moveItem(atPath: source + suffix, toPath: path + suffix)
            }
        }
        switch mishap {
        case .removed: for suffix in ["", "-wal", "-shm"] { try files.removeItem(atPath: path + suffix) }
        case .logRemoved: try files.removeItem(atPath: path + "-wal")
        case .indexRemoved: try files.removeItem(atPath: path + "-shm")
        case .restored: try move(backup.path, [""])
        case .replaced, .replacedWithLog:
            let other = try Stack(.sqlite)
            let cities = other.context()
            try cities.performAndWait {
                cities.makeCity("Ulm")
                try cities.save()
            }
            let copy = stack.folder.appendingPathComponent("other.sqlite").path
            // As they are while the other store is open: the row is in the log.
            for suffix in ["", "-wal", "-shm"] {
                try files.copyItem(atPath: other.storeURL.path + suffix, toPath: copy + suffix)
            }
            if mishap == .replacedWithLog {
                try move(copy, ["", "-wal", "-shm"])
            } else {
                let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
                let store = try coordinator.addPersistentStore(type: .sqlite, at: URL(fileURLWithPath: copy))
                try coordinator.remove(store)
                try move(copy, [""])
            }
        }
    }

    private func requireMoved(_ mishap: Mishap, _ body: () throws -> Void) {
        let error = expectThrows(CocoaError.self) { try body() }
        expectEqual(error?.code, .persistentStoreOperation)
        expect(error?.localizedDescription.contains(mishap.word) == true, "\(String(describing: error))")
    }

    /// The cities in the file at the path, for a program that opens it now.
    private func cities() throws -> [String] {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(type: .sqlite, at: stack.storeURL)
        let reader = NSManagedObjectContext(.privateQueue)
        reader.persistentStoreCoordinator = coordinator
        let names = try reader.performAndWait {
            try reader.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name).sorted()
        }
        try coordinator.remove(store)
        return names
    }

    @Test(arguments: Mishap.allCases)
    func `nothing is taken for saved that is in no file, and the file in the place stays whole`(_ mishap: Mishap)
        async throws
    {
        await context.perform { context.makeCity("Trier") }
        try occur(mishap)

        context.performAndWait { requireMoved(mishap) { try context.save() } }
        await expectThrows(CocoaError.self) { _ = try await stack.coordinator.check(within: .seconds(20)) }
        context.performAndWait {
            expectEqual(context.insertedObjects.count, 1, "the change can be saved elsewhere")
            requireMoved(mishap) {
                let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Worms"]])
                _ = try context.execute(insert)
            }
        }
        let reader = stack.context()
        reader.performAndWait {
            requireMoved(mishap) {
                // A read looks at the files every fifty milliseconds at least.
                let deadline = ContinuousClock.now + .seconds(20)
                while ContinuousClock.now < deadline {
                    _ = try reader.count(for: NSFetchRequest<City>(entityName: "City"))
                }
            }
        }
        for store in stack.coordinator.persistentStores { try stack.coordinator.remove(store) }
        switch mishap {
        case .removed: expectEqual(try files.contentsOfDirectory(atPath: stack.folder.path), ["backup.sqlite"])
        case .logRemoved, .indexRemoved: break
        default:
            try expectEqual(cities(), require(mishap.cities))
            try expectEqual(StoreVerifier(storeURL: stack.storeURL, model: GuideModel.make()).problems(), [])
        }
    }

    @Test func `a file that is put back is saved to as before`() throws {
        let path = stack.storeURL.path
        for suffix in ["", "-wal", "-shm"] {
            try files.moveItem(atPath: path + suffix, toPath: path + suffix + "-aside")
        }
        try context.performAndWait {
            context.makeCity("Trier")
            requireMoved(.removed) { try context.save() }
            for suffix in ["", "-wal", "-shm"] {
                try files.moveItem(atPath: path + suffix + "-aside", toPath: path + suffix)
            }
            try context.save()
        }
        try expectEqual(cities(), ["Bonn", "Kiel", "Trier"])
    }

    @Test func `a file that vanishes while a save is prepared is noticed`() throws {
        let path = stack.storeURL.path
        let observer = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextWillSave,
            object: context,
            queue: nil
        ) { _ in for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
        defer { NotificationCenter.default.removeObserver(observer) }
        context.performAndWait {
            context.makeCity("Trier")
            requireMoved(.removed) { try context.save() }
            expect(context.hasChanges)
        }
    }

    @Test func `a store without a write-ahead log is looked at, too`() throws {
        let plain = try Stack(
            .sqlite,
            model: GuideModel.make(),
            options: [NSSQLitePragmasOption: ["journal_mode": "DELETE"]]
        )
        let writer = plain.context()
        try writer.performAndWait {
            writer.makeCity("Bonn")
            try writer.save()
            try files.removeItem(at: plain.storeURL)
            writer.makeCity("Kiel")
            requireMoved(.removed) { try writer.save() }
        }
        expect(!files.fileExists(atPath: plain.storeURL.path))
    }

    @Test func `a check notices another store in the same file`() async throws {
        let other = try Stack(.sqlite)
        let uuid = try require(other.coordinator.persistentStores.first?.identifier)
        // As a tool does that writes into the file in place.
        try stack.sql("UPDATE Z_METADATA SET Z_UUID = '\(uuid)'")
        let error = await expectThrows(CocoaError.self) {
            _ = try await stack.coordinator.check(within: .seconds(20))
        }
        expectEqual(error?.code, .persistentStoreOperation)
        expect(error?.localizedDescription.contains("another UUID") == true)
    }
}
