import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// The steps around a migration: a backup, a chain of versions, progress, and the turn.
@Suite("The way of a migration")
struct MigrationWayTests {
    private static func filled(_ sketch: String) throws -> AgingStore {
        let store = try AgingStore()
        try store.use(ModelSketch.model(sketch)) { context in
            context.make("A", "a1")
            try context.save()
        }
        return store
    }

    // MARK: - Backups

    @Test func `the store is copied before its migration, under the version that it had`() throws {
        let store = try Self.filled("A: n String")
        let folder = store.scratch.file("backups")
        let options: [AnyHashable: Any] = [NSPersistentStoreMigrationBackupFolderOption: folder]
        for sketch in ["A: n String, x Int32", "A: n String, x Int32", "A: n String, y Int32"] {
            try store.use(ModelSketch.model(sketch), options) { _ in }
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        expectEqual(names.count, 2, "one for each version that was left: \(names)")
        expect(names.allSatisfy { $0.hasPrefix("aging-") && $0.hasSuffix(".sqlite") })
        let readable = try ["A: n String", "A: n String, x Int32"].map { sketch in
            let model = ModelSketch.model(sketch)
            let copy = MigrationBackup.url(of: store.url, in: folder, hashes: model.entityVersionHashesByName)
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
            try coordinator.addPersistentStore(type: .sqlite, at: copy)
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            return try context.performAndWait { try context.all("A").count }
        }
        expectEqual(readable, [1, 1])
    }

    @Test func `a migration that cannot be done makes no backup, and one that cannot be made keeps the store as it is`()
        throws
    {
        let store = try Self.filled("A: n String")
        let folder = store.scratch.file("backups")
        let option: [AnyHashable: Any] = [NSPersistentStoreMigrationBackupFolderOption: folder]
        expectThrows(CocoaError.self) { try store.use(ModelSketch.model("A: n Date"), option) { _ in } }
        expect(!FileManager.default.fileExists(atPath: folder.path))
        try Data().write(to: folder)
        let before = try store.contents()
        #expect(throws: (any Error).self) { try store.use(ModelSketch.model("A: n String, x Int32"), option) { _ in } }
        try expectEqual(store.contents(), before)
    }

    // MARK: - Readers

    @Test(.timeLimit(.minutes(20)))
    func `m120 a reader in the middle of a migration by objects reads on, and holds nothing up`() throws {
        let store = try Self.filled("A: n String")
        let reader = try Connection(path: store.url.path, access: .readOnly)
        defer { reader.close() }
        try reader.execute("BEGIN")
        try expectEqual(reader.firstInt64("SELECT count(*) FROM ZA"), 1)
        let (old, new) = (ModelSketch.model("A: n String"), ModelSketch.model("A: n String, x Int32"))
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: old, destinationModel: new)

        let start = ContinuousClock.now
        try StoreMigration.run(at: store.url, from: old, to: new, by: mapping, mayDropValues: true)

        // A store waits 240 seconds for others.
        expect(.now - start < .seconds(120))
        try expectEqual(reader.firstString("SELECT ZN FROM ZA"), "a1")
        try expectEqual(reader.firstInt64("SELECT count(*) FROM pragma_table_info('ZA') WHERE name = 'ZX'"), 0)
        try reader.execute("ROLLBACK")
        try expectEqual(reader.firstInt64("SELECT count(*) FROM pragma_table_info('ZA') WHERE name = 'ZX'"), 1)
    }

    // MARK: - Chains

    /// A folder with versions, whose names sort correctly only if their numbers count.
    private static func versions(
        _ scratch: ScratchFolder,
        _ types: [String]
    ) throws -> (models: [NSManagedObjectModel], folder: URL) {
        let package = scratch.file("Chain.xcdatamodeld")
        let unique = UUID().uuidString.prefix(8)
        var models: [NSManagedObjectModel] = []
        for (index, properties) in types.enumerated() {
            let version = package.appendingPathComponent("Chain\(index == 0 ? "" : " \(index * 5 + 4)").xcdatamodel")
            try FileManager.default.createDirectory(at: version, withIntermediateDirectories: true)
            let attributes = (["n String"] + properties.split(separator: ",").map(String.init)).map { property in
                let words = property.split(separator: " ", maxSplits: 1)
                return
                    "<attribute name=\"\(words[0])\" attributeType=\"\(words[1])\" optional=\"YES\"/>"
            }
            try Data(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><model><entity name=\"A\" representedClassName=\"NSManagedObject\" versionHashModifier=\"\(unique)\">\(attributes.joined())</entity></model>"
                    .utf8
            ).write(to: version.appendingPathComponent("contents"))
            models.append(try NSManagedObjectModel(reading: version))
        }
        return (models, package)
    }

    @Test func `m018 a store goes over the versions in between where no one step leads, if that is allowed`() throws {
        let store = try AgingStore()
        // A text becomes a number by way of a version without it. The last version's name ends with " 14", which sorts
        // after " 9".
        let (models, folder) = try Self.versions(
            store.scratch,
            ["code String", "size Integer 32", "size Integer 32,code Integer 64"]
        )
        try store.use(models[0]) { context in
            context.make("A", "a1", ["code": "7"])
            try context.save()
        }
        let before = try store.contents()
        let refusal = expectThrows(CocoaError.self) { try store.use(models[2]) { _ in } }
        expectEqual(refusal?.code, .migrationMissingMappingModel)
        try expectEqual(store.contents(), before)

        let progress = Progress(totalUnitCount: 10)
        let options: [AnyHashable: Any] = [
            NSPersistentStoreAllowsProgressiveMigrationOption: folder,
            NSPersistentStoreMigrationProgressOption: progress,
        ]
        let lines = try store.use(models[2], options) { try $0.dump() }

        expectEqual(lines, ["A a1 code=- size=-"])
        expectEqual(progress.fractionCompleted, 1)
        try expectEqual(store.problems(models[2]), [])
    }

