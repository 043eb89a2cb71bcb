import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import StrataPostgreSQLStore
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Migration of PostgreSQL stores with foreign keys", .enabled(if: Server.isThere))
struct ForeignKeyMigrationTests {
    private static let first = ["city.country_id country", "region.country_id country"]
    private static let second = [
        "city.capital_of_id country", "city.country_id country", "city_twins.twin_of_id city",
        "city_twins.twins_id city", "country.capital_id city", "district.city_id city", "region.country_id country",
    ]

    private func fill(_ store: KeyedStore) throws {
        let context = try store.open(KeyedStore.atlas(1), KeyedStore.withKeys)
        try context.performAndWait {
            let country = context.insert("Country", ["name": "Italy"])
            _ = context.insert("Region", ["country": country])
            country.setValue(context.insert("City", ["name": "Rome", "country": country]), forKey: "capital")
            try context.save()
        }
        ChangingStore.close(context)
        try expectEqual(store.keyColumns(), Self.first)
    }

    private func titles(_ context: NSManagedObjectContext) throws -> [String] {
        try context.performAndWait { try context.all("City").compactMap { $0.value(forKey: "title") as? String } }
    }

    @Test func `a store with them has those of the new model after a migration in place`() throws {
        let store = KeyedStore()
        try fill(store)
        let context = try store.open(KeyedStore.atlas(2))
        defer { ChangingStore.close(context) }
        try expectEqual(titles(context), ["Rome"])
        try expectEqual(store.keyColumns(), Self.second)
        try expectEqual(store.problems(KeyedStore.atlas(2)), [])
    }

    @Test func `a store without them has none after a migration in place`() throws {
        let store = KeyedStore()
        try store.make(KeyedStore.atlas(1))
        try store.make(KeyedStore.atlas(2))
        try expectEqual(store.keyColumns(), [])
    }

    @Test func `rows that the new keys do not allow end a migration in place, and the store is as it was`() throws {
        let store = KeyedStore()
        try fill(store)
        // The capital has no inverse yet, so nothing keeps it from being deleted.
        try store.connection().command("DELETE FROM city")
        let error = expectThrows(CocoaError.self) { try store.open(KeyedStore.atlas(2)) }
        expectEqual(error?.code, .migration)
        let text = error?.localizedDescription ?? ""
        expect(text.contains("Country.capital: 1 row leads to an object that is not there"), "\(text)")
        try expectEqual(store.keyColumns(), Self.first)
        try store.make(KeyedStore.atlas(1))
    }

    private func migrateByMapping(_ store: KeyedStore) throws {
        let (first, second) = (KeyedStore.atlas(1), KeyedStore.atlas(2))
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: first, destinationModel: second)
        let cities = try require(mapping.entityMappings.first { $0.sourceEntityName == "City" })
        let title = try require(cities.attributeMappings?.first { $0.name == "title" })
        title.valueExpression = NSExpression(format: "uppercase:($source.name)")
        let manager = NSMigrationManager(sourceModel: first, destinationModel: second)
        let place = StorePlace(url: store.url, type: TestDatabase.storeType.rawValue, options: KeyedStore.withoutKeys)
        try expect(manager.migrateInPlace(place, mapping, from: nil, to: nil))
    }

    @Test func `a new store that a mapping model makes in the place of one with them has those of its model`() throws {
        let store = KeyedStore()
        try fill(store)
        try migrateByMapping(store)
        let context = try store.open(KeyedStore.atlas(2))
        defer { ChangingStore.close(context) }
        try expectEqual(titles(context), ["ROME"])
        try expectEqual(store.keyColumns(), Self.second)
        try expectEqual(store.problems(KeyedStore.atlas(2)), [])
    }

    @Test func `a new store in the place of one without them has none`() throws {
        let store = KeyedStore()
        try store.make(KeyedStore.atlas(1))
        try migrateByMapping(store)
        try expectEqual(store.keyColumns(), [])
    }

    private func migrateByStage(
        _ store: KeyedStore,
        _ handler: @escaping (NSManagedObjectContext, URL) throws -> Void
    ) throws {
        let references = [1, 2].map { version in
            let model = KeyedStore.atlas(version)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
        let stage = NSCustomMigrationStage(migratingFrom: references[0], to: references[1])
        stage.didMigrateHandler = { manager, _ in
            let container = try require(manager.container)
            let context = container.newBackgroundContext()
            let url = try require(container.persistentStoreDescriptions.first?.url)
            try context.performAndWait { try handler(context, url) }
        }
        let options = [NSPersistentStoreStagedMigrationManagerOptionKey: NSStagedMigrationManager([stage])]
        try store.make(KeyedStore.atlas(2), options)
    }

    @Test func `a stage with handlers keeps them`() throws {
        let store = KeyedStore()
        try fill(store)
        try migrateByStage(store) { context, _ in
            let rome = try require(context.all("City").first)
            _ = context.insert("District", ["city": rome])
            try context.save()
        }
        try expectEqual(store.keyColumns(), Self.second)
        try expectEqual(store.problems(KeyedStore.atlas(2)), [])
    }

    @Test func `rows of the new store that they do not allow end the stage, and the store is as it was`() throws {
        let store = KeyedStore()
        try fill(store)
        let error = expectThrows(CocoaError.self) {
            try migrateByStage(store) { _, url in
                let target = try ConnectionTarget(TestDatabase.url(for: url))
                let connection = try Connection.open(target, timeout: 30)
                try connection.command("UPDATE \(target.quotedSchema).city SET country_id = 777")
            }
        }
        let text = error?.localizedDescription ?? ""
        expectEqual(error?.code, .migration)
        expect(text.contains("City.country: 1 row leads to an object that is not there"), "\(text)")
        try expectEqual(store.keyColumns(), Self.first)
        try expectEqual(store.problems(KeyedStore.atlas(1)), [])
    }
}
