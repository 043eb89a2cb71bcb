import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

@Suite("Stores that move to PostgreSQL, and from there", .enabled(if: Server.isThere))
struct MovingTests {
    private func insert(_ name: String, _ context: NSManagedObjectContext) throws {
        try context.performAndWait {
            let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
            city.setValue(name, forKey: "name")
            try context.save()
        }
    }

    private func cities(_ coordinator: NSPersistentStoreCoordinator) throws -> [String] {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return try context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "City")
            return try context.fetch(request).compactMap { $0.value(forKey: "name") as? String }.sorted()
        }
    }

    @Test func `a store with objects is not moved to, and stays as it is`() throws {
        let (source, target) = (try Stack(.sqlite), try Stack(.postgreSQL))
        try insert("Porto", source.context())
        try insert("Rome", target.context())
        let store = try require(source.coordinator.persistentStores.first)
        let error = expectThrows(CocoaError.self) {
            try source.coordinator.migratePersistentStore(store, to: target.storeURL, type: .postgreSQL)
        }
        expectEqual(error?.code, .persistentStoreOperation)
        try expectEqual(cities(target.coordinator), ["Rome"])
        try expectEqual(cities(source.coordinator), ["Porto"])
    }

    @Test(arguments: [false, true])
    func `a store moves to a database and back to a file`(_ history: Bool) throws {
        let options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: history]
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: options)
        try insert("Porto", stack.context())
        let place = stack.folder.appendingPathComponent("moved")
        defer { TestDatabase.drop(place) }
        let first = try require(stack.coordinator.persistentStores.first)
        let moved = try stack.coordinator.migratePersistentStore(
            first,
            to: place,
            options: options,
            type: .postgreSQL
        )
        try insert("Rome", stack.context())
        try expectEqual(cities(stack.coordinator), ["Porto", "Rome"])
        let file = stack.folder.appendingPathComponent("back.sqlite")
        try stack.coordinator.migratePersistentStore(moved, to: file, type: .sqlite)
        try expectEqual(cities(stack.coordinator), ["Porto", "Rome"])
    }

    @Test func `what somebody commits while a store moves away is moved as well`() throws {
        let stack = try Stack(.postgreSQL)
        try insert("Rome", stack.context())
        let other = try TestDatabase.session(stack.storeURL)
        try other.command("BEGIN")
        // What a save of another machine would write, which commits later.
        let written = try other.query(
            "INSERT INTO city SELECT (c).* FROM (SELECT jsonb_populate_record(c, '{\"strata_id\": 999, \"name\": \"Porto\"}') AS c FROM city AS c) AS new"
        )
        expectEqual(written.changeCount, 1)
        let store = try require(stack.coordinator.persistentStores.first)
        let file = stack.folder.appendingPathComponent("moved.sqlite")
        let watching = try TestDatabase.session(stack.storeURL)
        let moving = onThread { try stack.coordinator.migratePersistentStore(store, to: file, type: .sqlite) }
        let waiting = """
            SELECT 1 FROM pg_catalog.pg_locks WHERE relation = 'city'::pg_catalog.regclass AND mode = 'ShareLock' AND NOT granted
            """
        let end = ContinuousClock.now + .seconds(120)
        while try watching.query(waiting).rowCount == 0, ContinuousClock.now < end { usleep(2_000) }
        try expectEqual(watching.query(waiting).rowCount, 1)
        try other.command("COMMIT")
        _ = try moving.join()
        try expectEqual(cities(stack.coordinator), ["Porto", "Rome"])
    }

    @Test func `a save that is under way when a store moves away is moved as well`()
        throws
    {
        let stack = try Stack(.postgreSQL)
        try insert("Rome", stack.context())
        let store = try require(stack.coordinator.persistentStores.first as? PostgreSQLStore)
        let gate = try require(store.engine as? PostgreSQLEngine).gate
        // It has a lock that the save waits for.
        let (other, watching) = (try TestDatabase.session(stack.storeURL), try TestDatabase.session(stack.storeURL))
        try other.command("BEGIN; SELECT 1 FROM city FOR UPDATE")
        let context = stack.context()
        let saving = onThread {
            try context.performAndWait {
                let city = try require(try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
                city.setValue("Roma", forKey: "name")
                try context.save()
            }
        }
        func wait(_ seconds: Double, _ condition: () throws -> Bool) rethrows -> Bool {
            let end = ContinuousClock.now + .seconds(seconds)
            while ContinuousClock.now < end {
                if try condition() { return true }
                usleep(2_000)
            }
            return false
        }
        let locks = "SELECT 1 FROM pg_catalog.pg_locks WHERE relation = 'city'::pg_catalog.regclass AND granted"
        try expect(wait(120) { try watching.query("\(locks) AND mode = 'RowShareLock'").rowCount > 1 })
        let file = stack.folder.appendingPathComponent("moved.sqlite")
        let moving = onThread { try stack.coordinator.migratePersistentStore(store, to: file, type: .sqlite) }
        expect(wait(120) { gate.isClosed })
        // Nothing is copied before the save has ended.
        try expect(!wait(1) { try watching.query("\(locks) AND mode = 'ShareLock'").rowCount > 0 })
        try other.rollback()
        try saving.join()
        _ = try moving.join()
        try expectEqual(cities(stack.coordinator), ["Roma"])
    }

    @Test func `a store that is destroyed is gone for whoever has it open, who writes nothing into the next one`()
        throws
    {
        let stack = try Stack(.postgreSQL)
        let context = stack.context()
        try insert("Rome", context)
        let own = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try own.destroyPersistentStore(at: stack.storeURL, type: .postgreSQL)
        try own.addPersistentStore(type: .postgreSQL, configuration: nil, at: stack.storeURL)
        defer { for store in own.persistentStores { try? own.remove(store) } }
        let error = expectThrows(CocoaError.self) { try insert("Porto", context) }
        expectEqual(error?.code, .persistentStoreOperation)
        try expectEqual(cities(own), [])
    }

    @Test func `metadata that is set is written beside what others have noted, and never over another model's`() throws
    {
        let stack = try Stack(.postgreSQL)
        let store = try require(stack.coordinator.persistentStores.first)
        let hashes = store.metadata[NSStoreModelVersionHashesKey] as? [String: Data]
        let somebody = try TestDatabase.session(stack.storeURL)
        func note(_ values: [String: Any]) throws {
            var all = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .postgreSQL, at: stack.storeURL)
            all.merge(values) { $1 }
            let data = try PropertyListSerialization.data(fromPropertyList: all, format: .binary, options: 0)
            try somebody.query("UPDATE strata_store SET metadata = $1", [.bytea(data)])
        }
        // Somebody has migrated the store, without this session knowing.
        try note([NSStoreModelVersionHashesKey: ["City": Data([1])]])
        store.metadata["note"] = "mine"
        let context = stack.context()
        let error = expectThrows(CocoaError.self) { try context.performAndWait { try context.save() } }
        expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
        let kept = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .postgreSQL, at: stack.storeURL)
        expectEqual(kept[NSStoreModelVersionHashesKey] as? [String: Data], ["City": Data([1])])
        expectEqual(kept["note"] as? String, nil)

        try note([NSStoreModelVersionHashesKey: hashes ?? [:]])
        try context.performAndWait { try context.save() }
        let written = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .postgreSQL, at: stack.storeURL)
        expectEqual(written["note"] as? String, "mine")
    }
}