    @Test func `a chain that does not lead to the end takes no step`() throws {
        let store = try AgingStore()
        let (models, folder) = try Self.versions(
            store.scratch,
            ["code String", "code String,size Integer 32", "code Integer 64"]
        )
        try store.use(models[0]) { context in
            context.make("A", "a1", ["code": "7"])
            try context.save()
        }
        let before = try store.contents()
        let error = expectThrows(CocoaError.self) {
            try store.use(models[2], [NSPersistentStoreAllowsProgressiveMigrationOption: folder]) { _ in }
        }
        expectEqual(error?.code, .migrationMissingMappingModel)
        expectEqual(error?.localizedDescription.contains("No way over the 1 versions"), true)
        try expectEqual(store.contents(), before)
    }

    // MARK: - Progress

    @Test func `the progress of the thread that adds the store moves on, and cancels`() throws {
        let store = try Self.filled("A: n String, x Int16\nB: n String, x Int16")
        let next = "A: n String, x Int32\nB: n String, x Int32"
        let progress = Progress(totalUnitCount: 2)
        progress.becomeCurrent(withPendingUnitCount: 1)
        try store.use(ModelSketch.model(next)) { _ in }
        progress.resignCurrent()
        expectEqual(progress.fractionCompleted, 0.5)

        let cancelled = Progress(totalUnitCount: 1)
        cancelled.cancel()
        let before = try store.contents()
        let error = expectThrows(CocoaError.self) {
            try store.use(
                ModelSketch.model("A: n String, x Int64\nB: n String, x Int64"),
                [NSPersistentStoreMigrationProgressOption: cancelled]
            ) { _ in }
        }
        expectEqual(error?.code, .migrationCancelled)
        try expectEqual(store.contents(), before)
    }

    @Test func `a description has the options as properties`() {
        let description = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/tmp/a.sqlite"))
        expect(!description.allowsProgressiveMigration)
        expectEqual(description.migrationBackupFolder, nil)
        expectEqual(description.migrationProgress, nil)
        description.allowsProgressiveMigration = true
        expect(description.allowsProgressiveMigration)
        description.setOption(
            NSURL(fileURLWithPath: "/tmp/A.xcdatamodeld"),
            forKey: NSPersistentStoreAllowsProgressiveMigrationOption
        )
        description.migrationBackupFolder = URL(fileURLWithPath: "/tmp/backups")
        description.migrationProgress = Progress(totalUnitCount: 3)
        expect(description.allowsProgressiveMigration)
        expectEqual(description.migrationBackupFolder, URL(fileURLWithPath: "/tmp/backups"))
        expect(description.allOptions[NSPersistentStoreMigrationBackupFolderOption] is URL)
        expectEqual(description.migrationProgress?.totalUnitCount, 3)
    }

    // MARK: - The turn

    @Test func `one that finds another migrating waits, and gives up at the deadline`() throws {
        let store = try Self.filled("A: n String")
        let turn = try MigrationTurn(of: store.url, timeout: 1)
        let error = try withExtendedLifetime(turn) {
            try #require(throws: CocoaError.self) {
                try store.use(ModelSketch.model("A: n String, x Int32"), [NSPersistentStoreTimeoutOption: 0.1]) { _ in }
            }
        }
        expectEqual(error.code, .persistentStoreTimeout)
        expect(error.localizedDescription.contains("is migrating it"))
    }

    @Test func `the turn ends with its holder, and leaves no file`() throws {
        let store = try Self.filled("A: n String")
        try store.use(ModelSketch.model("A: n String, x Int32")) { _ in }
        try expectEqual(store.scratch.names.filter { $0.contains("migration") }, [])
        let taken = Shared(0)
        DispatchQueue.concurrentPerform(iterations: 16) { _ in
            guard let turn = try? MigrationTurn(of: store.url, timeout: 30) else { return }
            withExtendedLifetime(turn) {
                let before = taken.current
                taken.update { $0 = before + 1 }
            }
        }
        expectEqual(taken.current, 16, "one at a time")
    }

    // MARK: - Plans of stores

    @Test func `a plan of a store counts objects and shows which do not fit`() throws {
        let store = try AgingStore()
        try store.use(ModelSketch.model("A: n String, code String\nB: n String, x Int16\nGone: n String")) { context in
            for name in ["a1", "a2", "a3"] { context.make("A", name, ["code": name == "a3" ? "other" : "same"]) }
            context.insert("B")
            context.make("B", "b2")
            context.make("Gone", "g")
            try context.save()
        }
        let before = try store.contents()
        let next = ModelSketch.model("A: n String, code String | unique code\nB: n String!, x Double\nNew: n String")

        let plan = try NSMigrationPlan(forStoreAt: store.url, to: next)

        expect(!plan.isPossible)
        expectEqual(plan.obstacles, [])
        expect(
            plan.entities.map { "\($0.name) \($0.objectCount ?? -1) \($0.isCopied)" } == [
                "A 3 false", "B 2 true", "New -1 false", "Gone 1 false",
            ]
        )
        expectEqual(plan.problems.map(\.entity).sorted(), ["A", "B"])
        expect(plan.problems.contains { $0.property == "code" && $0.reason.contains("2 objects share 1 value") })
        expect(plan.problems.contains { $0.property == "n" && $0.reason.contains("1 objects have none") })
        expect(plan.description.contains("converted entity B (2 objects, copied)"))
        try expectEqual(store.contents(), before)
        let error = try #require(throws: CocoaError.self) { try store.use(next) { _ in } }
        expectEqual(error.code, .migration)
    }
}
