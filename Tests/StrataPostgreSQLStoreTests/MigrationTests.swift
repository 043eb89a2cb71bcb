import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataPostgreSQLStore
import TestSupport
import Testing

/// A store whose model changes, in a separate schema that stands for a file.
final class ChangingStore: Sendable {
    let folder: URL
    let url: URL

    init() {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        url = folder.appendingPathComponent("store")
    }

    deinit { TestDatabase.drop(url) }

    /// A model of cities.
    ///
    /// The second version has one attribute more, one attribute with another name, and one entity more.
    static func model(_ version: Int) -> NSManagedObjectModel {
        func attribute(_ name: String, _ type: NSAttributeType, was: String? = nil) -> NSAttributeDescription {
            let attribute = NSAttributeDescription()
            attribute.name = name
            attribute.attributeType = type
            attribute.isOptional = true
            attribute.renamingIdentifier = was
            return attribute
        }
        let city = NSEntityDescription()
        city.name = "City"
        city.properties = [attribute("people", .integer32AttributeType)]
        let model = NSManagedObjectModel()
        if version == 1 {
            city.properties.append(attribute("name", .stringAttributeType))
            model.entities = [city]
        } else {
            city.properties.append(attribute("title", .stringAttributeType, was: "name"))
            let country = attribute("country", .stringAttributeType)
            country.defaultValue = "DE"
            city.properties.append(country)
            let bridge = NSEntityDescription()
            bridge.name = "Bridge"
            bridge.properties = [attribute("length", .doubleAttributeType)]
            // Its name sorts before the other, so that the other's number changes.
            model.entities = [bridge, city]
        }
        return model
    }

    static var migrating: [AnyHashable: Any] {
        [NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true]
    }

    func open(_ version: Int, _ options: [AnyHashable: Any] = [:]) throws -> NSManagedObjectContext {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model(version))
        try coordinator.addPersistentStore(
            type: TestDatabase.storeType,
            configuration: nil,
            at: url,
            options: Self.migrating.merging(options) { $1 }
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    static func close(_ context: NSManagedObjectContext) {
        guard let coordinator = context.persistentStoreCoordinator else { return }
        for store in coordinator.persistentStores { try? coordinator.remove(store) }
    }

    /// The values of an attribute of all cities, in order.
    static func values(_ key: String, _ context: NSManagedObjectContext) throws -> [String] {
        try context.performAndWait {
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City"))
                .compactMap { $0.value(forKey: key) as? String }.sorted()
        }
    }

    func fill(_ options: [AnyHashable: Any] = [:]) throws {
        let context = try open(1, options)
        try context.performAndWait {
            for name in ["Bonn", "Ulm"] {
                let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                city.setValue(name, forKey: "name")
            }
            try context.save()
        }
        Self.close(context)
    }

    func connection() throws -> Connection {
        let target = try ConnectionTarget(TestDatabase.url(for: url))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        return connection
    }

    func problems(_ version: Int) throws -> [String] { try PostgreSQLStore.problems(at: url, Self.model(version)) }
}

@Suite("Migration of PostgreSQL stores", .enabled(if: Server.isThere))
struct MigrationTests {
    @Test func `objects keep renamed attributes, and get the default values of new ones`() throws {
        let store = ChangingStore()
        try store.fill()
        let context = try store.open(2)
        defer { ChangingStore.close(context) }
        try expectEqual(ChangingStore.values("title", context), ["Bonn", "Ulm"])
        try expectEqual(ChangingStore.values("country", context), ["DE", "DE"])
        try context.performAndWait {
            NSEntityDescription.insertNewObject(forEntityName: "Bridge", into: context).setValue(12.5, forKey: "length")
            NSEntityDescription.insertNewObject(forEntityName: "City", into: context).setValue("Kiel", forKey: "title")
            try context.save()
        }
        try expectEqual(ChangingStore.values("title", context), ["Bonn", "Kiel", "Ulm"])
        try expectEqual(store.problems(2), [])
    }

    @Test func `without the option that asks for it a store is refused and stays as it is`() throws {
        let store = ChangingStore()
        try store.fill()
        let error = expectThrows(CocoaError.self) {
            try store.open(2, [NSMigratePersistentStoresAutomaticallyOption: false])
        }
        expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
        try expectEqual(store.problems(1), [])
    }

    @Test func `a store that is open with the old model neither reads nor saves any more`() throws {
        let store = ChangingStore()
        try store.fill()
        let old = try store.open(1)
        defer { ChangingStore.close(old) }
        try expectEqual(ChangingStore.values("name", old), ["Bonn", "Ulm"])
        let new = try store.open(2)
        defer { ChangingStore.close(new) }
        let reading = expectThrows(CocoaError.self) { _ = try ChangingStore.values("name", old) }
        expectEqual(reading?.code, .persistentStoreIncompatibleVersionHash)
        let saving = expectThrows(CocoaError.self) {
            try old.performAndWait {
                _ = NSEntityDescription.insertNewObject(forEntityName: "City", into: old)
                try old.save()
            }
        }
        expectEqual(saving?.code, .persistentStoreIncompatibleVersionHash)
        try expectEqual(ChangingStore.values("title", new), ["Bonn", "Ulm"])
    }

