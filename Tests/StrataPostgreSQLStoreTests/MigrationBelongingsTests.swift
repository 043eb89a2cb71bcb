import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// A role for one test, on the server of the tests.
private final class TemporaryRole: Sendable {
    let name = "strata_role_" + String(UInt64.random(in: 0 ... .max), radix: 36)

    init() throws { try Server.connection().command("CREATE ROLE \(name)") }

    deinit { _ = try? Server.connection().command("DROP OWNED BY \(name); DROP ROLE \(name)") }
}

/// In the second version of the atlas the table of countries is written anew, and the table of regions stays.
@Suite("What others have given to tables of a PostgreSQL store that is migrated", .enabled(if: Server.isThere))
struct MigrationBelongingsTests {
    private func truths(_ store: KeyedStore, _ conditions: [String]) throws -> [Bool] {
        let found = try store.connection().query("SELECT \(conditions.joined(separator: ", "))")
        return conditions.indices.map { found[0].int64($0) != 0 }
    }

    @Test func `tables that are written anew keep their privileges, their owner and their triggers`() throws {
        let role = try TemporaryRole()
        let owner = try TemporaryRole()
        let store = KeyedStore()
        try store.make(KeyedStore.atlas(1))
        let schema = try store.connection().query("SELECT current_schema()::text")[0].string(0)
        try store.connection().command(
            """
            GRANT SELECT ON country TO \(role.name) WITH GRANT OPTION; GRANT INSERT ON country TO \(role.name);
            GRANT SELECT ON country TO PUBLIC; GRANT UPDATE (name, motto) ON country TO \(role.name);
            CREATE TABLE seen (what text);
            CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN INSERT INTO \(schema).seen VALUES (TG_NAME || NEW.name); RETURN NEW; END';
            CREATE TRIGGER first AFTER INSERT ON country FOR EACH ROW WHEN (NEW.name <> '') EXECUTE FUNCTION see();
            CREATE TRIGGER second AFTER INSERT ON country FOR EACH ROW EXECUTE FUNCTION see();
            ALTER TABLE country DISABLE TRIGGER second;
            GRANT USAGE, CREATE ON SCHEMA \(schema) TO \(owner.name); ALTER TABLE country OWNER TO \(owner.name);
            ALTER DEFAULT PRIVILEGES IN SCHEMA \(schema) GRANT DELETE ON TABLES TO \(role.name)
            """
        )
        let context = try store.open(KeyedStore.atlas(2))
        defer { ChangingStore.close(context) }
        try context.performAndWait {
            _ = context.insert("Country", ["name": "Italy"])
            try context.save()
        }
        let may = { (what: String) in "has_table_privilege('\(role.name)', 'country', '\(what)')" }
        try expectEqual(
            truths(
                store,
                [
                    may("SELECT WITH GRANT OPTION"), may("INSERT"), may("INSERT WITH GRANT OPTION"), may("UPDATE"),
                    may("DELETE"), "has_column_privilege('\(role.name)', 'country', 'name', 'UPDATE')",
                    "has_table_privilege('public', 'country', 'SELECT')",
                    "(SELECT relowner::regrole::text = '\(owner.name)' FROM pg_class WHERE oid = 'country'::regclass)",
                ]
            ),
            [true, true, false, false, false, true, true, true]
        )
        try expectEqual(store.connection().query("SELECT what FROM seen").rows.map { $0.string(0) }, ["firstItaly"])
        try expectEqual(store.problems(KeyedStore.atlas(2)), [])
        try store.connection().command("ALTER TABLE country OWNER TO CURRENT_USER")
    }

