import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataMigration
@testable import StrataPostgreSQLStore

@Suite("Migrations of portable PostgreSQL stores", .enabled(if: Server.isThere && Compiler.isThere))
struct PortableMigrationTests {
    private static func insert(_ name: String, _ attribute: String = "name", _ context: NSManagedObjectContext) throws {
        let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
        city.setValue(name, forKey: attribute)
        try context.save()
    }

    @Test(arguments: [nil, 7])
    func `all rows, keys, relationships, the history and the metadata go on, piece by piece`(_ every: Int?) throws {
        let proxy = try PortableProxy(every: every)
        let store = PortableCities(url: proxy.url)
        try store.fill(venues: 2 * WorkSize.piecewiseRows + 100)
        try store.use(1) { context in
            let store = try require(context.persistentStoreCoordinator?.persistentStores.first)
            store.metadata["Theme"] = "dark"
            try Self.insert("Trier", "name", context)
        }
        let before = try store.contents(1)
        try store.migrate(to: 2)
        try expectEqual(store.contents(2), before)
        try store.requireSound(2)
        try expectEqual(store.generations().current, 1)
        // New keys continue after the old ones, and unique names stay unique.
        try store.use(2) { context in
            try Self.insert("Rees", "title", context)
            let error = expectThrows(CocoaError.self) { try Self.insert("Köln", "title", context) }
            expectEqual(error?.code, .managedObjectConstraintMerge)
        }
        try expectEqual(store.contents(2).count, before.count + 2, "one city more, and a change of the history")
        // The next one begins with the new tables.
        try store.migrate(to: 3)
        try store.requireSound(3)
        try expectEqual(store.generations().current, 2)
        try PostgreSQLStore.destroyStore(at: proxy.url, options: nil)
        try expectEqual(proxy.number("SELECT count(*) FROM pg_namespace WHERE nspname = current_schema()"), 0)
    }

    // MARK: - Others

