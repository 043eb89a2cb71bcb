import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

/// Foreign keys show which store a table of pairs belongs to.
private let hasNoForeignKeys = ProcessInfo.processInfo.environment["STRATA_FOREIGN_KEYS"] != "1"

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

    @Test func `a store that moves to a database and back has all that it had, members in their order too`() throws {
        let stack = try Stack(.sqlite)
        let context = stack.context()
        try context.performAndWait {
            let venue = Venue(context: context)
            (venue.name, venue.price, venue.code) = ("v", 7, UUID())
            venue.map = Data(repeating: 7, count: 200_000)
            let photos = (0..<4).map { number in
                let photo = Photo(context: context)
                photo.title = "\(number)"
                return photo
            }
            // Neither the order of the keys nor its reverse.
            venue.photos = [2, 0, 3, 1].map { photos[$0] }
            let bar = Bar(context: context)
            bar.name = "b"
            let user = User(context: context)
            user.email = "e"
            user.favourites = [bar, venue]
            venue.tags = [TestSupport.Tag(context: context)]
            try context.save()
        }
        let before = try stack.state()
        let place = stack.folder.appendingPathComponent("moved")
        defer { TestDatabase.drop(place) }
        let back = stack.folder.appendingPathComponent("back.sqlite")
        for (url, type) in [(place, NSPersistentStore.StoreType.postgreSQL), (back, .sqlite)] {
            let store = try require(stack.coordinator.persistentStores.first)
            try stack.coordinator.migratePersistentStore(store, to: url, type: type)
            try expectEqual(stack.state().differences(from: before, ignoring: StoreState.identity), [])
        }
    }

    @Test func `a store that moves to a database and back has the derived times that it had`() throws {
        let city = StoreModels.entity("City")
        city.properties = [
            StoreModels.attribute("name", .string),
            StoreModels.derived("savedAt", .date, NSExpression(format: "now()")),
        ]
        let stack = try Stack(.sqlite, model: StoreModels.model(city))
        try insert("Porto", stack.context())
        func time() throws -> Date? {
            let context = stack.context()
            return try context.performAndWait {
                let request = NSFetchRequest<NSManagedObject>(entityName: "City")
                return try context.fetch(request).first?.value(forKey: "savedAt") as? Date
            }
        }
        let before = try require(time())
        let place = stack.folder.appendingPathComponent("moved")
        defer { TestDatabase.drop(place) }
        let first = try require(stack.coordinator.persistentStores.first)
        let moved = try stack.coordinator.migratePersistentStore(first, to: place, type: .postgreSQL)
        try expectEqual(time(), before)
        let file = stack.folder.appendingPathComponent("back.sqlite")
        try stack.coordinator.migratePersistentStore(moved, to: file, type: .sqlite)
        try expectEqual(time(), before)
    }

    @Test func `what another session commits while a store moves away is moved as well`() throws {
        let stack = try Stack(.postgreSQL)
        try insert("Rome", stack.context())
        let other = try TestDatabase.session(stack.storeURL)
        try other.command("BEGIN")
        // A save on another machine, which commits later, would write this.
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
        // This session has a lock that the save waits for.
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
        // The move copies nothing before the save has ended.
        try expect(!wait(1) { try watching.query("\(locks) AND mode = 'ShareLock'").rowCount > 0 })
        try other.rollback()
        try saving.join()
        _ = try moving.join()
        try expectEqual(cities(stack.coordinator), ["Roma"])
    }

    @Test func `a store that is destroyed is gone for all that have it open, and they write nothing into the next one`()
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

    /// The relations in a schema, without indexes and parts of tables.
    private func relations(_ stack: Stack) throws -> [String] {
        try TestDatabase.texts(
            """
            SELECT c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'v', 'S') ORDER BY 1
            """,
            in: stack.storeURL
        )
    }

    private func destroy(_ stack: Stack) throws -> String? {
        try PostgreSQLEngine.destroy(at: TestDatabase.url(for: stack.storeURL), timeout: 30)
    }

    @Test func `a schema that has nothing else goes with its store`() throws {
        let stack = try Stack(.postgreSQL)
        try insert("Rome", stack.context())
        try expect(relations(stack).contains("city"))
        try expectEqual(destroy(stack), nil)
        let schema = try ConnectionTarget(TestDatabase.url(for: stack.storeURL)).schema
        let found = try Server.connection().query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [.text(schema)])
        expectEqual(found.rowCount, 0)
        try expectEqual(destroy(stack), nil, "there is no store any more")
    }

    @Test func `what others have put into its schema stays when a store is destroyed, and is named`() throws {
        let person = StoreModels.entity("Person", [StoreModels.attribute("name", .string)])
        let club = StoreModels.entity("Club")
        let (clubs, people) = (StoreModels.toMany("clubs", club), StoreModels.toMany("people", person))
        StoreModels.connect(clubs, people)
        person.properties.append(clubs)
        club.properties.append(people)
        person.userInfo = ["postgresql.table": "Humans \"of\" ours"]
        people.userInfo = ["postgresql.table": "membership"]
        let stack = try Stack(.postgreSQL, model: StoreModels.model(person, club))
        try expect(Set(relations(stack)).isSuperset(of: ["Humans \"of\" ours", "membership", "club"]))
        try TestDatabase.run(
            """
            CREATE TABLE notes (strata_id bigserial PRIMARY KEY, text text);
            INSERT INTO notes (text) VALUES ('mine');
            CREATE TABLE club_people (a bigint, b bigint, PRIMARY KEY (a, b));
            CREATE VIEW shown AS SELECT text FROM notes;
            CREATE FUNCTION twice(integer) RETURNS integer LANGUAGE sql AS 'SELECT $1 * 2'
            """,
            in: stack.storeURL
        )
        let line = try require(destroy(stack))
        for name in ["notes", "club_people", "shown", "twice()"] { expect(line.contains(name), "\(name) in \(line)") }
        try expectEqual(relations(stack), ["club_people", "notes", "notes_strata_id_seq", "shown"])
        try expectEqual(TestDatabase.texts("SELECT text FROM shown", in: stack.storeURL), ["mine"])

        // The schema has room for a store again. The public call destroys it without an error.
        let own = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try own.addPersistentStore(type: .postgreSQL, configuration: nil, at: stack.storeURL)
        try own.remove(store)
        try own.destroyPersistentStore(at: stack.storeURL, type: .postgreSQL)
        try expectEqual(TestDatabase.texts("SELECT text FROM shown", in: stack.storeURL), ["mine"])
    }

    @Test func `a store is not destroyed as long as something else depends on its tables`() throws {
        let stack = try Stack(.postgreSQL)
        try insert("Rome", stack.context())
        try TestDatabase.run(
            "CREATE VIEW names AS SELECT name FROM city; CREATE TABLE visits (city bigint REFERENCES city)",
            in: stack.storeURL
        )
        let error = try #require(throws: CocoaError.self) { try destroy(stack) }
        expectEqual(error.code, .persistentStoreOperation)
        for name in ["view", "names", "visits"] { expect(error.localizedDescription.contains(name), "\(error)") }
        try expectEqual(TestDatabase.texts("SELECT name FROM names", in: stack.storeURL), ["Rome"])
        try TestDatabase.run("DROP VIEW names; DROP TABLE visits", in: stack.storeURL)
        try expectEqual(destroy(stack), nil)
    }

    @Test(.enabled(if: hasNoForeignKeys)) func `a store that has not noted its tables leaves those of pairs`() throws {
        let stack = try Stack(.postgreSQL)
        let session = try TestDatabase.session(stack.storeURL)
        let url = stack.storeURL
        var metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .postgreSQL, at: url)
        expect(metadata["StrataTableNames"] as? [String] != nil)
        metadata["StrataTableNames"] = nil
        let data = try PropertyListSerialization.data(fromPropertyList: metadata, format: .binary, options: 0)
        try session.query("UPDATE strata_store SET metadata = $1", [.bytea(data)])
        let pairs = try relations(stack).filter { name in
            let columns = try TestDatabase.texts(
                "SELECT attname::text FROM pg_attribute WHERE attrelid = '\"\(name)\"'::regclass AND attnum > 0",
                in: stack.storeURL
            )
            return !name.hasPrefix("strata_") && !columns.contains("strata_id")
        }
        expect(!pairs.isEmpty)
        let line = try require(destroy(stack))
        expect(pairs.allSatisfy { line.contains($0) }, "\(line)")
        try expectEqual(relations(stack), pairs)
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
        // Another program has migrated the store, and this session does not know.
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
