import CoreData
import Expectations
import Foundation
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// The effects of a migration in place on a file.
@Suite("Files that are migrated in place")
struct InPlaceStatementTests {
    private func filled(
        _ sketch: String,
        of entity: String = "A",
        count: Int = 1,
        _ values: [String: Any?] = [:]
    ) throws -> AgingStore {
        let store = try AgingStore()
        try store.use(ModelSketch.model(sketch)) { context in
            for number in 1...count { context.make(entity, "a\(number)", values) }
            try context.save()
        }
        return store
    }

    /// The columns of a table after its first three, in order.
    private func columns(_ store: AgingStore, _ table: String) throws -> [String] {
        Array(try store.strings("SELECT name FROM pragma_table_info('\(table)') ORDER BY cid").dropFirst(3))
    }

    @Test func `m083 a table is copied only where columns go or change their types`() throws {
        let old = "A: n String, x Int16\nB: n String, x Int16\nC: n String"
        let store = try filled(old, count: 300)
        let wider = "A: n String, x Int16, added String\nB: n String, y{x} Int16\nC: n String\nAA: n String"
        try store.use(ModelSketch.model(wider)) { _ in }

        try expectEqual(columns(store, "ZA"), ["ZX", "ZN", "ZADDED"], "it was added where the table is")
        try expectEqual(columns(store, "ZB"), ["ZY", "ZN"])
        try expectEqual(store.problems(ModelSketch.model(wider)), [])

        let narrower = "A: n String, added String\nB: n String, y{x} Double\nC: n String\nAA: n String"
        try store.use(ModelSketch.model(narrower)) { _ in }

        try expectEqual(columns(store, "ZA"), ["ZADDED", "ZN"], "as in a new file, since the table was copied")
        try expectEqual(store.strings("SELECT type FROM pragma_table_info('ZB') WHERE name = 'ZY'"), ["FLOAT"])
        try expectEqual(store.number("SELECT COUNT(*) FROM ZA"), 300)
        try expectEqual(store.problems(ModelSketch.model(narrower)), [])
    }

    @Test func `m082 an entity behind all others writes no row, and one in front gives the rows their new number`()
        throws
    {
        let store = try filled("M: n String", of: "M", count: 200)
        func rows() throws -> [String] { try store.strings("SELECT Z_PK || ' ' || Z_ENT || ' ' || Z_OPT FROM ZM") }
        let before = try rows()
        try store.use(ModelSketch.model("M: n String, x Int32\nN: n String")) { _ in }
        try expectEqual(rows(), before)
        try store.use(ModelSketch.model("B: n String\nM: n String, x Int32\nN: n String")) { _ in }
        try expectEqual(store.strings("SELECT DISTINCT Z_ENT FROM ZM"), ["2"])
        try expect(
            store.strings("SELECT Z_ENT || Z_NAME FROM Z_PRIMARYKEY WHERE Z_ENT < 16000 ORDER BY 1") == [
                "1B", "2M", "3N",
            ]
        )
    }

    @Test func `m068 indexes come and go with any other change`() throws {
        func model(_ index: String?, _ more: String = "") -> NSManagedObjectModel {
            let model = ModelSketch.model("A: n String, x Int32\(more)")
            guard let index, let entity = model.entitiesByName["A"], let x = entity.attributesByName["x"] else {
                return model
            }
            entity.indexes = [
                NSFetchIndexDescription(
                    name: index,
                    elements: [NSFetchIndexElementDescription(property: x, collationType: .binary)]
                )
            ]
            return model
        }
        let store = try AgingStore()
        try store.use(model("first")) { context in
            context.make("A", "a1")
            try context.save()
        }
        for (index, more) in [("second", ", y Int16"), (nil, ", y Int16, z Int16")] {
            try store.use(model(index, more)) { _ in }
            try expectEqual(store.problems(model(index, more)), [])
        }
    }

    @Test func `m085 m129 in place no object is made, and object by object those of the new version are plain ones`()
        throws
    {
        func next() -> NSManagedObjectModel {
            let model = ModelSketch.model("A: n String, x String")
            model.entitiesByName["A"]?.managedObjectClassName = NSStringFromClass(Awaking.self)
            return model
        }
        let store = try filled("A: n String")
        let place = store.scratch.file("objects.sqlite")
        let source = ModelSketch.model("A: n String")
        let destination = next()
        let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
        manager.usesStoreSpecificMigrationManager = false
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination)
        try manager.migrateStore(from: store.url, type: .sqlite, mapping: mapping, to: place, type: .sqlite)
        try expectEqual(LibraryMove.change(place, next()) { try $0.dump() }, ["A a1 x=-"])

