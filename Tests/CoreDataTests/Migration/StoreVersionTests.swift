import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// The rules by which a store counts as being of another version, and by which its model is found.
@Suite("Versions of stores")
struct StoreVersionTests {
    private func filled(_ sketch: String, _ values: [String: Any?] = [:]) throws -> AgingStore {
        let store = try AgingStore()
        try store.use(ModelSketch.model(sketch)) { context in
            context.make("A", "a1", values)
            try context.save()
        }
        return store
    }

    private func metadata(_ store: AgingStore) throws -> [String: Any] {
        try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: store.url)
    }

    /// Opens the store without options.
    private func plainly(_ store: AgingStore, _ model: NSManagedObjectModel) throws -> [String] {
        try LibraryMove.change(store.url, model) { try $0.dump() }
    }

    // MARK: - What makes a version

    @Test func `m001 m076 m077 a store opens without migration where only what is not hashed differs`() throws {
        let store = try filled("A: n String, x Int32=1")
        let model = ModelSketch.model("A: n String, x Int32=2")
        let entity = try require(model.entitiesByName["A"])
        entity.userInfo = ["key": "value"]
        entity.managedObjectClassName = "NSManagedObject"
        entity.attributesByName["n"]?.userInfo = ["key": "value"]
        entity.attributesByName["x"]?.renamingIdentifier = "former"
        model.setFetchRequestTemplate(NSFetchRequest<NSFetchRequestResult>(entityName: "A"), forName: "all")
        model.versionIdentifiers = ["Shop 7"]

        let shown = try LibraryMove.change(store.url, model) { context in
            context.make("A", "a2")
            return try context.dump()
        }

        expectEqual(shown, ["A a1 x=1", "A a2 x=2"], "rows keep the default that they were made with")
    }

    @Test func `m076 the default of the last version reaches rows that skip the ones before`() throws {
        let store = try filled("A: n String")
        try expect(
            store.use(ModelSketch.model("A: n String, x Int32=2, y Int32=1")) { try $0.dump() } == ["A a1 x=2 y=1"]
        )
    }

    @Test func `m007 a store goes to the version of the coordinator, and not to a newer one that is known`() throws {
        let store = try filled("A: n String")
        let (second, third) = ("A: n String, x Int32", "A: n String, x Int32, y Int32")
        var migration = AutomaticMigration(
            of: StoreToMigrate(
                model: ModelSketch.model(second),
                configuration: nil,
                type: NSSQLiteStoreType,
                url: store.url,
                options: AgingStore.migrating
            )
        )
        try migration.model.tryFreeze()
        migration.knownModels = [ModelSketch.model("A: n String"), ModelSketch.model(third)]
        try migration.run(metadata(store))
        try expectEqual(plainly(store, ModelSketch.model(second)), ["A a1 x=-"])
    }

    @Test func `m017 a container that adds its stores asynchronously migrates them so`() async throws {
        let store = try filled("A: n String")
        let description = NSPersistentStoreDescription(url: store.url)
        description.shouldAddStoreAsynchronously = true
        let container = NSPersistentContainer(
            name: "aging",
            managedObjectModel: ModelSketch.model("A: n String, x Int32=5")
        )
        container.persistentStoreDescriptions = [description]
        let failure: (any Error)? = await withCheckedContinuation { continuation in
            container.loadPersistentStores { continuation.resume(returning: $1) }
        }
        expect(failure == nil)
        let shown = try await container.performBackgroundTask { try $0.dump() }
        expectEqual(shown, ["A a1 x=5"])
    }

    // MARK: - Where the old version is found

    @Test func `m010 m011 versions that are named come first, and the copy in the store last`() throws {
        let store = try filled("A: n String")
        let metadata = try metadata(store)
        let cache = { try SQLiteEngine.cachedModel(at: store.url) }
        let named = try SourceModel.find(
            forStoreMetadata: metadata,
            at: store.url,
            known: [ModelSketch.model("A: n String")],
            cachedModel: cache
        )
        expectEqual(named.origin, .stages)
        let kept = try SourceModel.find(forStoreMetadata: metadata, at: store.url, cachedModel: cache)
        expectEqual(kept.origin, .store)
        expectEqual(kept.model.entityVersionHashesByName, ModelSketch.model("A: n String").entityVersionHashesByName)
        // A stored copy of another version does not count.
        let other = try filled("A: n String, x Int32")
        let error = expectThrows(CocoaError.self) {
            try SourceModel.find(forStoreMetadata: metadata, at: store.url) {
                try SQLiteEngine.cachedModel(at: other.url)
            }
        }
        expectEqual(error?.code, .migrationMissingSourceModel)
    }

    @Test func `m012 the entities that no model has are named in the order of their names`() throws {
        let sketch = "Zither: n String\nBanjo: n String\nOboe: n String\nHarp: n String"
        let store = try filled("A: n String")
        var metadata = try metadata(store)
        metadata["NSStoreModelVersionHashes"] = ModelSketch.model(sketch).entityVersionHashesByName
        let error = expectThrows(CocoaError.self) {
            try SourceModel.find(forStoreMetadata: metadata, at: store.url) { nil }
        }
        expectEqual(error?.code, .migrationMissingSourceModel)
        let names = ["Banjo", "Harp", "Oboe", "Zither"]
        expectEqual(error?.userInfo["NSEntitiesThatDiffer"] as? [String], names)
        let text = error?.localizedDescription ?? ""
        let places = names.compactMap { text.range(of: "\($0) (")?.lowerBound }
        expect(places.count == 4 && places == places.sorted(), "\(text)")
        expect(text.contains("keeps no copy of its model either"))
    }

    @Test(arguments: ["", "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB); INSERT INTO Z_MODELCACHE VALUES (x'00')"])
    func `the copy of a model in a database that is no store is an error`(_ statements: String) throws {
        let store = try filled("A: n String")
        let url = store.url.deletingLastPathComponent().appendingPathComponent("other.sqlite")
        let database = try Connection(path: url.path, access: .readWriteCreate)
        try database.execute("CREATE TABLE song (title); \(statements)")
        database.close()
        let error = expectThrows(CocoaError.self) { try SQLiteEngine.cachedModel(at: url) }
        expectEqual(error?.code, .persistentStoreTypeMismatch)
    }

    @Test func `m010 the copy in the store comes before the bundles where that is preferred`() throws {
        let bundled = try require(
            (NSManagedObjectModel.allVersions(in: nil)
                + NSManagedObjectModel.allVersions(in: Bundle.allBundles + Bundle.allFrameworks)).first
        )
        let metadata = [NSStoreModelVersionHashesKey: bundled.entityVersionHashesByName]
        var reads = 0
        func find(_ preference: SourceModel.Preference) throws -> SourceModel.Origin {
            try SourceModel.find(
                forStoreMetadata: metadata,
                at: URL(fileURLWithPath: "/nowhere"),
                preferring: preference
            ) {
                reads += 1
                return bundled.cachedModelData()
            }.origin
        }
        try expect(find(.bundles) == .bundles && reads == 0)
        try expect(find(.store) == .store && reads == 1)
    }

    @Test func `m008 m009 each entity of a merged model may come from another version of another model`() throws {
        let sketches = ["A: n String", "B: n String, x Int32"]
        let merged = try require(NSManagedObjectModel(byMerging: sketches.map { ModelSketch.model($0) }))
        let metadata = [NSStoreModelVersionHashesKey: merged.entityVersionHashesByName]
        let known = ["B: n String", "A: n String, y Int32", "A: n String", "B: n String, x Int32"]
        let found = try SourceModel.find(
            forStoreMetadata: metadata,
            at: URL(fileURLWithPath: "/nowhere"),
            known: known.map { ModelSketch.model($0) },
            cachedModel: { nil }
        )
        expectEqual(found.model.entityVersionHashesByName, merged.entityVersionHashesByName)
    }

    // MARK: - Information about versions in models

    @Test func `m162 labels of versions are kept in the store, decide nothing, and are joined by merging`() throws {
        let (one, other) = (ModelSketch.model("A: n String"), ModelSketch.model("B: n String"))
        one.versionIdentifiers = ["one"]
        other.versionIdentifiers = ["two"]
        let merged = try require(NSManagedObjectModel(byMerging: [one, other]))
        expectEqual(merged.versionIdentifiers as? Set<String>, ["one", "two"])
        let store = try AgingStore()
        try store.use(try require(one.copy(with: nil) as? NSManagedObjectModel)) { _ in }
        try expectEqual(metadata(store)[NSStoreModelVersionIdentifiersKey] as? [String], ["one"])
        try expectEqual(plainly(store, ModelSketch.model("A: n String")), [])
    }

    @Test func `m163 a configuration fits a store with its entities, all of them and no more`() throws {
        let model = ModelSketch.model("A: n String\nB: n String")
        let entities = model.entities
        model.setEntities([try require(model.entitiesByName["A"])], forConfigurationName: "Part")
        let hashes = model.entityVersionHashesByName
        func fits(_ names: [String], _ configuration: String?) -> Bool {
            let stored = hashes.filter { names.contains($0.key) }
            return model.isConfiguration(
                withName: configuration,
                compatibleWithStoreMetadata: [NSStoreModelVersionHashesKey: stored]
            )
        }
        expectEqual(entities.count, 2)
        expect(fits(["A", "B"], nil) && fits(["A"], "Part"))
        expect(!fits(["A"], nil) && !fits(["A", "B"], "Part") && !fits([], nil))
        expect(!model.isConfiguration(withName: nil, compatibleWithStoreMetadata: [:]))
    }

    @Test func `m164 m165 a change of a parent reaches its children, and no change of a child its parent`() {
        let first = ModelSketch.model("P: n String\nC(P): x Int32")
        let child = ModelSketch.model("P: n String\nC(P): x Int64")
        let parent = ModelSketch.model("P: n String, y Int32\nC(P): x Int32")
        func hash(_ model: NSManagedObjectModel, _ name: String) -> Data? { model.entityVersionHashesByName[name] }
        expect(hash(child, "P") == hash(first, "P") && hash(child, "C") != hash(first, "C"))
        expect(hash(parent, "P") != hash(first, "P") && hash(parent, "C") != hash(first, "C"))
        expectEqual(first.versionChecksum, ModelSketch.model("P: n String\nC(P): x Int32=4").versionChecksum)
        expectEqual(Set([first, child, parent].map(\.versionChecksum)).count, 3)
        expectEqual(Data(base64Encoded: first.versionChecksum)?.count, 32)
    }

    @Test func `m166 metadata is read with the log beside the file, and never makes a file`() throws {
        let store = try AgingStore()
        let missing = expectThrows(CocoaError.self) { try metadata(store) }
        expectEqual(missing?.code, .fileReadNoSuchFile)
        try expectEqual(store.scratch.names, [])
        // While a connection has the file open, only the log contains the second version.
        let (old, new) = (ModelSketch.model("A: n String"), ModelSketch.model("A: n String, x Int32"))
        try store.use(old) { _ in }
        let reader = try Connection(path: store.url.path, access: .readOnly)
        defer { reader.close() }
        try reader.execute("BEGIN")
        _ = try reader.firstInt64("SELECT COUNT(*) FROM ZA")
        try store.use(new) { _ in }
        let copy = store.scratch.file("copy.sqlite")
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: store.url.path + suffix, toPath: copy.path + suffix)
        }
        let read = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: copy)
        expect(new.isConfiguration(withName: nil, compatibleWithStoreMetadata: read))
    }

    // MARK: - Errors

    @Test func `m088 an error says which store it was, and what to do`() throws {
        let cases: [(String, [AnyHashable: Any], String)] = [
            ("A: n Date", [:], "version"),
            ("A: n String, x Int32", [NSInferMappingModelAutomaticallyOption: false], "may not be inferred without"),
            ("A: n String, x Int32", [NSReadOnlyPersistentStoreOption: true], "read-only"),
            ("A: n String, x Int32!", [:], "with the old model"),
        ]
        for (sketch, options, part) in cases {
            let store = try filled("A: n String")
            let error = try #require(throws: CocoaError.self) {
                try store.use(ModelSketch.model(sketch), options) { _ in }
            }
            expect(error.localizedDescription.contains(store.url.path), "\(error.localizedDescription)")
            expect(error.localizedDescription.contains(part), "\(error.localizedDescription)")
        }
    }
}
