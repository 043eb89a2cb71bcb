import CoreData
import Expectations
import StrataSQLiteStore
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

/// Models that Apple's compiler has made.
@Suite("Compiled models of Apple's tools")
struct CompiledFixtureTests {
    /// The unpacked content of a store's model cache; `nil` for stores whose framework kept none.
    private func cachedModel(_ pair: AppleStores.Pair) throws -> NSManagedObjectModel? {
        let tables = try AppleStores.rows("SELECT name FROM sqlite_master WHERE name = 'Z_MODELCACHE'", in: pair)
        guard !tables.isEmpty else { return nil }
        let content = try AppleStores.rows("SELECT Z_CONTENT FROM Z_MODELCACHE", in: pair).first?.first
        return try NSManagedObjectModel(cachedModelData: try require(content as? Data))
    }

    @Test(arguments: AppleStores.pairs)
    func `a model read as XML and compiled gives the same schema`(_ pair: AppleStores.Pair) throws {
        guard let compiled = try cachedModel(pair) else { return }
        let statements = try SQLiteSchema(for: compiled).statements
        let source = try SQLiteSchema(for: AppleStores.model(pair)).statements

        expectEqual(Set(statements).count, statements.count)
        expectEqual(Set(statements).symmetricDifference(source).sorted(), [])
    }

    @Test func `where a compiled model lists fetch indexes, older lists of indexes beside them make none`() throws {
        // The model also has two compound indexes, which the compiler has turned into fetch indexes.
        let pair = try require(AppleStores.pairs.first { $0.store.contains("bookmarks-ordered") })
        let model = try require(try cachedModel(pair))
        let indexes = try SQLiteSchema(for: model).statements.filter { $0.contains("INDEX Z_BookmarkEntity") }

        expectEqual(indexes.count, 4)
        expect(!indexes.contains { $0.contains("uuid_isPendingDeletion") })
        expect(
            model.entitiesByName["BookmarkEntity"]?.indexes.map(\.name).sorted() == [
                "byIsPendingDeletion", "byURL", "byUUID", "isPendingDeletion",
            ]
        )
        // Later changes of the indexes count, and a copy gives the same ones.
        let copy = try require(model.copy() as? NSManagedObjectModel)
        try expectEqual(SQLiteSchema(for: copy).statements.filter { $0.contains("INDEX Z_BookmarkEntity") }, indexes)
        let changed = try require(model.copy() as? NSManagedObjectModel)
        changed.entitiesByName["BookmarkEntity"]?.attributesByName["title"]?.isIndexed = true
        try expect(SQLiteSchema(for: changed).statements.contains { $0.contains("INDEX Z_BookmarkEntity_title") })
    }

    @Test(arguments: ["UAAutomation", "UAEvents", "UAInbox"])
    func `a folder of compiled models is read, with or without a current version`(_ name: String) throws {
        let package = Fixtures.url("migration/airship-compiled/\(name).momd")
        let list = try PropertyListSerialization.propertyList(
            from: Data(contentsOf: package.appendingPathComponent("VersionInfo.plist")),
            format: nil
        )
        let info = try require(list as? [String: Any])
        let versions = try require(info["NSManagedObjectModel_VersionHashes"] as? [String: [String: Data]])
        let current = info["NSManagedObjectModel_CurrentVersionName"] as? String
        let model = try require(NSManagedObjectModel(contentsOf: package))

        expectEqual((current == nil), (versions.count == 1))
        expectEqual(model.entityVersionHashesByName, versions[current ?? name])
        for (version, hashes) in versions {
            let read = try NSManagedObjectModel(reading: package.appendingPathComponent("\(version).mom"))
            expectEqual(read.entityVersionHashesByName, hashes)
            try read.tryFreeze()
        }
        try expectEqual(NSManagedObjectModel.__checksumsForVersionedModel(at: package).count, versions.count)
    }

    @Test func `entities with two uniqueness constraints have the hashes of a store of Apple's framework`() throws {
        let model = try NSManagedObjectModel(
            reading: Fixtures.url("migration/loop-v1-v4/Model.contents.xml")
        )
        let scratch = FileManager.default.temporaryDirectory.appendingPathComponent(
            "strata-\(UUID().uuidString).sqlite"
        )
        defer { try? FileManager.default.removeItem(at: scratch) }
        try FileManager.default.copyItem(
            at: Fixtures.url("migration/loop-v1-v4/Model_v1.sqlite"),
            to: scratch
        )
        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: scratch)

        expect(model.entities.contains { $0.uniquenessConstraints.count > 1 })
        expectEqual(metadata["NSStoreModelVersionHashes"] as? [String: Data], model.entityVersionHashesByName)
        expect(model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))
    }
}
