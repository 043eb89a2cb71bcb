import CoreData
import Expectations
import Foundation
import StrataLocks
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

/// Statements that were not measured with Apple's framework, but decided here.
@Suite("Migrations, as decided")
struct DecidedMigrationTests {
    private static func entity(_ properties: String, _ rest: String = "") -> String {
        "<entity name=\"A\" representedClassName=\"NSManagedObject\" \(rest)><attribute name=\"n\" attributeType=\"String\" optional=\"YES\"/>\(properties)</entity>"
    }

    @Test func `m038 what becomes optional keeps its values`() throws {
        let store = try AgingStore()
        try store.use(ModelSketch.model("A: n String, x Int32!=5")) { context in
            context.make("A", "a1", ["x": 7])
            context.make("A", "a2")
            try context.save()
        }
        let next = ModelSketch.model("A: n String, x Int32")
        try expectEqual(store.use(next) { try $0.dump() }, ["A a1 x=7", "A a2 x=5"])
        try expectEqual(store.problems(next), [])
    }

    @Test func `m043 another transformer makes no new version, and bytes stay with another change`() throws {
        func lines(_ transformer: String, _ more: String = "") -> String {
            Self.entity(
                "<attribute name=\"t\" attributeType=\"Transformable\" optional=\"YES\" valueTransformerName=\"\(transformer)\"/>\(more)"
            )
        }
        let store = try AgingStore()
        try store.use(lines("NSSecureUnarchiveFromData")) { $0.make("A", "a1", ["t": "value" as NSString]) }
        let before = try store.strings("SELECT hex(ZT) FROM ZA")
        let first = try NSManagedObjectModel.parsing(lines("NSSecureUnarchiveFromData"))
        let other = try NSManagedObjectModel.parsing(lines("NSUnarchiveFromData"))
        expectEqual(first.entityVersionHashesByName, other.entityVersionHashesByName)

        try store.use(
            lines("NSUnarchiveFromData", "<attribute name=\"x\" attributeType=\"Integer 16\" optional=\"YES\"/>")
        ) {
            _ in
        }

        try expectEqual(store.strings("SELECT hex(ZT) FROM ZA"), before)
    }

    @Test(arguments: [("Binary", "Transformable"), ("Transformable", "Binary")])
    func `m044 binary and transformable values do not become each other`(_ old: String, _ new: String) throws {
        let models = try [old, new].map { type in
            try NSManagedObjectModel.parsing(
                Self.entity("<attribute name=\"x\" attributeType=\"\(type)\" optional=\"YES\"/>")
            )
        }
        let error = expectThrows(CocoaError.self) {
            try NSMappingModel.inferredMappingModel(forSourceModel: models[0], destinationModel: models[1])
        }
        expectEqual(error?.code, .inferredMappingModel)
    }

    @Test func `m064 counts are of the version and change no row, delete rules are not`() throws {
        func lines(_ count: String, _ rule: String) -> String {
            Self.entity(
                "<relationship name=\"bs\" toMany=\"YES\" optional=\"YES\" \(count) deletionRule=\"\(rule)\" destinationEntity=\"B\" inverseName=\"a\" inverseEntity=\"B\"/>"
            )
                + "<entity name=\"B\" representedClassName=\"NSManagedObject\"><attribute name=\"n\" attributeType=\"String\" optional=\"YES\"/><relationship name=\"a\" optional=\"YES\" maxCount=\"1\" deletionRule=\"Nullify\" destinationEntity=\"A\" inverseName=\"bs\" inverseEntity=\"A\"/></entity>"
        }
        let store = try AgingStore()
        try store.use(lines("", "Nullify")) { context in
            let owner = context.make("A", "a1")
            owner.setValue(Set(["b1", "b2", "b3"].map { context.make("B", $0) }), forKey: "bs")
        }
        let hashes = try [lines("", "Nullify"), lines("", "Cascade"), lines("maxCount=\"2\"", "Nullify")].map {
            try NSManagedObjectModel.parsing($0).entityVersionHashesByName
        }
        expectEqual(hashes[0], hashes[1])
        expect(hashes[0] != hashes[2])
        let shown = try store.use(NSManagedObjectModel.parsing(lines("maxCount=\"2\"", "Nullify"))) { try $0.dump() }
        expectEqual(shown.first, "A a1 bs={b1 b2 b3}")
    }

    @Test func `m070 a constraint that goes leaves the objects as they are, and then allows others`() throws {
        let store = try AgingStore()
        try store.use(ModelSketch.model("A: n String, code Int32 | unique code")) { context in
            context.make("A", "a1", ["code": 1])
            try context.save()
        }
        let next = ModelSketch.model("A: n String, code Int32")
        let shown = try store.use(next) { context in
            context.make("A", "a2", ["code": 1])
            try context.save()
            return try context.dump()
        }
        expectEqual(shown, ["A a1 code=1", "A a2 code=1"])
        try expectEqual(store.problems(next), [])
    }

