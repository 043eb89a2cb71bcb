import CoreData
import Expectations
import Foundation
import StrataKeys
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles

/// The statements M-131 to M-151 on stages.
@Suite("Staged migration")
struct StagedMigrationTests {
    /// Five versions, in which a property is removed and returns with another type, a default changes, and a value
    /// becomes required.
    static let versions = [
        "Item: n String, code String",
        "Item: n String, size Int32=1",
        "Item: n String, size Int32=2, code Int64",
        "Item: n String, size Int32=2, code Int64, mark String",
        "Item: n String, size Int32=2, code Int64, mark String!",
    ]

    private static func model(_ number: Int) -> NSManagedObjectModel { ModelSketch.model(versions[number - 1]) }

    private static func checksum(_ number: Int) -> String { model(number).versionChecksum }

    private static func reference(_ number: Int) -> NSManagedObjectModelReference {
        let model = model(number)
        return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
    }

    private static func light(_ numbers: Int...) -> NSLightweightMigrationStage {
        NSLightweightMigrationStage(references: numbers.map(reference))
    }

    private static func custom(
        _ from: Int,
        _ to: Int,
        will: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)? = nil,
        did: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)? = nil
    ) -> NSCustomMigrationStage {
        let stage = NSCustomMigrationStage(migratingFrom: reference(from), to: reference(to))
        stage.willMigrateHandler = will
        stage.didMigrateHandler = did
        return stage
    }

    private static func options(_ stages: [NSMigrationStage]) -> [AnyHashable: Any] {
        [NSPersistentStoreStagedMigrationManagerOptionKey: NSStagedMigrationManager(stages)]
    }

    /// A store of a version with two items.
    private func store(_ version: Int, _ kind: StoreKind = .migrating) throws -> AgingStore {
        let store = try AgingStore(kind)
        try store.use(Self.model(version)) { context in
            context.make("Item", "a")
            context.make("Item", "b")
            try context.save()
        }
        return store
    }

    private func dump(_ store: AgingStore, _ version: Int, _ stages: [NSMigrationStage]) throws -> [String] {
        try store.use(Self.model(version), Self.options(stages)) { try $0.dump() }
    }

    /// Changes all items inside a handler.
    private static func fill(_ manager: NSStagedMigrationManager, _ body: (NSManagedObject) -> Void) throws {
        let context = try require(manager.container).newBackgroundContext()
        try context.performAndWait {
            for item in try context.all("Item") { body(item) }
            try context.save()
        }
    }

    // MARK: - Steps

    @Test func `m131 m139 m140 m141 a chain of lightweight stages takes each step, also where the ends do not meet`()
        throws
    {
        let store = try store(1)
        expectThrows(CocoaError.self) { try store.use(Self.model(3)) { _ in } }

        let lines = try dump(store, 3, [Self.light(1, 2), Self.light(3)])

        // The rows have the second version's default.
        expectEqual(lines, ["Item a code=- size=1", "Item b code=- size=1"])
        try expectEqual(store.problems(Self.model(3)), [])
    }

    @Test(arguments: [1, 2, 3])
    func `m140 the way begins at the store's version`(_ version: Int) throws {
        let store = try store(version)

        let lines = try dump(store, 4, [Self.light(1, 2, 3, 4)])

        expectEqual(lines.count, 2)
        try expectEqual(store.problems(Self.model(4)), [])
    }

    @Test func `m140 one more step leads from the last version to a model that is in no stage`() throws {
        let store = try store(1)

        try expectEqual(dump(store, 3, [Self.light(1, 2)]), ["Item a code=- size=1", "Item b code=- size=1"])
    }

    @Test func `m132 m138 m142 stages of both kinds follow one another, with shared borders and without`() throws {
        let orders: [[NSMigrationStage]] = [
            [Self.light(1, 2), Self.custom(2, 3), Self.light(3, 4)],
            [Self.custom(1, 2), Self.light(3, 4)],
            [Self.custom(1, 2), Self.custom(2, 3), Self.custom(3, 4)],
            [Self.light(1), Self.light(2), Self.light(3), Self.light(4)],
            [Self.light(1), Self.custom(2, 3), Self.light(4)],
        ]
        for stages in orders {
            let store = try store(1)
            try expectEqual(dump(store, 4, stages).count, 2)
        }
    }

    @Test func `m016 a store that has the model already is opened without any stage`() throws {
        let store = try store(3)
        let stage = Self.custom(2, 3, will: { _, _ in Issue.record("no step is to be taken") })

        try expectEqual(dump(store, 3, [stage]).count, 2)
    }

    /// Stages of versions of which each has a configuration with the entity `L`.
    private static func partial(_ texts: [String], _ did: @escaping (Int) -> Void) -> [NSMigrationStage] {
        let references = texts.map { text in
            let model = partialModel(text)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
        return references.indices.dropFirst().map { index in
            let stage = NSCustomMigrationStage(migratingFrom: references[index - 1], to: references[index])
            stage.didMigrateHandler = { _, _ in did(index) }
            return stage
        }
    }

    private static func partialModel(_ text: String) -> NSManagedObjectModel {
        let model = ModelSketch.model(text)
        model.setEntities(["L"].compactMap { model.entitiesByName[$0] }, forConfigurationName: "Local")
        return model
    }

    @Test(arguments: [
        // The first and the last step change only what is in other stores.
        (
            [
                "L: n String, size Int32\nC: n String", "L: n String, size Int32\nC: n String, x Int32",
                "L: n String, size Int32, y Int32\nC: n String, x Int32",
                "L: n String, size Int32, z Int32\nC: n String, x Int32",
                "L: n String, size Int32, z Int32\nC: n String",
            ], 0, [2, 3]
        ),
        // The store's part returns to what it was: the store is at the later of these versions.
        (
            [
                "L: n String, size Int32\nC: n String", "L: n String\nC: n String, x Int32",
                "L: n String, size Int32\nC: n String, z Int32",
                "L: n String, size Int32, y Int32\nC: n String, z Int32",
            ], 2, [3]
        ),
    ])
    func `a store of a configuration takes each step that changes its entities once, and no other`(
        _ texts: [String],
        _ first: Int,
        _ expected: [Int]
    ) throws {
        let store = try AgingStore(.migrating)
        try store.use(Self.partialModel(texts[first]), configuration: "Local") { context in
            context.make("L", "a", ["size": 7])
            context.make("L", "b")
            try context.save()
        }
        var seen: [Int] = []
        let stages = Self.partial(texts) { seen.append($0) }
        let model = Self.partialModel(try require(texts.last))

        let lines = try store.use(model, Self.options(stages), configuration: "Local") { context in
            try context.all("L").map { "\($0.value(forKey: "n") ?? "-") \($0.value(forKey: "size") ?? "-")" }
        }

        expectEqual(lines, ["a 7", "b -"])
        expectEqual(seen, expected)
    }

    // MARK: - Handlers

    @Test func `m136 m137 handlers see the store before and after the step, and what they save is kept`() throws {
        let store = try store(4)
        var seen: [String] = []
        let stage = Self.custom(
            4,
            5,
            will: { manager, stage in
                let names = manager.container?.managedObjectModel.versionChecksum
                seen.append(names == stage.currentModel.versionChecksum ? "will" : "wrong model")
                try Self.fill(manager) { $0.setValue("filled", forKey: "mark") }
            },
            did: { manager, stage in
                let names = manager.container?.managedObjectModel.versionChecksum
                seen.append(names == stage.nextModel.versionChecksum ? "did" : "wrong model")
                try Self.fill(manager) {
                    $0.setValue(($0.value(forKey: "mark") as? String ?? "") + "!", forKey: "mark")
                }
            }
        )
        let manager = NSStagedMigrationManager([stage])
        expectEqual(manager.container, nil)

        let lines = try store.use(Self.model(5), [NSPersistentStoreStagedMigrationManagerOptionKey: manager]) {
            try $0.dump()
        }

        expectEqual(seen, ["will", "did"])
        expectEqual(manager.container, nil)
        expectEqual(manager.stages, [stage])
        expectEqual(lines, ["Item a code=- mark=filled! size=2", "Item b code=- mark=filled! size=2"])
        try expectEqual(store.problems(Self.model(5)), [])
        try expectEqual(store.scratch.names, store.kind == .sqlite ? ["aging.sqlite"] : [])
    }

    @Test func `m145 m147 an error of a handler leaves the store at the last finished stage`() throws {
        struct Stop: Error {}
        for isAfter in [false, true] {
            let store = try store(3)
            let fail: (NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void = { manager, _ in
                try Self.fill(manager) { $0.setValue("half", forKey: "mark") }
                throw Stop()
            }
            let stages = [
                Self.custom(
                    3,
                    4,
                    did: {
                        try Self.fill($0) { $0.setValue("first", forKey: "mark") }; _ = $1
                    }
                ),
                isAfter ? Self.custom(4, 5, did: fill(fail)) : Self.custom(4, 5, will: fail),
            ]

            expectThrows(Stop.self) { try dump(store, 5, stages) }

            let lines = try store.use(Self.model(4)) { try $0.dump() }
            expectEqual(lines, ["Item a code=- mark=first size=2", "Item b code=- mark=first size=2"])
            try expectEqual(store.scratch.names, store.kind == .sqlite ? ["aging.sqlite"] : [])
        }
    }

    /// The action of a handler on the data of an item.
    enum Deed: CaseIterable { case replace, clear, delete, fail, keep }

    @Test(arguments: Deed.allCases, [true, false])
    func `the external files of a handler's changes are those that the rows name`(_ deed: Deed, _ isAfter: Bool) throws
    {
        struct Stop: Error {}
        func model(_ text: String) -> NSManagedObjectModel {
            let model = ModelSketch.model(text)
            model.entitiesByName["Item"]?.attributesByName["blob"]?.allowsExternalBinaryDataStorage = true
            return model
        }
        func reference(_ text: String) -> NSManagedObjectModelReference {
            let model = model(text)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
        let (first, second) = ("Item: n String, blob Data", "Item: n String, blob Data, mark String")
        let data = (0..<3).map { Data(repeating: UInt8($0), count: 300_000 + $0) }
        let store = try AgingStore(.migrating)
        let before = try store.use(model(first)) { context in
            context.make("Item", "a", ["blob": data[0]])
            context.make("Item", "b", ["blob": data[1]])
            try context.save()
            return try context.storeState()
        }
        let handler: (NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void = { manager, _ in
            let context = try require(manager.container).newBackgroundContext()
            try context.performAndWait {
                let item = try require(try context.all("Item").first { $0.value(forKey: "n") as? String == "a" })
                switch deed {
                case .replace, .fail: item.setValue(data[2], forKey: "blob")
                case .clear: item.setValue(nil, forKey: "blob")
                case .delete: context.delete(item)
                case .keep: break
                }
                try context.save()
            }
            if deed == .fail { throw Stop() }
        }
        let stage = NSCustomMigrationStage(migratingFrom: reference(first), to: reference(second))
        if isAfter { stage.didMigrateHandler = handler } else { stage.willMigrateHandler = handler }

        if deed == .fail {
            expectThrows(Stop.self) { try store.use(model(second), Self.options([stage])) { _ in } }
            let after = try store.use(model(first)) { try $0.storeState() }
            return expectEqual(after.differences(from: before, ignoring: ["metadata "]), [])
        }
        let after = try store.use(model(second), Self.options([stage])) { context in
            let items = try context.all("Item").map { item in
                (item.value(forKey: "n") as? String, item.value(forKey: "blob") as? Data)
            }.sorted { $0.0 ?? "" < $1.0 ?? "" }
            let wanted: [Deed: [Data?]] = [
                .replace: [data[2], data[1]], .clear: [nil, data[1]], .delete: [data[1]], .keep: [data[0], data[1]],
            ]
            expectEqual(items.map(\.1), wanted[deed])
            return try context.storeState()
        }
        let files = after.lines.filter { $0.hasPrefix("file ") }.count
        if store.kind == .sqlite { expectEqual(files, deed == .replace || deed == .keep ? 2 : 1) }
        expectEqual(after.lines.filter { $0.hasPrefix("problem") }, [])
        if deed == .keep { expectEqual(after.differences(from: before, ignoring: ["metadata "]), []) }
    }

    @Test(arguments: [true, false])
    func `a stage with handlers keeps the external files of an entity with a table like the store's own`(
        _ isAfter: Bool
    ) throws {
        func model(_ text: String) -> NSManagedObjectModel {
            let model = ModelSketch.model(text)
            model.entitiesByName["_Media"]?.attributesByName["blob"]?.allowsExternalBinaryDataStorage = true
            return model
        }
        func reference(_ text: String) -> NSManagedObjectModelReference {
            let model = model(text)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
        let (first, second) = ("_Media: n String, blob Data", "_Media: n String, blob Data, mark String")
        let data = Data(repeating: 7, count: 300_000)
        let store = try AgingStore(.migrating)
        try store.use(model(first)) { context in
            context.make("_Media", "a", ["blob": data])
            try context.save()
        }
        let stage = NSCustomMigrationStage(migratingFrom: reference(first), to: reference(second))
        let handler: (NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void = { _, _ in }
        if isAfter { stage.didMigrateHandler = handler } else { stage.willMigrateHandler = handler }
        try store.use(model(second), Self.options([stage])) { context in
            try expectEqual(context.all("_Media").map { $0.value(forKey: "blob") as? Data }, [data])
            try expectEqual(context.storeState().lines.filter { $0.hasPrefix("problem") }, [])
        }
        // The files are still there for those who open the store later.
        try store.use(model(second)) { context in
            try expectEqual(context.all("_Media").map { $0.value(forKey: "blob") as? Data }, [data])
        }
    }

    /// Gives a handler as it is.
    ///
    /// The compiler needs one type for both handlers.
    private func fill(
        _ handler: @escaping (NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void
    ) -> (NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void { handler }

    @Test func `m146 m148 a stage is done again if another program writes to the store meanwhile`() throws {
        // In a database no other session can write meanwhile.
        let store = try store(4, .sqlite)
        var calls = 0
        let stage = Self.custom(
            4,
            5,
            will: { manager, _ in
                calls += 1
                if calls == 1 {
                    try store.use(Self.model(4)) { context in
                        context.make("Item", "late")
                        try context.save()
                    }
                }
                try Self.fill(manager) { $0.setValue("x", forKey: "mark") }
            }
        )

        let lines = try dump(store, 5, [stage])

        expectEqual(calls, 2)
        expectEqual(lines.map { $0.split(separator: " ")[1] }, ["a", "b", "late"])
    }

    // MARK: - Impossible ways

    @Test func `m142 m150 two versions that do not meet are an error that names both, before any step is taken`() throws
    {
        let store = try store(1)
        let before = try store.contents()
        let first = Self.light(1)
        first.label = "the old ones"
        let second = Self.light(3, 4)
        second.label = "the new ones"

        let error = try #require(throws: CocoaError.self) { try dump(store, 4, [first, second]) }

        expectEqual(error.code, .migrationMissingMappingModel)
        expectEqual((error.userInfo[NSUnderlyingErrorKey] as? CocoaError)?.code, .inferredMappingModel)
        for part in ["the old ones", "the new ones", Self.checksum(1), Self.checksum(3), "do not meet"] {
            expect(error.localizedDescription.contains(part))
        }
        try expectEqual(store.contents(), before)
    }

    @Test func `m138 a version that is named twice is an error that says where`() throws {
        let orders: [[NSMigrationStage]] = [
            [Self.light(1, 2), Self.light(1)], [Self.light(1, 1)], [Self.custom(1, 2), Self.custom(1, 2)],
            [Self.custom(1, 1)], [NSMigrationStage()],
        ]
        for stages in orders {
            let store = try store(1)
            let error = try #require(throws: CocoaError.self) { try dump(store, 2, stages) }
            expectEqual(error.code.rawValue, NSManagedObjectModelReferenceNotFoundError)
        }
    }

    @Test func `m144 a store of a version that is in no stage is an error with the nearest and all listed ones`() throws
    {
        let store = try store(2)

        let error = try #require(throws: CocoaError.self) { try dump(store, 4, [Self.light(3, 4)]) }

        expectEqual(error.code.rawValue, NSManagedObjectModelReferenceNotFoundError)
        expectEqual(error.userInfo["checksum"] as? String, Self.checksum(2))
        expectEqual(error.userInfo["knownChecksums"] as? [String], [Self.checksum(3), Self.checksum(4)])
        expect(error.localizedDescription.contains("differs in Item"))
    }

    @Test func `m180 a store that is newer than the program is an error`() throws {
        let store = try store(4)

        let error = try #require(throws: CocoaError.self) { try dump(store, 3, [Self.light(2, 3, 4)]) }

        expectEqual(error.code.rawValue, NSStagedMigrationBackwardMigrationError)
    }

    @Test func `m134 m143 a version whose model is nowhere to be found is an error`() throws {
        let store = try store(1)
        let stages = NSLightweightMigrationStage([Self.checksum(1), "unknown", Self.checksum(3)])

        let error = try #require(throws: CocoaError.self) { try dump(store, 3, [stages]) }

        expectEqual(error.code.rawValue, NSManagedObjectModelReferenceNotFoundError)
        expect(error.localizedDescription.contains("unknown"))
    }

    @Test func `m013 a read-only store takes no stage`() throws {
        let store = try store(1)
        let options = Self.options([Self.light(1, 2)]).merging([NSReadOnlyPersistentStoreOption: true]) { $1 }

        let error = try #require(throws: CocoaError.self) { try store.use(Self.model(2), options) { _ in } }

        expectEqual(error.code, .persistentStoreIncompatibleVersionHash)
    }

    // MARK: - References

    @Test func `m135 references find models by object, file, name and hashes, and refuse another checksum`() throws {
        let scratch = try ScratchFolder()
        let folder = scratch.file("Made.bundle")
        let versions = folder.appendingPathComponent("Items.xcdatamodeld")
        for (name, type) in [("One", "String"), ("Two", "Integer 32")] {
            let version = versions.appendingPathComponent("\(name).xcdatamodel")
            try FileManager.default.createDirectory(at: version, withIntermediateDirectories: true)
            try Data(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><model><entity name=\"Item\"><attribute name=\"x\" attributeType=\"\(type)\" optional=\"YES\"/></entity></model>"
                    .utf8
            ).write(to: version.appendingPathComponent("contents"))
        }
        let bundle = try require(Bundle(path: folder.path))
        let one = try NSManagedObjectModel(reading: versions.appendingPathComponent("One.xcdatamodel"))
        let checksum = one.versionChecksum
        let references = [
            NSManagedObjectModelReference(model: one, versionChecksum: checksum),
            NSManagedObjectModelReference(fileURL: versions, versionChecksum: checksum),
            NSManagedObjectModelReference(name: "Items", in: bundle, versionChecksum: checksum),
            NSManagedObjectModelReference(name: "One", in: bundle, versionChecksum: checksum),
            NSManagedObjectModelReference(
                entityVersionHashes: one.entityVersionHashesByName,
                in: bundle,
                versionChecksum: checksum
            ),
        ]
        for reference in references {
            try expectEqual(reference.resolve().versionChecksum, checksum)
            expectEqual(reference.resolvedModel.versionChecksum, checksum)
            expectEqual(reference.versionChecksum, checksum)
        }
        let wrong = [
            NSManagedObjectModelReference(model: one, versionChecksum: "other"),
            NSManagedObjectModelReference(fileURL: scratch.file("none.momd"), versionChecksum: checksum),
            NSManagedObjectModelReference(name: "None", in: bundle, versionChecksum: checksum),
            NSManagedObjectModelReference(entityVersionHashes: [:], in: bundle, versionChecksum: checksum),
        ]
        for reference in wrong {
            let error = try #require(throws: CocoaError.self) { try reference.resolve() }
            expectEqual(error.code.rawValue, NSManagedObjectModelReferenceNotFoundError)
        }
    }
}

extension ScratchFolder {
    /// The names of the files in the folder, without the files that SQLite keeps beside a database.
    var names: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: folder.path)
                .filter { !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }.sorted()
        }
    }
}