    @Test func `a store that is open with the old model takes no pinned context, and no loop over rows`() async throws {
        let store = ChangingStore()
        try store.fill()
        let old = try store.open(1)
        defer { ChangingStore.close(old) }
        let new = try store.open(2)
        defer { ChangingStore.close(new) }
        // Each call opens a new session, which the migration could not end.
        let pinning = expectThrows(CocoaError.self) {
            try old.performAndWait {
                try old.setQueryGenerationFrom(.current)
                _ = try old.fetch(NSFetchRequest<NSManagedObject>(entityName: "City"))
            }
        }
        expectEqual(pinning?.code, .persistentStoreIncompatibleVersionHash)
        let looping = await expectThrows(CocoaError.self) {
            for try await _ in old.rows(for: NSFetchRequest<NSManagedObject>(entityName: "City"), batchSize: 1) {}
        }
        expectEqual(looping?.code, .persistentStoreIncompatibleVersionHash)
    }

    @Test func `if several come at once, one migrates, and all open the store`() async throws {
        let store = ChangingStore()
        try store.fill([NSPersistentHistoryTrackingKey: true])
        let found = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let context = try store.open(2, [NSPersistentHistoryTrackingKey: true])
                    defer { ChangingStore.close(context) }
                    return try ChangingStore.values("title", context)
                }
            }
            return try await group.reduce(into: [[String]]()) { $0.append($1) }
        }
        expectEqual(found, Array(repeating: ["Bonn", "Ulm"], count: 4))
        // The history has one migration.
        let migrations = try store.connection().query(
            "SELECT count(*) FROM strata_transaction WHERE author LIKE 'com.apple.coredata.schemamigrator%'"
        )
        expectEqual(migrations.firstInt64, 1)
        try expectEqual(store.problems(2), [])
    }

    @Test
    func `a table that another keeps locked is waited for until the time-out, and none waits behind the migration`()
        throws
    {
        let store = ChangingStore()
        try store.fill()
        let holder = try store.connection()
        try holder.command("BEGIN; SELECT count(*) FROM city")
        let error = expectThrows(CocoaError.self) { try store.open(2, [NSPersistentStoreTimeoutOption: 4]) }
        expectEqual(error?.code, .persistentStoreTimeout)
        let text = error?.localizedDescription ?? ""
        expect(text.contains("blocked by process \(holder.serverProcess) of the server"), "\(text)")
        try holder.command("ROLLBACK")
        try expectEqual(store.problems(1), [])
        let context = try store.open(2)
        try expectEqual(ChangingStore.values("title", context), ["Bonn", "Ulm"])
        ChangingStore.close(context)
    }

    @Test func `metadata that another program writes while the migration waits for the tables is kept`() throws {
        let store = ChangingStore()
        try store.fill()
        let writer = try store.connection()
        let found = try writer.query("SELECT metadata FROM strata_store")[0].data(0)
        var metadata = try require(
            PropertyListSerialization.propertyList(from: found, format: nil) as? [String: Any]
        )
        metadata["mine"] = "kept"
        let data = try PropertyListSerialization.data(fromPropertyList: metadata, format: .binary, options: 0)
        try writer.command("BEGIN")
        try writer.query("UPDATE strata_store SET metadata = $1", [.bytea(data)])

        let done = DispatchSemaphore(value: 0)
        let failure = Locked<(any Error)?>(nil)
        Thread.detachNewThread {
            defer { done.signal() }
            do { ChangingStore.close(try store.open(2)) } catch { failure.withLock { $0 = error } }
        }
        let session = try store.connection()
        let waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'strata_store'::regclass"
        try waitUntil { try session.query(waiting).rowCount > 0 }
        try writer.command("COMMIT")
        try require(done.wait(timeout: .now() + 300) == .success)

        try require(failure.withLock { $0 } == nil)
        let context = try store.open(2)
        defer { ChangingStore.close(context) }
        let kept = context.persistentStoreCoordinator?.persistentStores.first?.metadata["mine"] as? String
        expectEqual(kept, "kept")
        try expectEqual(store.problems(2), [])
    }

    @Test func `the history speaks of the new entities and names`() throws {
        let store = ChangingStore()
        try store.fill([NSPersistentHistoryTrackingKey: true])
        let old = try store.open(1, [NSPersistentHistoryTrackingKey: true])
        try old.performAndWait {
            let city = try old.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first
            city?.setValue("Köln", forKey: "name")
            try old.save()
        }
        ChangingStore.close(old)
        let context = try store.open(2, [NSPersistentHistoryTrackingKey: true])
        defer { ChangingStore.close(context) }
        let told = try context.performAndWait {
            let result = try context.execute(
                NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            )
            let transactions = (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
            return transactions.flatMap { $0.changes ?? [] }.map { change in
                "\(change.changedObjectID.entity.name ?? "") \((change.updatedProperties ?? []).map(\.name))"
            }
        }
        expectEqual(told, ["City []", "City []", "City [\"title\"]"])
    }
}