    @Test func `tables that are written anew keep their parameters, their replica identity and their publications`()
        throws
    {
        let store = KeyedStore()
        try store.make(KeyedStore.atlas(1))
        let publication = "strata_publication_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        try store.connection().command(
            """
            ALTER TABLE country SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_enabled = false);
            ALTER TABLE country REPLICA IDENTITY FULL; CREATE PUBLICATION \(publication) FOR TABLE country, region
            """
        )
        defer { _ = try? Server.connection().command("DROP PUBLICATION \(publication)") }
        try store.make(KeyedStore.atlas(2))
        let found = try store.connection().query(
            """
            SELECT c.reloptions::text, c.relreplident::text, (SELECT t.reloptions::text FROM pg_class AS t WHERE t.oid = c.reltoastrelid),
            (SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_publication_tables WHERE pubname = '\(publication)')
            FROM pg_class AS c WHERE c.oid = 'country'::regclass
            """
        )
        expectEqual(
            (0..<4).map { found[0].optionalString($0) },
            [
                "{fillfactor=70,autovacuum_vacuum_scale_factor=0.05}", "f", "{autovacuum_enabled=false}",
                "country region",
            ]
        )
        try expectEqual(store.problems(KeyedStore.atlas(2)), [])
    }

    @Test func `a migration names what operators have added to a table and would be lost`() throws {
        let store = KeyedStore()
        try store.make(KeyedStore.atlas(1))
        let session = try store.connection()
        let publication = "strata_publication_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        try session.command(
            """
            ALTER TABLE country ADD COLUMN note text; ALTER TABLE region ADD COLUMN note text;
            CREATE RULE silent AS ON DELETE TO country DO ALSO NOTHING;
            ALTER TABLE country ALTER COLUMN note SET NOT NULL;
            CREATE UNIQUE INDEX of_notes ON country (note); ALTER TABLE country REPLICA IDENTITY USING INDEX of_notes;
            CREATE PUBLICATION \(publication) FOR TABLE country WHERE (strata_id > 7)
            """
        )
        defer { _ = try? Server.connection().command("DROP PUBLICATION IF EXISTS \(publication)") }
        let error = expectThrows(CocoaError.self) { try store.open(KeyedStore.atlas(2)) }
        let text = error?.localizedDescription ?? ""
        for sign in [
            "column note (of country)", "rule silent (of country)", "replica identity by an index (of country)",
            "publication \(publication), which has a row filter or a list of columns (of country)",
        ] {
            expect(text.contains(sign), "\(text)")
        }
        expect(!text.contains("of region"), "\(text)")
        try expectEqual(store.problems(KeyedStore.atlas(1)), [])
        try session.command(
            "DROP RULE silent ON country; DROP PUBLICATION \(publication); ALTER TABLE country DROP COLUMN note"
        )
        try session.command("ALTER TABLE country REPLICA IDENTITY DEFAULT")
        try store.make(KeyedStore.atlas(2))
        try expectEqual(store.problems(KeyedStore.atlas(2)), [])
    }

    @Test func `a migration names the views and other objects that are in its way, and has changed nothing`() throws {
        let store = KeyedStore()
        try store.make(KeyedStore.atlas(1))
        let session = try store.connection()
        try session.command(
            """
            CREATE VIEW country_names AS SELECT name FROM country; CREATE VIEW region_names AS SELECT name FROM region;
            CREATE TABLE embassy (country bigint CONSTRAINT embassy_of REFERENCES country);
            CREATE FUNCTION largest() RETURNS country LANGUAGE sql AS 'SELECT * FROM country LIMIT 1';
            CREATE POLICY rows ON country USING (true)
            """
        )
        let error = expectThrows(CocoaError.self) { try store.open(KeyedStore.atlas(2)) }
        expectEqual(error?.code, .migration)
        let text = error?.localizedDescription ?? ""
        for sign in [
            "view country_names (of country)", "constraint embassy_of on table embassy (of country)",
            "function largest() (of country)", "row security (of country)",
        ] {
            expect(text.contains(sign), "\(text)")
        }
        expect(!text.contains("region_names") && text.contains("is as it was"), "\(text)")
        try expectEqual(store.problems(KeyedStore.atlas(1)), [])
        try session.command(
            "DROP VIEW country_names; DROP TABLE embassy; DROP FUNCTION largest(); DROP POLICY rows ON country"
        )
        try store.make(KeyedStore.atlas(2))
        try expectEqual(store.problems(KeyedStore.atlas(2)), [])
        try session.command("SELECT name FROM region_names")
    }
}

