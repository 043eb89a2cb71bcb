import CoreData
import Expectations
import Foundation
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// Stores that Apple's framework made, migrated in place.
@Suite("Migrating stores of Apple's framework")
struct AppleMigrationTests {
    private func copy(_ source: URL) throws -> AgingStore {
        let store = try AgingStore()
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: source.path + suffix) {
            try FileManager.default.copyItem(atPath: source.path + suffix, toPath: store.url.path + suffix)
        }
        return store
    }

    static let chain = ["1.0.0", "1.1.0", "1.1.2", "1.2.0", "2.0.0"]

    @Test(arguments: zip(chain, chain.dropFirst()))
    func `m025 m026 each version of a chain of renamings keeps the value of the one before`(
        _ old: String,
        _ new: String
    ) throws {
        let folder = Fixtures.url("migration/renaming-chain")
        let store = try copy(folder.appendingPathComponent("Example_v\(old).sqlite"))
        let model = try NSManagedObjectModel(reading: folder.appendingPathComponent("v\(new).contents.xml"))
        let attribute = try require(model.entities.first?.attributesByName.keys.first)
        try store.use(model) { context in
            let objects = try context.all("BasicEntity")
            expectEqual(objects.map { $0.value(forKey: attribute) as? String }, ["A Known Value"])
        }
        try expectEqual(StoreVerifier(storeURL: store.url, model: model).problems(), [])
    }

    @Test(arguments: AppleStores.pairs)
    func `m081 every row of a store stays what it was`(_ pair: AppleStores.Pair) throws {
        let store = try copy(pair.storeURL)
        if pair.store.contains("surfjournal") {
            // It has no copy of its model.
            expectThrows(CocoaError.self) { try store.use(Self.next(pair)) { _ in } }
            return
        }
        let before = try rows(of: store)
        let uuid = try store.strings("SELECT Z_UUID FROM Z_METADATA")
        let model = try Self.next(pair)
        try store.use(model, pair.options) { _ in }
        let after = try rows(of: store)
        expectEqual(before.filter { after[$0.key] != $0.value }.keys.sorted(), [])
        try expectEqual(store.strings("SELECT Z_UUID FROM Z_METADATA"), uuid)
        let problems = try StoreVerifier(storeURL: store.url, model: model).problems()
        expectEqual(problems.count, (pair.store.contains("messaging") ? 1 : 0), "\(problems)")
    }

    /// The model with another entity in front, so that all numbers change, and an attribute more in each root.
    private static func next(_ pair: AppleStores.Pair) throws -> NSManagedObjectModel {
        let model = try require(try AppleStores.model(pair).copy(with: nil) as? NSManagedObjectModel)
        // The store's own copy says so; the file of the model was made from the store without it.
        if pair.store.contains("books") {
            model.entitiesByName["Book"]?.attributesByName["frontCover"]?.renamingIdentifier = "cover"
        }
        for entity in model.entities where entity.superentity == nil {
            entity.properties += [attribute("zzAdded") { $0.defaultValue = "added" }]
        }
        model.entities += [NSEntityDescription("AAFirst", attribute("name"))]
        return model
    }

    /// The values of all columns but numbers of entities, by table, key and column.
    private func rows(of store: AgingStore) throws -> [String: String] {
        try store.read { connection in
            var values: [String: String] = [:]
            let tables = try connection.strings(
                "SELECT name FROM sqlite_schema AS t WHERE type = 'table' AND EXISTS (SELECT 1 FROM pragma_table_info(t.name) WHERE name = 'Z_OPT') AND name LIKE 'Z%'"
            )
            for table in tables {
                let statement = try connection.statement(SQL("SELECT * FROM \"\(table)\""))
                let names = (0..<statement.columnCount).map { statement.columnName($0) }
                let key = names.firstIndex(of: "Z_PK") ?? 0
                while try statement.step() {
                    for (index, name) in names.enumerated() {
                        // Numbers of entities change, and so do the columns that hold them.
                        if name == "Z_ENT" || name.wholeMatch(of: #/Z\d+_.*/#) != nil { continue }
                        let value = statement[index]
                        values["\(table) \(statement[key].int64) \(name)"] =
                            value.kind == .blob ? value.data.base64EncodedString() : "\(value.kind) \(value.string)"
                    }
                }
            }
            return values
        }
    }

    @Test func `m058 m061 m121 the favourites of bookmarks are those of Apple's newer file, in their order`() throws {
        func pair(_ name: String) throws -> AppleStores.Pair {
            try require(AppleStores.pairs.first { $0.store.contains(name) })
        }
        let model = try AppleStores.model(pair("Bookmarks_V5"))
        func graph(_ store: AgingStore) throws -> [String] {
            try store.use(try require(model.copy(with: nil) as? NSManagedObjectModel)) { context in
                try context.all("BookmarkEntity").map { object in
                    func titles(_ key: String) -> String {
                        let members = (object.value(forKey: key) as? NSOrderedSet)?.array ?? []
                        return members.compactMap { ($0 as? NSManagedObject)?.value(forKey: "title") as? String }
                            .joined(separator: " ")
                    }
                    let parent = (object.value(forKey: "parent") as? NSManagedObject)?.value(forKey: "title") as? String
                    let title = object.value(forKey: "title") as? String ?? ""
                    return "\(title) in \(parent ?? "-"): \(titles("children")); \(titles("favorites"))"
                }.sorted()
            }
        }
        let old = try copy(pair("Bookmarks_V2").storeURL)
        let new = try copy(pair("Bookmarks_V5").storeURL)
        let byObjects = try AgingStore()
        let source = try require(AppleStores.model(pair("Bookmarks_V2")).copy(with: nil) as? NSManagedObjectModel)
        let destination = try require(model.copy(with: nil) as? NSManagedObjectModel)
        let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
        manager.usesStoreSpecificMigrationManager = false
        try manager.migrateStore(
            from: old.url,
            type: .sqlite,
            mapping: NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination),
            to: byObjects.url,
            type: .sqlite
        )
        let wanted = try graph(new)
        try expectEqual(graph(byObjects), wanted)
        try expectEqual(graph(old), wanted)
        try expectEqual(StoreVerifier(storeURL: old.url, model: model).problems(), [])
    }

    /// The older and the newer store of an app.
    private static let successors = [("Bookmarks_V2", "Bookmarks_V5"), ("Migration_Example_2", "Migration_Example_3")]
        .filter { older, _ in AppleStores.pairs.contains { $0.store.contains(older) } }

    @Test(arguments: successors)
    func `m081 m082 m084 a migrated store is laid out as Apple's file of the newer version`(
        _ old: String,
        _ new: String
    )
        throws
    {
        let pairs = try [old, new].map { name in
            try require(AppleStores.pairs.first { $0.store.contains(name) })
        }
        let store = try copy(pairs[0].storeURL)
        let apple = try copy(pairs[1].storeURL)
        let uuid = try store.strings("SELECT Z_UUID FROM Z_METADATA")

        try store.use(AppleStores.model(pairs[1])) { _ in }

        let (ours, theirs) = (try store.shape(), try apple.shape())
        expectEqual(ours.subtracting(theirs), [], "of ours alone")
        expectEqual(theirs.subtracting(ours), [], "of Apple's alone")
        let metadata = try [store, apple].map {
            try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: $0.url)
        }
        for key in [NSStoreModelVersionHashesKey, "NSStoreModelVersionHashesDigest", NSStoreModelVersionIdentifiersKey]
        {
            guard let wanted = metadata[1][key] as? NSObject else { continue }
            expectEqual(metadata[0][key] as? NSObject, wanted, "\(key)")
        }
        try expectEqual(store.strings("SELECT Z_UUID FROM Z_METADATA"), uuid)
    }

    @Test func `m033 what is required without a default is no obstacle where there are no objects`() throws {
        let folder = Fixtures.url("migration/loop-v1-v4")
        let store = try copy(folder.appendingPathComponent("Model_v1.sqlite"))
        let model = try NSManagedObjectModel(reading: folder.appendingPathComponent("Modelv4.contents.xml"))
        try store.use(model) { context in
            let carbs = try context.all("CachedCarbObject")
            expectEqual(carbs.map { $0.value(forKey: "provenanceIdentifier") as? String }, [""])
        }
        try expectEqual(StoreVerifier(storeURL: store.url, model: model).problems(), [])
    }

    /// The rows of posts, with their sections, by the posts' identifiers.
    private func posts(_ context: NSManagedObjectContext) throws -> [String: String] {
        let found = try context.all("Post").map { post in
            let sections = (post.value(forKey: "sections") as? Set<NSManagedObject> ?? []).map { section in
                "\(section.value(forKey: "index") ?? "-") \(section.value(forKey: "title") ?? "-") \(section.value(forKey: "body") ?? "-")"
            }
            let date = (post.value(forKey: "date") as? Date)?.timeIntervalSinceReferenceDate ?? 0
            return (
                post.value(forKey: "postID") as? String ?? "",
                "\(date) \(post.value(forKey: "hexColor") ?? "-") \(sections.sorted())"
            )
        }
        return Dictionary(found) { first, _ in first }
    }

    @Test(.enabled(if: AppleStores.has("posts"), "the store of posts is not here"))
    func `m111 posts get their sections by a policy as in Apple's newer file`() throws {
        let folder = Fixtures.url("apple-stores/posts-migration")
        let models = try [2, 3].map { version in
            let model = try NSManagedObjectModel(
                reading: folder.appendingPathComponent("Model_\(version).contents.xml")
            )
            for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
            return model
        }
        let old = try copy(folder.appendingPathComponent("CoreDataMigration_Example_2.sqlite"))
        let apple = try copy(folder.appendingPathComponent("CoreDataMigration_Example_3.sqlite"))
        let uuid = try apple.strings("SELECT Z_UUID FROM Z_METADATA")
        NSEntityMigrationPolicy.register(SectionPolicy.self, as: "SectionPolicy")
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: models[0], destinationModel: models[1])
        for entry in mapping.entityMappings where entry.sourceEntityName == "Post" {
            entry.mappingType = .customEntityMappingType
            entry.entityMigrationPolicyClassName = "SectionPolicy"
            entry.relationshipMappings = []
            // Its renaming identifier has gone, so that inference takes it for another one. (M-27)
            let color = entry.attributeMappings?.first { $0.name == "hexColor" }
            color?.valueExpression = NSExpression(format: "$source.hexColor")
        }
        let new = try AgingStore()
        try NSMigrationManager(sourceModel: models[0], destinationModel: models[1])
            .migrateStore(from: old.url, type: .sqlite, mapping: mapping, to: new.url, type: .sqlite)

        let ours = try new.use(models[1]) { try posts($0) }
        let theirs = try apple.use(models[1]) { try posts($0) }

        expectEqual(ours.count, 10)
        // Two posts were written with the newer version.
        expectEqual(ours, theirs.filter { ours[$0.key] != nil })
        try expectEqual(new.strings("SELECT Z_UUID FROM Z_METADATA"), uuid)
        try expect(new.number("SELECT MAX(Z_OPT) FROM ZPOST") ?? 0 <= 2)
        try expectEqual(StoreVerifier(storeURL: new.url, model: models[1]).problems(), [])
    }

    @Test(.enabled(if: AppleStores.has("posts"), "the store of posts is not here"))
    func `m027 m081 posts keep what both versions have, in place`() throws {
        let folder = Fixtures.url("apple-stores/posts-migration")
        let old = try copy(folder.appendingPathComponent("CoreDataMigration_Example_2.sqlite"))
        let apple = try copy(folder.appendingPathComponent("CoreDataMigration_Example_3.sqlite"))
        let model = try NSManagedObjectModel(reading: folder.appendingPathComponent("Model_3.contents.xml"))
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        let before = try old.strings("SELECT Z_PK || ZPOSTID FROM ZPOST ORDER BY Z_PK")

        try old.use(model) { _ in }

        try expectEqual(old.strings("SELECT Z_PK || ZPOSTID FROM ZPOST ORDER BY Z_PK"), before)
        let columns = "SELECT ZPOSTID || ' ' || ZDATE FROM ZPOST ORDER BY ZPOSTID"
        let rows = try old.strings(columns)
        let theirs = Set(try apple.strings(columns))
        expectEqual(rows.count, 10)
        expectEqual(rows.filter { !theirs.contains($0) }, [])
        try expectEqual(old.number("SELECT COUNT(*) FROM ZPOST WHERE ZHEXCOLOR NOT NULL"), 0, "another identifier")
        try expectEqual(StoreVerifier(storeURL: old.url, model: model).problems(), [])
    }
}

/// Makes a section of the content of a post.
private final class SectionPolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource source: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
        let made = manager.destinationInstances(forEntityMappingName: mapping.name ?? "", sourceInstances: [source])
        let content = source.value(forKey: "content") as? String ?? ""
        let section = NSEntityDescription.insertNewObject(forEntityName: "Section", into: manager.destinationContext)
        section.setValue(0, forKey: "index")
        section.setValue(content, forKey: "body")
        section.setValue("\(content.prefix(4))...", forKey: "title")
        section.setValue(made.first, forKey: "post")
    }
}