@Suite("Checks of PostgreSQL stores", .enabled(if: Server.isThere))
struct VerificationTests {
    @Test(arguments: [
        ("UPDATE city SET strata_entity = 99", "are of no entity of the model"),
        ("UPDATE city SET strata_version = 0", "have no version"),
        ("UPDATE city SET strata_id = 1000000", "have keys that were not given yet"),
        ("ALTER TABLE city DROP COLUMN people", "city.people is missing"),
        ("UPDATE strata_change SET seq = 77", "changes are of no transaction"),
        ("ALTER TABLE city DROP CONSTRAINT city_pkey", "city has not the primary key (strata_id)"),
        ("ALTER TABLE strata_change DROP CONSTRAINT strata_change_pkey", "strata_change has not the primary key"),
        ("SELECT setval('strata_keys_city', 1, false)", "2 rows of city have keys that were not given yet"),
        ("ALTER SEQUENCE strata_keys_city INCREMENT BY 1", "increments by 1, not 1000"),
        ("DROP SEQUENCE strata_keys_city", "the sequence strata_keys_city is missing"),
        ("SELECT setval('strata_transaction_seq_seq', 1, false)", "transactions have places that were not given yet"),
        ("DROP INDEX strata_transaction_number", "the index strata_transaction_number is missing"),
    ])
    func `what plain SQL has broken is found`(_ sql: String, _ sign: String) throws {
        let store = ChangingStore()
        try store.fill([NSPersistentHistoryTrackingKey: true])
        try expectEqual(store.problems(1), [])
        let connection = try store.connection()
        if sql.contains("strata_id") { try connection.command("DELETE FROM city WHERE strata_id > 1") }
        try connection.command(sql)
        try expect(store.problems(1).contains { $0.contains(sign) })
    }

    @Test(arguments: [
        ("CREATE INDEX strata_unique_person_name ON person (name)", "strata_unique_person_name is not unique"),
        (
            "CREATE UNIQUE INDEX strata_unique_person_name ON person (name, number)",
            "strata_unique_person_name is of (\"name\", \"number\"), not of (\"name\")"
        ),
        (
            "CREATE UNIQUE INDEX strata_unique_person_name ON person (name) WHERE number > 0",
            "strata_unique_person_name has some rows, not all"
        ),
        (
            "CREATE UNIQUE INDEX strata_unique_person_name ON membership (members_id)",
            "strata_unique_person_name is of membership, not of person"
        ),
        (
            "CREATE INDEX membership_inverse_index ON membership (clubs_id)",
            "membership_inverse_index is of (\"clubs_id\")"
        ),
        ("CREATE UNIQUE INDEX person_entity_index ON person (strata_entity)", "person_entity_index is unique"),
        ("ALTER TABLE membership DROP CONSTRAINT membership_pkey", "membership has not the primary key"),
        (
            "UPDATE membership SET members_id = (SELECT strata_id FROM person WHERE name = 'Anna')",
            "1 pairs of membership have an object in members_id that is no Member"
        ),
    ])
    func `indexes and pairs that are not as the model has them are found`(_ sql: String, _ sign: String) throws {
        func model() -> NSManagedObjectModel {
            let person = StoreModels.entity("Person", [StoreModels.attribute("name", .string)])
            let member = StoreModels.entity("Member", [StoreModels.attribute("number", .integer32)])
            let club = StoreModels.entity("Club")
            let (clubs, members) = (StoreModels.toMany("clubs", club), StoreModels.toMany("members", member))
            StoreModels.connect(clubs, members)
            for relationship in [clubs, members] { relationship.userInfo = ["postgresql.table": "membership"] }
            person.uniquenessConstraints = [["name"]]
            person.subentities = [member]
            member.properties.append(clubs)
            club.properties = [members]
            return StoreModels.model(person, member, club)
        }
        let store = ReopenedStore()
        try store.with(model()) { context in
            func insert(_ entity: String) -> NSManagedObject {
                NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
            }
            insert("Person").setValue("Anna", forKey: "name")
            let ben = insert("Member")
            ben.setValue("Ben", forKey: "name")
            insert("Club").setValue(Set([ben]), forKey: "members")
            try context.save()
        }
        try expectEqual(store.problems(model()), [])
        let words = sql.split(separator: " ")
        if let place = words.firstIndex(of: "INDEX") {
            try store.command("DROP INDEX \(words[place + 1])")
            // This leaves one row of each entity.
            if sql.contains("(strata_entity)") { try store.command("DELETE FROM person WHERE name = 'Anna'") }
        }
        try store.command(sql)
        let problems = try store.problems(model())
        expect(problems.contains { $0.contains(sign) }, "\(problems)")
    }
}