    @Test func `m074 values that the history keeps of deleted objects are those of the new version`() throws {
        func lines(_ keepsN: Bool, _ keepsX: Bool) -> String {
            func attribute(_ name: String, _ keeps: Bool) -> String {
                "<attribute name=\"\(name)\" attributeType=\"String\" optional=\"YES\" \(keeps ? "preserveAfterDeletion=\"YES\"" : "")/>"
            }
            return
                "<entity name=\"A\" representedClassName=\"NSManagedObject\">\(attribute("n", keepsN))\(attribute("x", keepsX))</entity>"
        }
        let options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true]
        let store = try AgingStore()
        try store.use(lines(true, false), options) { $0.make("A", "a1", ["x": "x1"]) }
        try store.use(lines(true, false), options) { context in context.delete(try require(context.all("A").first)) }
        let model = try NSManagedObjectModel.parsing(lines(true, true))
        let kept = try store.use(model, options) { context in
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            let result = try context.execute(request) as? NSPersistentHistoryResult
            let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
            let deletion = transactions.flatMap { $0.changes ?? [] }.first { $0.changeType == .delete }
            return deletion?.tombstone?["n"] as? String
        }
        expectEqual(kept, "a1")
        try expectEqual(store.problems(model), [])
    }

    @Test func `m122 the journal mode is that of opening the store: what the options name, else a write-ahead log`()
        throws
    {
        let delete: [AnyHashable: Any] = [NSSQLitePragmasOption: ["journal_mode": "DELETE"]]
        for (options, mode) in [(delete, "delete"), ([:], "wal")] as [([AnyHashable: Any], String)] {
            let store = try AgingStore()
            try store.use(ModelSketch.model("A: n String"), delete) { context in
                context.make("A", "a1")
                try context.save()
            }
            try expectEqual(
                store.use(ModelSketch.model("A: n String, x Int16"), options) { try $0.dump() },
                ["A a1 x=-"]
            )
            try expectEqual(store.strings("PRAGMA journal_mode"), [mode])
        }
    }

    @Test func `m130 what a policy changes of the mapping model does not count any more`() throws {
        final class Changing: NSEntityMigrationPolicy {
            override func begin(_ mapping: NSEntityMapping, with manager: NSMigrationManager) throws {
                mapping.attributeMappings = []
                try super.begin(mapping, with: manager)
            }
        }
        NSEntityMigrationPolicy.register(Changing.self, as: "ChangingTheMapping")
        let (first, second) = (ModelSketch.model("A: n String"), ModelSketch.model("A: n String, x Int16"))
        let store = try AgingStore()
        try store.use(ModelSketch.model("A: n String")) { context in
            context.make("A", "a1")
            try context.save()
        }
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: first, destinationModel: second)
        mapping.entityMappings[0].mappingType = .customEntityMappingType
        mapping.entityMappings[0].entityMigrationPolicyClassName = "ChangingTheMapping"
        let place = store.scratch.file("other.sqlite")
        try NSMigrationManager(sourceModel: first, destinationModel: second)
            .migrateStore(from: store.url, type: .sqlite, mapping: mapping, to: place, type: .sqlite)
        let names = try Connection(path: place.path, access: .readOnly).strings("SELECT ZN FROM ZA")
        expectEqual(names, ["a1"])
    }

    @Test func `m151 stages move the progress on, each by its part`() throws {
        let versions = ["A: n String", "A: n String, x Int16", "A: n String, x Int16, y Int16"]
        let references = versions.map { sketch in
            let model = ModelSketch.model(sketch)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
        let store = try AgingStore()
        try store.use(ModelSketch.model(versions[0])) { context in
            context.make("A", "a1")
            try context.save()
        }
        let progress = Progress(totalUnitCount: 4)
        let stage = NSCustomMigrationStage(migratingFrom: references[1], to: references[2])
        let between = Shared(0.0)
        stage.willMigrateHandler = { _, _ in between.update { $0 = progress.fractionCompleted } }
        let options: [AnyHashable: Any] = [
            NSPersistentStoreStagedMigrationManagerOptionKey: NSStagedMigrationManager([
                NSLightweightMigrationStage(references: Array(references.prefix(2))), stage,
            ]), NSPersistentStoreMigrationProgressOption: progress,
        ]

        let shown = try store.use(ModelSketch.model(versions[2]), options) { try $0.dump() }

        expectEqual(shown, ["A a1 x=- y=-"])
        expectEqual(between.current, 0.5)
        expectEqual(progress.fractionCompleted, 1)
    }

    @Test func `m075 elements of composite attributes are paired one by one`() throws {
        func model(_ name: String, _ elements: [String]) -> NSManagedObjectModel {
            let composite = NSCompositeAttributeDescription()
            composite.name = name
            composite.renamingIdentifier = "place"
            composite.isOptional = true
            composite.elements = elements.map { element in
                let attribute = NSAttributeDescription()
                (attribute.name, attribute.type, attribute.isOptional) = (element, .string, true)
                return attribute
            }
            let n = NSAttributeDescription()
            (n.name, n.type, n.isOptional) = ("n", .string, true)
            let entity = NSEntityDescription()
            entity.name = "A"
            entity.properties = [n, composite]
            let model = NSManagedObjectModel()
            model.entities = [entity]
            return model
        }
        let store = try AgingStore()
        try store.use(model("place", ["city", "street"])) { context in
            context.make("A", "a1", ["place": ["city": "Bonn", "street": "Main"]])
            try context.save()
        }
        let next = model("address", ["city", "zip"])

        let place = try store.use(next) { try $0.all("A").first?.value(forKey: "address") as? [String: Any] }

        expectEqual(place?["city"] as? String, "Bonn")
        expect(place?["street"] == nil)
        try expectEqual(store.problems(model("address", ["city", "zip"])), [])
    }
}
