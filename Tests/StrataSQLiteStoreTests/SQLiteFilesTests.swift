import CoreData
import Expectations
import Foundation
import StrataRows
import StrataSQLite
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLiteStore

@Suite("Files and metadata of SQLite stores")
struct SQLiteFilesTests {
    // MARK: - Metadata

    @Test func `a new store has all of Apple's keys`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let model = harness.coordinator.managedObjectModel

        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: harness.url)

        expect(
            Set(metadata.keys) == [
                "NSStoreType", "NSStoreUUID", "NSStoreModelVersionHashes", "NSStoreModelVersionHashesVersion",
                "NSStoreModelVersionIdentifiers", "NSPersistenceFrameworkVersion", "_NSAutoVacuumLevel",
                "NSStoreModelVersionHashesDigest", "NSStoreModelVersionChecksumKey",
            ]
        )
        expectEqual(metadata[NSStoreUUIDKey] as? String, harness.store.identifier)
        expectEqual(metadata[NSStoreModelVersionHashesKey] as? [String: Data], model.entityVersionHashesByName)
        expectEqual(metadata["NSStoreModelVersionChecksumKey"] as? String, model.versionChecksum)
        expectEqual(metadata[NSStoreModelVersionIdentifiersKey] as? [String], [])
        expectEqual(UUID(uuidString: harness.store.identifier)?.uuidString, harness.store.identifier)
    }

    @Test func `an application's keys are written with the next save, and kept`() throws {
        let folder = try StoreFolder()
        let model = StoreModels.pets()
        let harness = try StoreHarness(model, in: folder)
        harness.coordinator.setMetadata(["color": "red", NSStoreTypeKey: "XML"], for: harness.store)
        expectEqual(harness.coordinator.metadata(for: harness.store)[NSStoreTypeKey] as? String, NSSQLiteStoreType)
        try expect(
            NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: harness.url)["color"] == nil
        )

        try harness.insert(harness.row("Cat", -1))

        func stored() throws -> [String: Any] {
            try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: harness.url)
        }
        try expectEqual(stored()["color"] as? String, "red")
        try harness.coordinator.remove(harness.store)
        try NSPersistentStoreCoordinator.setMetadata(["size": 3], type: .sqlite, at: harness.url)
        try expect(stored()["color"] == nil)
        try expectEqual(stored()["size"] as? Int, 3)
        try expectEqual(stored()[NSStoreModelVersionHashesKey] as? [String: Data], model.entityVersionHashesByName)
    }

    @Test func `metadata that is no property list keeps a save from being made`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        harness.store.metadata = ["object": NSObject()]

        let error = expectThrows(CocoaError.self) { try harness.insert(harness.row("Cat", -1)) }

        expectEqual(error?.code, .persistentStoreSave)
        try expectEqual(harness.sql("SELECT COUNT(*) FROM ZANIMAL"), ["0"])
        harness.store.metadata = ["number": 1]
        try harness.insert(harness.row("Cat", -1))
        #expect(throws: Never.self) { try harness.store.saveMetadata() }
    }

    @Test func `a new identifier is written`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        harness.store.identifier = "D0F3A3C4-6A6E-4E2B-9A53-0B2A3C1D4E5F"

        try harness.store.saveMetadata()

        try expectEqual(harness.sql("SELECT Z_UUID FROM Z_METADATA"), ["D0F3A3C4-6A6E-4E2B-9A53-0B2A3C1D4E5F"])
    }

    // MARK: - Replacing, destroying, moving

    private static func photos() -> NSManagedObjectModel {
        StoreModels.model(StoreModels.entity("Photo", [StoreModels.attribute("pixels", .binaryData, isExternal: true)]))
    }

    /// The same store in another file, with another coordinator.
    private func copy(of target: StoreHarness, _ model: NSManagedObjectModel) throws -> StoreHarness {
        let url = target.folder.file("source.sqlite")
        try NSPersistentStoreCoordinator.backUpPersistentStore(at: target.url, type: .sqlite, to: url)
        return try StoreHarness(model, at: url, in: target.folder)
    }

    @Test func `a store is replaced under the eyes of another that has it open`() throws {
        let folder = try StoreFolder()
        let model = Self.photos()
        let target = try StoreHarness(model, at: folder.file("target.sqlite"), in: folder)
        let source = try copy(of: target, model)
        let large = Data(repeating: 7, count: 200_000)
        try source.insert(source.row("Photo", -1, ["pixels": large]), source.row("Photo", -2))
        try target.insert(target.row("Photo", -1))

        try NSPersistentStoreCoordinator(managedObjectModel: model).replacePersistentStore(
            at: target.url,
            withPersistentStoreFrom: source.url,
            type: .sqlite
        )

        try expectEqual(target.rows.rows(for: target.plan("Photo")).count, 2)
        try expect(
            target.stored("Photo", 1).data(require(target.layout("Photo").slot(named: "pixels")).word) == large
        )
        try expectEqual(source.rows.count(for: source.plan("Photo")), 2)
        try expectEqual(StoreVerifier(storeURL: target.url, model: model).problems(), [])
    }

    @Test func `the destination's options count when a store is replaced`() throws {
        let folder = try StoreFolder()
        let target = try StoreHarness(StoreModels.pets(), at: folder.file("target.sqlite"), in: folder)
        let source = try copy(of: target, StoreModels.pets())
        try source.insert(source.row("Cat", -1))
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StoreModels.pets())
        func replace(_ options: [AnyHashable: Any]) throws {
            try coordinator.replacePersistentStore(
                at: target.url,
                destinationOptions: options,
                withPersistentStoreFrom: source.url,
                type: .sqlite
            )
        }

        let refused = expectThrows(CocoaError.self) { try replace([NSReadOnlyPersistentStoreOption: true]) }
        expectEqual(refused?.code, .persistentStoreOperation)

        let other = try Connection(path: target.url.path, access: .readWrite)
        try other.execute("BEGIN IMMEDIATE")
        let timedOut = expectThrows(CocoaError.self) { try replace([NSPersistentStoreTimeoutOption: 0.01]) }
        expectEqual(timedOut?.code, .persistentStoreTimeout)
        try other.execute("ROLLBACK")
        try expectEqual(target.rows.count(for: target.plan("Animal")), 0)

        try replace([NSPersistentStoreTimeoutOption: 5])
        try expectEqual(target.rows.count(for: target.plan("Animal")), 1)
    }

    @Test func `a store replaces nothing, or what is no database`() throws {
        let folder = try StoreFolder()
        let source = try StoreHarness(StoreModels.pets(), at: folder.file("source.sqlite"), in: folder)
        try source.insert(source.row("Cat", -1))
        try Data(repeating: 65, count: 5000).write(to: folder.file("letter.sqlite"))

        for name in ["new.sqlite", "letter.sqlite"] {
            try replace(at: folder.file(name), with: source.url)
            let copy = try StoreHarness(StoreModels.pets(), at: folder.file(name), in: folder)
            try expectEqual(copy.rows.count(for: copy.plan("Animal")), 1)
        }
        let error = expectThrows(CocoaError.self) {
            try replace(at: source.url, with: folder.file("missing.sqlite"))
        }
        expectEqual(error?.code, .fileReadNoSuchFile)
        try expectEqual(source.rows.count(for: source.plan("Animal")), 1)
    }

    private func replace(at destination: URL, with source: URL) throws {
        try SQLiteEngine.replace(
            at: destination,
            SQLiteOptions(url: destination),
            with: source,
            SQLiteOptions(url: source)
        )
    }

    @Test func `a destroyed store is empty for those who have it open, and is made anew`() throws {
        let folder = try StoreFolder()
        let model = Self.photos()
        let harness = try StoreHarness(model, in: folder)
        try harness.insert(harness.row("Photo", -1, ["pixels": Data(repeating: 7, count: 200_000)]))

        try NSPersistentStoreCoordinator(managedObjectModel: model).destroyPersistentStore(
            at: harness.url,
            type: .sqlite
        )

        let error = expectThrows(CocoaError.self) { try harness.rows.rows(for: harness.plan("Photo")) }
        expectEqual(error?.code, .sqlite)
        try expect(
            FileManager.default.contentsOfDirectory(atPath: folder.url.path).allSatisfy {
                !$0.hasSuffix("_SUPPORT")
            }
        )
        let again = try StoreHarness(model, in: folder)
        try expectEqual(again.rows.count(for: again.plan("Photo")), 0)
        expect(again.store.identifier != harness.store.identifier)
    }

    @Test func `a store without a file is destroyed with what is left of its log, and leaves an empty file`() throws {
        let folder = try StoreFolder()
        let url = folder.file()
        for suffix in ["-wal", "-shm"] { try Data("left".utf8).write(to: URL(fileURLWithPath: url.path + suffix)) }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.photos())

        try coordinator.destroyPersistentStore(at: url, type: .sqlite)
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.url.path), [url.lastPathComponent])
        let nowhere = folder.file("none/store.sqlite")
        try coordinator.destroyPersistentStore(at: nowhere, type: .sqlite)
        expect(!FileManager.default.fileExists(atPath: nowhere.path))
        let force: [AnyHashable: Any] = [NSPersistentStoreForceDestroyOption: true]
        try coordinator.destroyPersistentStore(at: url, type: .sqlite, options: force)
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.url.path), [])
        let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
        expect(store.identifier != nil)
    }

    @Test(arguments: ["no store", "WAL", "DELETE", "TRUNCATE"])
    func `a store is destroyed at once whatever journal it has, and so is an empty file`(_ journal: String) throws {
        let folder = try StoreFolder()
        let url = folder.file()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.photos())
        if journal == "no store" {
            try Data().write(to: url)
        } else {
            let options: [AnyHashable: Any] = [NSSQLitePragmasOption: ["journal_mode": journal]]
            try coordinator.remove(coordinator.addPersistentStore(type: .sqlite, at: url, options: options))
        }
        for _ in 1...3 {
            try coordinator.destroyPersistentStore(
                at: url,
                type: .sqlite,
                options: [NSPersistentStoreTimeoutOption: 1]
            )
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.url.path), [url.lastPathComponent])
        let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
        expect(store.identifier != nil)
    }

    @Test func `a backup is destroyed at once`() throws {
        let folder = try StoreFolder()
        let harness = try StoreHarness(Self.photos(), in: folder)
        try harness.insert(harness.row("Photo", -1, ["pixels": Data([1])]))
        let copy = folder.file("copy.sqlite")
        try harness.coordinator.backUp(harness.store, to: copy)

        try NSPersistentStoreCoordinator(managedObjectModel: Self.photos()).destroyPersistentStore(
            at: copy,
            type: .sqlite,
            options: [NSPersistentStoreTimeoutOption: 1]
        )
        expectThrows(CocoaError.self) {
            try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: copy)
        }
    }

    @Test func `what is no database is destroyed by force only`() throws {
        let folder = try StoreFolder()
        try Data(repeating: 65, count: 5000).write(to: folder.file())

        expectThrows(CocoaError.self) {
            try SQLiteEngine.destroy(at: folder.file(), options: SQLiteOptions(url: folder.file()), removesFile: false)
        }
        expect(FileManager.default.fileExists(atPath: folder.file().path))
        try SQLiteEngine.destroy(at: folder.file(), options: SQLiteOptions(url: folder.file()), removesFile: true)
        expect(!FileManager.default.fileExists(atPath: folder.file().path))
        try SQLiteEngine.destroy(at: folder.file(), options: SQLiteOptions(url: folder.file()), removesFile: false)
    }

    @Test func `what is asked of a removed store fails with an error that names its file`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let plan = try harness.plan("Animal")
        try harness.coordinator.remove(harness.store)

        let error = expectThrows(CocoaError.self) { try harness.rows.rows(for: plan) }

        expectEqual(error?.code, .persistentStoreOperation)
        expectEqual(error?.localizedDescription.contains(harness.url.path), true)
    }

    @Test func `a store follows its file, but no other`() throws {
        let folder = try StoreFolder()
        let harness = try StoreHarness(StoreModels.pets(), in: folder)
        try harness.insert(harness.row("Cat", -1))
        let copy = folder.file("copy.sqlite")
        try replace(at: copy, with: harness.url)
        let other = try StoreHarness(StoreModels.pets(), at: folder.file("other.sqlite"), in: folder)

        expect(!harness.coordinator.setURL(other.url, for: harness.store))
        expectEqual(harness.store.url, harness.url)
        expect(harness.coordinator.setURL(copy, for: harness.store))

        try harness.insert(harness.row("Cat", -1))
        expectEqual(harness.store.url, copy)
        try expectEqual(harness.rows.count(for: harness.plan("Animal")), 2)
    }

    @Test(arguments: [
        ("UPDATE Z_PRIMARYKEY SET Z_MAX = 9223372036854775807", true),
        ("UPDATE Z_PRIMARYKEY SET Z_MAX = 9223372036854775806", true),
        ("UPDATE ZCITY SET Z_OPT = 9223372036854775807", false),
    ])
    func `numbers that cannot be counted on are an error of the save`(_ damage: String, _ inserts: Bool) throws {
        let stack = try Stack(.sqlite)
        _ = try stack.storeCity("Porto")
        let store = try require(stack.coordinator.persistentStores.first)
        let url = try require(store.url)
        try stack.coordinator.remove(store)
        try Connection(path: url.path, access: .readWrite).execute(damage)
        try stack.coordinator.addPersistentStore(type: .sqlite, at: url)
        let context = stack.context()
        try context.performAndWait {
            let city = try inserts ? City(context: context) : require(try context.all(City.self).first)
            city.name = "Braga"
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .fileReadCorruptFile, "\(String(describing: error))")
            expect(city.hasChanges)
        }
    }

    // MARK: - Verifying

    @Test(arguments: [
        ("UPDATE ZANIMAL SET ZOWNER = 9", "ZANIMAL: row 1 whose owner does not exist"),
        ("UPDATE ZANIMAL SET Z_ENT = 1", "ZANIMAL: row 1 of no entity that the table may hold"),
        ("UPDATE ZANIMAL SET Z_OPT = NULL", "ZANIMAL: row 1 without a version"),
        ("UPDATE ZANIMAL SET Z_FOK_OWNER = NULL", "ZANIMAL: row 1 without a position in pets"),
        (
            "UPDATE ZPERSON SET Z1_FAVOURITE = 3",
            "ZPERSON: row 1 whose favourite is of another entity than Z1_FAVOURITE says"
        ),
        ("UPDATE Z_PRIMARYKEY SET Z_MAX = 0", "Z_PRIMARYKEY: the counter of Person is 0, but there is a row 1"),
        ("UPDATE Z_PRIMARYKEY SET Z_SUPER = 4", "Z_PRIMARYKEY: entity Cat has Z_SUPER 4, not 1"),
        ("DELETE FROM ZCLUB", "Z_4MEMBERS: row 1-1 with an object in Z_4CLUBS that does not exist"),
        ("ALTER TABLE ZCLUB DROP COLUMN ZTITLE", "schema: ZCLUB.ZTITLE is missing"),
        ("DROP TABLE Z_METADATA", "metadata: the file is a SQLite database, but no store"),
        (
            "DROP INDEX Z_Person_UNIQUE_id; INSERT INTO ZPERSON SELECT 2, 5, 1, NULL, NULL, NULL, ZID FROM ZPERSON",
            "ZPERSON: row 1 = 2 with equal values of id"
        ),
    ])
    func `verify finds`(damage: String, problem: String) throws {
        let harness = try StoreHarness(StoreModels.pets())
        let person = try harness.reference("Person", -1)
        let cat = try harness.row("Cat", -2, to: ["owner": person])
        try harness.save(
            StoreChanges(
                inserted: [
                    harness.row("Person", -1, ["id": UUID()], to: ["favourite": harness.reference("Cat", -2)]), cat,
                    harness.row("Club", -3),
                ],
                toMany: [
                    ToManyChange(
                        relationship: harness.toMany("Club", "members"),
                        owner: harness.reference("Club", -3),
                        added: [person],
                        removed: [],
                        order: nil
                    )
                ]
            )
        )
        let model = harness.coordinator.managedObjectModel
        try expectEqual(StoreVerifier(storeURL: harness.url, model: model).problems(), [])

        try harness.execute(damage)

        try expect(StoreVerifier(storeURL: harness.url, model: model).problems().contains(problem))
    }

    @Test func `verify reports a one-to-one relationship that does not lead back, and stray files`() throws {
        let husband = StoreModels.entity("Husband", [StoreModels.attribute("photo", .binaryData, isExternal: true)])
        let wife = StoreModels.entity("Wife")
        let (to, back) = (StoreModels.toOne("wife", wife), StoreModels.toOne("husband", husband))
        StoreModels.connect(to, back)
        husband.properties += [to]
        wife.properties = [back]
        let harness = try StoreHarness(StoreModels.model(husband, wife))
        try harness.insert(
            harness.row(
                "Husband",
                -1,
                ["photo": Data(repeating: 1, count: 200_000)],
                to: ["wife": harness.reference("Wife", -2)]
            ),
            harness.row("Wife", -2, to: ["husband": harness.reference("Husband", -1)])
        )
        try harness.execute("UPDATE ZWIFE SET ZHUSBAND = NULL; UPDATE ZHUSBAND SET ZPHOTO = NULL")

        let problems = try StoreVerifier(storeURL: harness.url, model: harness.coordinator.managedObjectModel)
            .problems()

        expectEqual(problems.count, 2)
        expectEqual(problems.first, "ZHUSBAND: row 1 whose wife does not lead back by husband")
        expectEqual(problems.last?.hasPrefix("the external file "), true)
    }

    @Test func `verify reports a model that does not fit`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        let model = StoreModels.pets()
        try require(model.entitiesByName["Club"]).properties += [StoreModels.attribute("street", .string)]

        let problems = try StoreVerifier(storeURL: harness.url, model: model).problems()

        expectEqual(problems, ["model: entity Club differs from the model's", "schema: ZCLUB.ZSTREET is missing"])
    }
}
