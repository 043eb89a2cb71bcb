import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataPostgreSQLStore
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// Migrations by objects make a new store beside the old one.
@Suite("Replaced PostgreSQL stores", .enabled(if: Server.isThere))
struct ReplacementTests {
    /// Whether a new store for this one is left over.
    private func isLeft(_ store: ChangingStore) throws -> Bool {
        let target = try ConnectionTarget(TestDatabase.url(for: store.url))
        return try Server.connection().query(
            "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1",
            [.text("strata_new_\(target.schema)")]
        ).rowCount > 0
    }

    private func migrate(_ store: ChangingStore, _ options: [AnyHashable: Any]? = nil) throws -> Bool {
        try migrate(store.url, options)
    }

    private func migrate(_ url: URL, _ options: [AnyHashable: Any]? = nil) throws -> Bool {
        let (first, second) = (ChangingStore.model(1), ChangingStore.model(2))
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: first, destinationModel: second)
        let cities = try require(mapping.entityMappings.first { $0.sourceEntityName == "City" })
        let title = try require(cities.attributeMappings?.first { $0.name == "title" })
        title.valueExpression = NSExpression(format: "uppercase:($source.name)")
        let manager = NSMigrationManager(sourceModel: first, destinationModel: second)
        return try manager.migrateInPlace(
            StorePlace(url: url, type: TestDatabase.storeType.rawValue, options: options),
            mapping,
            from: nil,
            to: nil
        )
    }

    private func keys(_ store: ChangingStore) throws -> [Int64] {
        try store.connection().query("SELECT strata_id FROM city ORDER BY 1").rows.map { $0.int64(0) }
    }

    /// The keys of rows that were saved after a failover lie above 2^40.
    @Test(arguments: [0, 1 << 40, 5 << 40 + 7] as [Int64])
    func `a mapping model makes a new store in the place of the old one, with its UUID and its keys`(
        _ offset: Int64
    ) throws {
        let store = ChangingStore()
        try store.fill()
        let connection = try store.connection()
        try connection.command("UPDATE city SET strata_id = strata_id + \(offset)")
        try connection.command("CREATE TABLE of_somebody_else AS SELECT 7 AS value")
        let uuid = try connection.query("SELECT uuid FROM strata_store").rows.map { $0.string(0) }
        let keys = try keys(store)

        try expect(migrate(store))

        let context = try store.open(2, [NSMigratePersistentStoresAutomaticallyOption: false])
        defer { ChangingStore.close(context) }
        try expectEqual(ChangingStore.values("title", context), ["BONN", "ULM"])
        try expectEqual(ChangingStore.values("country", context), ["DE", "DE"])
        try expectEqual(store.problems(2), [])
        let later = try store.connection()
        try expectEqual(later.query("SELECT uuid FROM strata_store").rows.map { $0.string(0) }, uuid)
        try expectEqual(self.keys(store), keys)
        try expectEqual(later.query("SELECT value FROM of_somebody_else").firstInt64, 7)
        try expect(!isLeft(store))
        // A later migration finds the store migrated.
        try expect(!migrate(store))
        // New keys continue after the old ones.
        try context.performAndWait {
            NSEntityDescription.insertNewObject(forEntityName: "City", into: context).setValue("Kiel", forKey: "title")
            try context.save()
        }
        try expectEqual(self.keys(store).count, 3)
        try expect(require(self.keys(store).last) > require(keys.last))
    }

    @Test func `a limit for the statements of a role does not end a migration that makes a new store`() throws {
        let server = try PrivateServer()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ChangingStore.model(1))
        let store = try coordinator.addPersistentStore(type: .postgreSQL, configuration: nil, at: server.url)
        try coordinator.remove(store)
        try server.slowDown()
        try expect(migrate(server.limitedURL))
        try expectEqual(PostgreSQLStore.problems(at: server.url, ChangingStore.model(2)), [])
    }

    @Test func `tables and sequences keep their privileges and triggers, and a view is named before anything is made`()
        throws
    {
        let store = ChangingStore()
        try store.fill()
        let connection = try store.connection()
        try connection.command("CREATE VIEW city_names AS SELECT name FROM city")
        let error = expectThrows(CocoaError.self) { _ = try migrate(store) }
        let text = error?.localizedDescription ?? ""
        expect(text.contains("view city_names (of city)"), "\(text)")
        try expectEqual(store.problems(1), [])
        try expect(!isLeft(store))

        try connection.command(
            """
            DROP VIEW city_names; GRANT SELECT (people), INSERT (name) ON city TO PUBLIC; GRANT UPDATE ON strata_consumer TO PUBLIC;
            GRANT USAGE ON SEQUENCE strata_keys_city TO PUBLIC; GRANT SELECT ON SEQUENCE strata_transaction_seq_seq TO PUBLIC;
            CREATE TRIGGER nothing BEFORE UPDATE ON city FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()
            """
        )
        try expect(migrate(store))
        let found = try store.connection().query(
            """
            SELECT has_column_privilege('public', 'city', 'people', 'SELECT'), has_table_privilege('public', 'strata_consumer', 'UPDATE'),
            has_sequence_privilege('public', 'strata_keys_city', 'USAGE'),
            has_sequence_privilege('public', 'strata_transaction_seq_seq', 'SELECT'),
            EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'city'::regclass AND tgname = 'nothing')
            """
        )
        expectEqual((0..<5).map { found[0].int64($0) }, [1, 1, 1, 1, 1])
        try expectEqual(store.problems(2), [])
    }

    @Test func `a migration does not wait for itself where transactions of the history have no number yet`() throws {
        let store = ChangingStore()
        let tracking: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true]
        try store.fill(tracking)
        try store.connection().command(
            "UPDATE strata_transaction SET number = NULL; UPDATE strata_history SET last = 0"
        )
        let start = ContinuousClock.now
        try expect(migrate(store, tracking.merging([NSPersistentStoreTimeoutOption: 20]) { $1 }))
        expect(.now - start < .seconds(15))
        try expectEqual(store.problems(2), [])
    }

    @Test func `the age limit of pinned versions does not apply to a migration`() throws {
        let store = ReopenedStore()
        func model(_ version: String?) -> NSManagedObjectModel {
            let entities = ["City", "River"].map { StoreModels.entity($0, [StoreModels.attribute("name", .string)]) }
            for entity in entities { entity.versionHashModifier = version }
            return StoreModels.model(entities[0], entities[1])
        }
        try store.with(model(nil)) { context in
            for entity in ["City", "River"] {
                let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
                object.setValue("Ems", forKey: "name")
            }
            try context.save()
        }
        let (first, second) = (model(nil), model("2"))
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: first, destinationModel: second)
        let manager = NSMigrationManager(sourceModel: first, destinationModel: second)
        // The pause lies between the reads of the two entities, and is longer than the age limit.
        manager.progressHandler = { _ in usleep(500_000) }
        let options = [NSPostgreSQLPinnedVersionAgeOption: 0.2]
        let place = StorePlace(url: store.url, type: TestDatabase.storeType.rawValue, options: options)
        try expect(manager.migrateInPlace(place, mapping, from: nil, to: nil))
        try store.with(second) { context in
            for entity in ["City", "River"] {
                let found = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: entity))
                expectEqual(found.map { $0.value(forKey: "name") as? String }, ["Ems"])
            }
        }
    }

    @Test func `others write while a migration waits for a table, and a deadlock is no end of it`() throws {
        let store = ChangingStore()
        try store.fill()
        let model = ChangingStore.model(1)
        try model.tryFreeze()
        let (schema, hashes) = (model.frozen.schema, model.entityVersionHashesByName)
        let writer = try store.connection()
        try writer.command("BEGIN; UPDATE city SET name = 'Köln' WHERE name = 'Ulm'")
        let done = DispatchSemaphore(value: 0)
        let result = Locked<Result<Bool, any Error>?>(nil)
        Thread.detachNewThread {
            defer { done.signal() }
            let begun = Result {
                let replacement = try PostgreSQLReplacement(
                    of: TestDatabase.url(for: store.url),
                    schema: schema,
                    configuration: nil,
                    hashes: hashes,
                    timeout: 60
                )
                replacement?.abandon()
                return replacement != nil
            }
            result.withLock { $0 = begun }
        }
        let session = try store.connection()
        let waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'city'::regclass"
        try waitUntil { try session.query(waiting).rowCount > 0 }
        // Another writer comes, and the first one goes on to a table that the migration has locked.
        try session.command("SET lock_timeout = '10s'; UPDATE city SET name = 'Bern' WHERE name = 'Bonn'")
        try writer.command("SET lock_timeout = '10s'; UPDATE strata_history SET last = last; COMMIT")
        try require(done.wait(timeout: .now() + 300) == .success)
        try expect(require(result.withLock { $0 }).get())
    }

    @Test func `what operators have set for tables goes on, and their own columns are named before anything is made`()
        throws
    {
        let store = ChangingStore()
        try store.fill()
        try store.connection().command(
            """
            ALTER TABLE city ADD COLUMN note text; ALTER TABLE strata_consumer ADD COLUMN remark text;
            ALTER TABLE city SET (fillfactor = 70); ALTER TABLE strata_transaction REPLICA IDENTITY FULL
            """
        )
        let error = expectThrows(CocoaError.self) { _ = try migrate(store) }
        let text = error?.localizedDescription ?? ""
        expect(text.contains("column note (of city)"), "\(text)")
        expect(text.contains("column remark (of strata_consumer)"), "\(text)")
        try store.connection().command(
            "ALTER TABLE city DROP COLUMN note; ALTER TABLE strata_consumer DROP COLUMN remark"
        )
        try expect(migrate(store))
        let found = try store.connection().query(
            """
            SELECT (SELECT reloptions::text FROM pg_class WHERE oid = 'city'::regclass),
            (SELECT relreplident::text FROM pg_class WHERE oid = 'strata_transaction'::regclass)
            """
        )
        expectEqual((0..<2).map { found[0].optionalString($0) }, ["{fillfactor=70}", "f"])
        try expectEqual(store.problems(2), [])
    }

    @Test func `what a killed migration has left is removed by the next one`() throws {
        let store = ChangingStore()
        try store.fill()
        let model = ChangingStore.model(1)
        try model.tryFreeze()
        func begun() throws -> PostgreSQLReplacement? {
            try PostgreSQLReplacement(
                of: TestDatabase.url(for: store.url),
                schema: model.frozen.schema,
                configuration: nil,
                hashes: model.entityVersionHashesByName,
                timeout: 30
            )
        }
        do {
            let killed = try require(try begun())
            try killed.copyRows()
        }
        try expect(isLeft(store))
        try expectEqual(store.problems(1), [])
        try expect(migrate(store))
        try expect(!isLeft(store))
        try expectEqual(store.problems(2), [])
    }

    /// A stage between the two versions of cities.
    private func stage(
        did: @escaping (NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void
    ) -> [AnyHashable: Any] {
        let references = [1, 2].map { version in
            let model = ChangingStore.model(version)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
        let stage = NSCustomMigrationStage(migratingFrom: references[0], to: references[1])
        stage.didMigrateHandler = did
        return [NSPersistentStoreStagedMigrationManagerOptionKey: NSStagedMigrationManager([stage])]
    }

    private func rename(_ manager: NSStagedMigrationManager) throws {
        let context = try require(manager.container).newBackgroundContext()
        try context.performAndWait {
            for city in try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")) {
                city.setValue("new " + (city.value(forKey: "title") as? String ?? ""), forKey: "title")
            }
            try context.save()
        }
    }

    @Test func `while a stage's handler works others read the old store, and wait to write to it`() throws {
        let store = ChangingStore()
        try store.fill([NSPersistentHistoryTrackingKey: true])
        let old = try store.open(1, [NSPersistentStoreTimeoutOption: 1])
        let options = stage { manager, _ in
            try self.rename(manager)
            try expectEqual(ChangingStore.values("name", old), ["Bonn", "Ulm"])
            old.performAndWait {
                NSEntityDescription.insertNewObject(forEntityName: "City", into: old).setValue("Kiel", forKey: "name")
                let error = expectThrows(CocoaError.self) { try old.save() }
                expectEqual(error?.code, .persistentStoreTimeout)
            }
        }
        let context = try store.open(2, options.merging([NSPersistentHistoryTrackingKey: true]) { $1 })
        try expectEqual(ChangingStore.values("title", context), ["new Bonn", "new Ulm"])
        // The history goes on with three transactions: the old store's, the migration and the handler's.
        let told = try store.connection().query("SELECT count(*) FROM strata_transaction").firstInt64
        expectEqual(told, 3)
        try expectEqual(store.problems(2), [])
        let error = expectThrows(CocoaError.self) { try ChangingStore.values("name", old) }
        expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
        ChangingStore.close(context)
        ChangingStore.close(old)
    }

    @Test func `after an error of a handler the store is as it was, and can be written to`() throws {
        struct Stop: Error {}
        let store = ChangingStore()
        try store.fill()
        let options = stage { manager, _ in
            try self.rename(manager)
            throw Stop()
        }
        expectThrows(Stop.self) { try store.open(2, options) }
        try expect(!isLeft(store))
        let context = try store.open(1)
        try context.performAndWait {
            NSEntityDescription.insertNewObject(forEntityName: "City", into: context).setValue("Kiel", forKey: "name")
            try context.save()
        }
        try expectEqual(ChangingStore.values("name", context), ["Bonn", "Kiel", "Ulm"])
        ChangingStore.close(context)
        try expectEqual(store.problems(1), [])
    }

    @Test func `a migration to another place that fails leaves nothing there`() throws {
        let store = ChangingStore()
        try store.fill()
        let (first, second) = (ChangingStore.model(1), ChangingStore.model(2))
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: first, destinationModel: second)
        let manager = NSMigrationManager(sourceModel: first, destinationModel: second)
        manager.usesStoreSpecificMigrationManager = false
        let place = store.folder.appendingPathComponent("other")
        manager.progressHandler = { _ in manager.cancelMigrationWithError(CocoaError(.migrationCancelled)) }
        let type = TestDatabase.storeType
        expectThrows(CocoaError.self) {
            try manager.migrateStore(from: store.url, type: type, mapping: mapping, to: place, type: type)
        }
        expectThrows(CocoaError.self) {
            try NSPersistentStoreCoordinator.metadataForPersistentStore(type: type, at: place)
        }
    }
}