    @Test(arguments: 0..<7)
    func `a store whose metadata names its tables in a way that cannot be read is refused, and stays as it is`(
        _ damage: Int
    ) throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        try store.migrate(to: 2)
        let before = try store.contents(2)
        let session = try proxy.session()
        let metadata = try require(try StoreMetadata.read(session, "here"))
        var damaged = metadata
        var list = try require(metadata.values[StoreGenerations.key] as? [String: Any])
        switch damage {
        case 0: list["current"] = "1"
        case 1: list["current"] = nil
        case 2: list["last"] = 0
        case 3: list["leftovers"] = "city"
        case 4: list["pending"] = 2
        case 5: list["schemas"] = ["2"]
        default: list = [:]
        }
        damaged.values[StoreGenerations.key] = list
        try session.query("UPDATE strata_store SET metadata = $1", [.bytea(try damaged.archived())])
        for version in [1, 2] {
            let error = expectThrows(CocoaError.self) { try store.use(version) { _ in } }
            expectEqual(error?.code, .fileReadCorruptFile, "\(String(describing: error))")
        }
        try session.query("UPDATE strata_store SET metadata = $1", [.bytea(try metadata.archived())])
        try expectEqual(store.contents(2), before)
        try store.requireSound(2)
    }

    @Test func `a program with the old model reads during the migration, and saves when it was cancelled`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let before = try store.contents(1)
        let old = try store.open(1, [NSPersistentStoreTimeoutOption: 1])
        defer { TrialTests.close(old) }
        let patient = try store.open(1)
        defer { TrialTests.close(patient) }
        let held = try HeldMigration(proxy.url)
        try expectEqual(TrialTests.perform(old) { try TrialTests.venues($0).count }, 6)
        let error = expectThrows(CocoaError.self) {
            try TrialTests.perform(old) { try Self.insert("Rees", "name", $0) }
        }
        expectEqual(error?.code, .persistentStoreTimeout)
        expect(error?.localizedDescription.contains("is being migrated") == true, "\(String(describing: error))")
        let purge = expectThrows(CocoaError.self) {
            try TrialTests.perform(old) {
                try $0.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantPast))
            }
        }
        expectEqual(purge?.code, .persistentStoreTimeout)
        let setting = expectThrows(CocoaError.self) {
            try PostgreSQLStore.setMetadata(["Theme": "dark"], forPersistentStoreAt: proxy.url)
        }
        expectEqual(setting?.code, .persistentStoreTimeout)
        // Whoever has read on a connection does not write on it.
        try expectEqual(TrialTests.perform(old) { try TrialTests.venues($0, "price > 7").count }, 4)
        let save = Errand { try TrialTests.perform(patient) { try Self.insert("Rees", "name", $0) } }
        usleep(300_000)
        try expectEqual(proxy.number("SELECT count(*) FROM city"), 3)
        try held.cancel()
        try save.wait()
        try expectEqual(proxy.number("SELECT count(*) FROM city"), 4)
        try store.requireSound(1)
        try TrialTests.perform(old) { context in
            let request = NSFetchRequest<NSManagedObject>(entityName: "City")
            request.predicate = NSPredicate(format: "name == 'Rees'")
            for city in try context.fetch(request) { context.delete(city) }
            try context.save()
        }
        let isRow = { (line: String) in !line.contains("/") }
        try expectEqual(store.contents(1).filter(isRow), before.filter(isRow))
        try store.migrate(to: 2)
        try store.requireSound(2)
    }

    @Test func `a program with the old model learns it after the migration, and a save that has waited is refused`()
        throws
    {
        let proxy = try PortableProxy()
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let before = try store.contents(1)
        let old = try store.open(1)
        defer { TrialTests.close(old) }
        let held = try HeldMigration(proxy.url)
        let save = Errand { try TrialTests.perform(old) { try Self.insert("Rees", "name", $0) } }
        usleep(200_000)
        try held.finish()
        for attempt in [{ try save.wait() }, { _ = try TrialTests.perform(old) { try TrialTests.venues($0).count } }] {
            let error = expectThrows(CocoaError.self) { try attempt() }
            expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
        }
        try expectEqual(store.contents(2), before)
        try store.requireSound(2)
    }

    @Test func `what is saved up to the migration is in the new tables, and nothing else is acknowledged`() throws {
        let proxy = try PortableProxy()
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let saved = Shared<Set<String>>([])
        let writers = try (0..<4).map { writer in
            let coordinator = try store.open(1)
            return Errand {
                defer { TrialTests.close(coordinator) }
                for number in 0... {
                    let name = "\(writer) \(number)"
                    do { try TrialTests.perform(coordinator) { try Self.insert(name, "name", $0) } } catch let error
                        as CocoaError
                        where error.code == .persistentStoreIncompatibleVersionHash
                    {
                        return number
                    }
                    saved.update { $0.insert(name) }
                }
                return 0
            }
        }
        try waitUntil { saved.current.count > 20 }
        try store.migrate(to: 2)
        for writer in writers { try expect(writer.wait() > 0) }
        let names = try store.use(2) { context in
            let request = NSFetchRequest<NSManagedObject>(entityName: "City")
            request.predicate = NSPredicate(format: "title MATCHES '[0-9]+ [0-9]+'")
            return try context.fetch(request).compactMap { $0.value(forKey: "title") as? String }
        }
        expectEqual(names.sorted(), saved.current.sorted())
        try store.requireSound(2)
    }

    @Test func `a transaction that had begun to write before the announcement ends first, and its rows go on`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let coordinator = try store.open(1)
        defer { TrialTests.close(coordinator) }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let migration = Shared<Errand<Void>?>(nil)
        try context.performAndWait(locking: .seconds(60)) {
            let request = NSFetchRequest<NSManagedObject>(entityName: "City")
            request.rowLock = RowLock(.update)
            try expectEqual(context.fetch(request).count, 3)
            let isDone = DispatchSemaphore(value: 0)
            migration.update {
                $0 = Errand {
                    defer { isDone.signal() }
                    try store.migrate(to: 2)
                }
            }
            try waitUntil { try store.generations().pending != nil }
            // A migration that did not wait would be over by then.
            expect(isDone.wait(timeout: .now() + 1) == .timedOut)
            try Self.insert("Rees", "name", context)
        }
        try require(migration.current).wait()
        let names = try store.use(2) { context in
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City"))
                .compactMap { $0.value(forKey: "title") as? String }
        }
        expectEqual(names.count, 4)
        expect(names.contains("Rees"), "\(names)")
        try store.requireSound(2)
    }

    @Test func `several migrate at once, and it is done once`() throws {
        let proxy = try PortableProxy()
        let store = PortableCities(url: proxy.url)
        try store.fill(venues: WorkSize.piecewiseRows + 10)
        let before = try store.contents(1)
        let all = (0..<4).map { _ in Errand { try store.migrate(to: 2) } }
        for one in all { try one.wait() }
        try expectEqual(store.contents(2), before)
        try store.requireSound(2)
        try expectEqual(store.generations().current, 1)
    }

    // MARK: - What prevents it

    @Test func `rows that do not fit are named, and everybody may write again`() throws {
        let proxy = try PortableProxy(every: nil)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        try store.use(1) { context in
            for venue in try TrialTests.venues(context) { venue.setValue("same", forKey: "name") }
            try context.save()
        }
        let before = try store.contents(1)
        let model = PortableCities.model(2)
        model.entitiesByName["Venue"]?.uniquenessConstraints = [["name"]]
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let error = expectThrows(CocoaError.self) {
            try coordinator.addPersistentStore(
                type: .postgreSQL,
                configuration: nil,
                at: proxy.url,
                options: PortableCities.migrating
            )
        }
        expectEqual(error?.code, .migration)
        let text = "\(error?.localizedDescription ?? "") \(error.map { "\($0.userInfo)" } ?? "")"
        expect(text.contains("Venue") && text.contains("name"), "\(text)")
        try expectEqual(store.contents(1), before)
        try store.requireSound(1)
        try store.use(1) { try Self.insert("Rees", "name", $0) }
        try store.migrate(to: 2)
        try store.requireSound(2)
    }

    @Test func `what others have built on the tables is named before anybody has to wait`() throws {
        let proxy = try PortableProxy()
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let session = try proxy.session()
        try session.command(
            """
            CREATE VIEW names AS SELECT name FROM city; ALTER TABLE tag ADD COLUMN note text; ALTER TABLE venue ENABLE ROW LEVEL SECURITY;
            CREATE TRIGGER nothing BEFORE UPDATE ON venue FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()
            """
        )
        let error = expectThrows(CocoaError.self) { try store.migrate(to: 2) }
        expectEqual(error?.code, .migration)
        let text = error?.localizedDescription ?? ""
        for name in ["view names (of city)", "column note (of tag)", "row security (of venue)", "trigger nothing"] {
            expect(text.contains(name), "\(text)")
        }
        try expectEqual(store.generations(), StoreGenerations())
        try session.command(
            """
            DROP VIEW names; ALTER TABLE tag DROP COLUMN note; ALTER TABLE venue DISABLE ROW LEVEL SECURITY; DROP TRIGGER nothing ON venue;
            GRANT SELECT (people), INSERT (name) ON city TO PUBLIC; GRANT USAGE ON SEQUENCE strata_keys_city TO PUBLIC;
            GRANT DELETE ON city_tags TO PUBLIC; ALTER TABLE city SET (fillfactor = 70); CREATE TABLE bridge_g1 (a int)
            """
        )
        try store.migrate(to: 2)
        // A table of others has one of the names, so these tables get the next number.
        try expectEqual(store.generations().current, 2)
        let granted = try proxy.session().query(
            """
            SELECT has_column_privilege('public', 'city_g2', 'people', 'SELECT'), has_column_privilege('public', 'city_g2', 'title', 'INSERT'),
            has_column_privilege('public', 'city_g2', 'title', 'SELECT'), has_sequence_privilege('public', 'strata_keys_city_g2', 'USAGE'),
            has_table_privilege('public', 'city_tags_g2', 'DELETE'),
            EXISTS (SELECT FROM pg_class WHERE oid = 'city_g2'::regclass AND reloptions = '{fillfactor=70}')
            """
        )
        expectEqual((0..<6).map { granted[0].int64($0) }, [1, 1, 0, 1, 1, 1])
    }

    @Test func `rows that the server has dropped on the way end the migration, and nothing is lost`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let before = try store.contents(1)
        let held = try HeldMigration(proxy.url)
        let session = try proxy.session()
        try session.command("CREATE FUNCTION drop_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        for table in ["city_g1", "tag_g1", "venue_g1"] {
            try session.command("CREATE TRIGGER t BEFORE INSERT ON \(table) FOR EACH ROW EXECUTE FUNCTION drop_row()")
        }
        let error = expectThrows(CocoaError.self) { try held.finish() }
        expect(String(describing: error).contains("were copied"), "\(String(describing: error))")
        try expectEqual(store.contents(1), before)
        try store.requireSound(1)
        try store.migrate(to: 2)
        try store.requireSound(2)
    }

    @Test func `a program that has the store open notices that it was migrated there and back`() throws {
        let proxy = try PortableProxy(every: 0)
        func open(_ version: String) throws -> NSPersistentStoreCoordinator {
            let thing = NSEntityDescription("Thing", attribute("name"))
            thing.versionHashModifier = version
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: NSManagedObjectModel(thing))
            let options = PortableCities.migrating
            try coordinator.addPersistentStore(type: .postgreSQL, configuration: nil, at: proxy.url, options: options)
            return coordinator
        }
        func names(_ coordinator: NSPersistentStoreCoordinator, adding name: String? = nil) throws -> [String] {
            try TrialTests.perform(coordinator) { context in
                if let name {
                    let thing = NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
                    thing.setValue(name, forKey: "name")
                    try context.save()
                }
                return try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Thing"))
                    .compactMap { $0.value(forKey: "name") as? String }.sorted()
            }
        }
        let old = try open("1")
        defer { TrialTests.close(old) }
        try expectEqual(names(old, adding: "first"), ["first"])
        TrialTests.close(try open("2"))
        let back = try open("1")
        defer { TrialTests.close(back) }
        try expectEqual(names(back, adding: "second"), ["first", "second"])
        for name in [nil, "lost"] {
            let error = expectThrows(CocoaError.self) { _ = try names(old, adding: name) }
            expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
        }
        try expectEqual(names(back), ["first", "second"])
    }

    @Test func `a table that is still read stays, and is dropped when the store is opened the next time`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let reader = try proxy.session()
        try reader.command("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM venue")
        try store.migrate(to: 2, [NSPersistentStoreTimeoutOption: 1])
        try expectEqual(store.generations().leftovers, ["venue"])
        try expectEqual(reader.query("SELECT count(*) FROM venue").firstInt64, 6)
        try reader.command("COMMIT")
        try store.use(2) { _ in }
        try store.requireSound(2)
    }

    // MARK: - Tools

    @Test func `tools find the tables of a migrated store, and a plan has the steps`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let plan = try NSMigrationPlan(
            forStoreAt: proxy.url,
            type: .postgreSQL,
            from: nil,
            to: PortableCities.model(2)
        )
        let works = plan.steps.map(\.work)
        expect(works.contains { $0.hasPrefix("closes the store to writers") }, "\(works)")
        expect(works.contains("copies venue to venue_g1"), "\(works)")
        expect(works.contains("copies pairs to city_tags_g1"), "\(works)")
        try expectEqual(store.generations(), StoreGenerations())
        try store.migrate(to: 2)
        let url = proxy.url.absoluteString
        for arguments in [["verify", "--store", url], ["vacuum", "--store", url]] {
            let done = Tool.run(arguments)
            expect(done.code == .success, "\(done)")
        }
        let policies = Tool.run(["schema", "--store", url, "--rls", "name"])
        expect(policies.lines.contains { $0.contains("venue_g1") } || policies.code != .success, "\(policies)")
    }
}