@Suite("Migrations of PostgreSQL stores whose server is in trouble", .enabled(if: Server.isThere))
struct MigrationFaultTests {
    private func open(_ version: Int, _ url: URL, timeout: Double = 60) throws -> NSManagedObjectContext {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ChangingStore.model(version))
        try coordinator.addPersistentStore(
            type: .postgreSQL,
            configuration: nil,
            at: url,
            options: ChangingStore.migrating.merging([NSPersistentStoreTimeoutOption: timeout]) { $1 }
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    private func fill(_ url: URL) throws {
        let context = try open(1, url)
        try context.performAndWait {
            _ = context.insert("City", ["name": "Bonn"])
            try context.save()
        }
        ChangingStore.close(context)
    }

    private let server: PrivateServer
    private let proxy: FaultProxy

    init() throws {
        server = try PrivateServer(["synchronous_commit=on"])
        proxy = try FaultProxy(to: server.url)
        try fill(server.url)
    }

    /// Migrates through the proxy, which strikes at the migration's commit, and gives the error of the migration.
    private func migrate(_ fault: FaultProxy.Fault, onStrike: () -> Void = {}) throws -> CocoaError? {
        let holder = try server.connection()
        try holder.command("BEGIN; SELECT count(*) FROM city")
        let done = DispatchSemaphore(value: 0)
        let failure = Locked<CocoaError?>(nil)
        Thread.detachNewThread { [self] in
            defer { done.signal() }
            do {
                // This runs the migration itself. Adding the store would look again after an error, and would find it
                // migrated.
                let model = ChangingStore.model(2)
                try model.tryFreeze()
                let migration = AutomaticMigration(
                    of: StoreToMigrate(
                        model: model,
                        configuration: nil,
                        type: NSPostgreSQLStoreType,
                        url: proxy.url,
                        options: ChangingStore.migrating
                    )
                )
                try migration.run(PostgreSQLStore.metadataForPersistentStore(with: server.url))
            } catch {
                failure.withLock { $0 = error as? CocoaError }
            }
        }
        _ = try waiting()
        proxy.arm(fault)
        try holder.command("ROLLBACK")
        let end = ContinuousClock.now + .seconds(300)
        while !proxy.hasStruck, .now < end { usleep(1_000) }
        expect(proxy.hasStruck)
        onStrike()
        try require(done.wait(timeout: .now() + 300) == .success)
        return failure.withLock { $0 }
    }

    /// The server's process that waits for the table of cities; waits until there is one.
    private func waiting() throws -> pid_t {
        let session = try server.connection()
        let end = ContinuousClock.now + .seconds(300)
        let sql = "SELECT pid::bigint FROM pg_locks WHERE NOT granted AND relation = 'city'::regclass"
        while .now < end {
            if let found = try session.query(sql).firstInt64 { return pid_t(found) }
        }
        return try require(nil as pid_t?, "no session waits for the table")
    }

    private func titles() throws -> [String] {
        try server.connection().query("SELECT title FROM city").rows.map { $0.string(0) }
    }

    @Test func `a migration whose commit was not answered is found to be there`() throws {
        defer { proxy.close() }
        let failure = try migrate(.cutAfter)
        expect(failure == nil, "\(failure?.localizedDescription ?? "")")
        try expectEqual(titles(), ["Bonn"])
    }

    @Test(arguments: [false, true])
    func `a migration whose commit the server has not heard of is reported as failed, and can be made again`(
        _ isSilent: Bool
    ) throws {
        defer { proxy.close() }
        // A session that hears nothing more waits for its commit for a day, unless its connection turns out to be
        // gone.
        let failure = try migrate(isSilent ? .silence : .cutBefore) {
            guard isSilent else { return }
            proxy.setOpen(false)
            proxy.setOpen(true)
        }
        expectEqual(failure?.code, .migration)
        expectEqual(failure?.localizedDescription.contains("is as it was"), true)
        ChangingStore.close(try open(2, server.url))
        try expectEqual(titles(), ["Bonn"])
    }

    @Test func `a session that stands still while a migration waits for a table is given up at the time-out`() throws {
        defer { proxy.close() }
        let holder = try server.connection()
        try holder.command("BEGIN; SELECT count(*) FROM city")
        let done = DispatchSemaphore(value: 0)
        let failure = Locked<CocoaError?>(nil)
        Thread.detachNewThread { [self] in
            defer { done.signal() }
            do { ChangingStore.close(try open(2, server.url, timeout: 3)) } catch {
                failure.withLock { $0 = error as? CocoaError }
            }
        }
        let process = try waiting()
        kill(process, SIGSTOP)
        defer { kill(process, SIGCONT) }
        let start = ContinuousClock.now
        try require(done.wait(timeout: .now() + 300) == .success)
        expectEqual(failure.withLock { $0?.code }, .persistentStoreTimeout)
        // The look at the state of the store does not take longer, either.
        expect(.now - start < .seconds(25), "\(.now - start)")
        try holder.command("ROLLBACK")
    }
}