        try expectEqual(store.use(next()) { try $0.dump() }, ["A a1 x=-"])
    }

    @Test func `m086 keys that lead nowhere stay as they are`() throws {
        let old = "A: n String, b -> B/as\nB: n String, as ->> A/b"
        let store = try AgingStore()
        try store.use(ModelSketch.model(old)) { context in
            context.make("A", "a1", ["b": context.make("B", "b1")])
            try context.save()
        }
        let writer = try Connection(path: store.url.path, access: .readWrite)
        try writer.execute("UPDATE ZA SET ZB = 77")
        writer.close()
        try store.use(ModelSketch.model("A: n String, x Int32, b -> B/as\nB: n String, as ->> A/b")) { _ in }
        try expectEqual(store.strings("SELECT ZB FROM ZA"), ["77"])
    }

    @Test func `m174 a reader keeps the old rows meanwhile, and holds nothing up`() throws {
        let store = try filled("A: n String", count: 3)
        let reader = try Connection(path: store.url.path, access: .readOnly)
        defer { reader.close() }
        try reader.execute("BEGIN")
        try expectEqual(reader.firstInt64("SELECT COUNT(*) FROM ZA"), 3)

        let shown = try store.use(ModelSketch.model("B{A}: n String, x Int32")) { context in
            context.make("B", "b4")
            try context.save()
            return try context.dump().count
        }

        expectEqual(shown, 4)
        try expectEqual(reader.strings("SELECT ZN FROM ZA"), ["a1", "a2", "a3"])
        try reader.execute("COMMIT")
        try expectEqual(reader.strings("SELECT ZN FROM ZB").count, 4)
    }

    @Test func `m115 m119 until it is complete, a new store is a hidden file beside its place`() throws {
        final class Looking: NSEntityMigrationPolicy {
            override func endInstanceCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) throws {
                guard let folder = manager.userInfo?["folder"] as? URL else { return }
                let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
                manager.userInfo = ["names": names.sorted()]
            }
        }
        NSEntityMigrationPolicy.register(Looking.self, as: "LookingAtTheFolder")
        let (source, destination) = (ModelSketch.model("A: n String"), ModelSketch.model("A: n String, x Int16"))
        let store = try filled("A: n String")
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination)
        mapping.entityMappings[0].mappingType = .customEntityMappingType
        mapping.entityMappings[0].entityMigrationPolicyClassName = "LookingAtTheFolder"
        let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
        manager.userInfo = ["folder": store.scratch.folder]
        let place = store.scratch.file("new.sqlite")

        try manager.migrateStore(from: store.url, type: .sqlite, mapping: mapping, to: place, type: .sqlite)

        let names = try require(manager.userInfo?["names"] as? [String])
        expect(names.contains { $0.hasPrefix(".new.sqlite.migration-") }, "\(names)")
        expect(!names.contains("new.sqlite"))
        try expectEqual(store.scratch.names, ["aging.sqlite", "new.sqlite"])
    }

    @Test func `m143 a store without a checksum goes through stages all the same`() throws {
        let store = try filled("A: n String")
        let writer = try Connection(path: store.url.path, access: .readWrite)
        do {
            let select = try writer.statement("SELECT Z_PLIST FROM Z_METADATA")
            try expect(select.step())
            var list = try require(
                try PropertyListSerialization.propertyList(from: select[0].data, format: nil) as? [String: Any]
            )
            expect(list.removeValue(forKey: NSPersistentStoreModelVersionChecksumKey) != nil)
            select.reset()
            let update = try writer.statement("UPDATE Z_METADATA SET Z_PLIST = ?")
            try update.bind(
                try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0),
                at: 1
            )
            try update.run()
        }
        writer.close()
        let references = ["A: n String", "A: n String, x Int16", "A: n String, x Int16, y Int16"].map { sketch in
            let model = ModelSketch.model(sketch)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
        let stages = NSStagedMigrationManager([NSLightweightMigrationStage(references: references)])
        let options: [AnyHashable: Any] = [NSPersistentStoreStagedMigrationManagerOptionKey: stages]
        let shown = try store.use(ModelSketch.model("A: n String, x Int16, y Int16"), options) { try $0.dump() }
        expectEqual(shown, ["A a1 x=- y=-"])
    }

    @Test func `m149 what was put off is done before the step of a stage`() throws {
        let (first, second, third) = ("A: n String, gone String", "A: n String", "A: n String, x Int16")
        let store = try filled(first, ["gone": "secret"])
        let key = NSPersistentStoreDeferredLightweightMigrationOptionKey
        try store.use(ModelSketch.model(second), [key: true]) { _ in }
        try expectEqual(store.strings("SELECT ZGONE FROM ZA"), ["secret"])
        let references = [second, third].map { sketch in
            let model = ModelSketch.model(sketch)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
        let stages = NSStagedMigrationManager([NSLightweightMigrationStage(references: references)])
        try store.use(ModelSketch.model(third), [NSPersistentStoreStagedMigrationManagerOptionKey: stages]) { _ in }
        try expectEqual(store.problems(ModelSketch.model(third)), [])
        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: store.url)
        expect(metadata[key] == nil)
    }

    @Test func `m155 a change for which the table is copied anyway leaves nothing behind`() throws {
        let store = try filled("A: n String, gone String, x Int16", ["gone": "secret", "x": 3])
        let key = NSPersistentStoreDeferredLightweightMigrationOptionKey
        let next = "A: n String, x Double"
        try expectEqual(store.use(ModelSketch.model(next), [key: true]) { try $0.dump() }, ["A a1 x=3.0"])
        try expectEqual(store.problems(ModelSketch.model(next)), [])
        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: store.url)
        expect(metadata[key] == nil)
    }
}

/// Records in a value that it was inserted.
final class Awaking: NSManagedObject {
    override func awakeFromInsert() {
        super.awakeFromInsert()
        setPrimitiveValue("awake", forKey: "x")
    }
}
