import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataPostgreSQLStore
import TestSupport
import Testing

@testable import CoreDataMigration

@Suite("Preparation of migrations of PostgreSQL stores", .enabled(if: Server.isThere))
struct PreparedMigrationTests {
    /// The part of the progress that the preparation has.
    private static let share = 0.9

    @Test func `a large table gets other types, indexes and columns in place, and nothing is left over`() throws {
        let store = try LargeStore()
        let file = try store.file()
        var parts: [[String]] = []
        try store.migrate { part in
            if part <= Self.share, let found = try? store.parts() { parts.append(found) }
        }
        try store.expectMigrated()
        try expectEqual(store.file(), file)
        // Three columns are computed by triggers, two are new and have indexes; a third index is that of the new total.
        expectEqual(parts.last, ["column 5", "function 3", "index 3", "trigger 3"])
        let context = try store.keyed.open(LargeStore.model(2))
        defer { ChangingStore.close(context) }
        try context.performAndWait {
            _ = context.insert("Reading", ["total": Int64.max])
            try context.save()
        }
        try expectEqual(store.number("SELECT max(total) FROM reading"), Int64.max)
        try expectEqual(store.keyed.problems(LargeStore.model(2)), [])
    }

    @Test func `the indexes and the foreign keys of the transaction before are those of the one after`() throws {
        let store = try LargeStore([NSPostgreSQLForeignKeysOption: true])
        func identities(keys: String, indexes: String) -> String {
            """
            SELECT oid::text FROM pg_constraint WHERE connamespace = current_schema()::regnamespace AND \(keys)
            UNION ALL SELECT oid::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'i'
            AND \(indexes) ORDER BY 1
            """
        }
        let before = identities(
            keys: "(conname = 'strata_fk_reading_site_id' OR conname LIKE 'strata\\_prepared\\_%')",
            indexes: "(relname = 'reading_site_id_index' OR relname LIKE 'strata\\_prepared\\_%')"
        )
        var early: [String] = []
        try store.migrate { part in
            if part <= Self.share, let found = try? store.texts(before) { early = found }
        }
        try store.expectMigrated()
        expectEqual(early.count, 6)
        let late = identities(
            keys: "conname IN ('strata_fk_reading_site_id', 'strata_fk_reading_newest_of_id')",
            indexes:
                "relname IN ('reading_site_id_index', 'reading_newest_of_id_index', 'reading_by_total_index', 'reading_by_place_index')"
        )
        try expectEqual(store.texts(late), early)
        try expectEqual(
            store.keyed.keyColumns(),
            ["reading.newest_of_id site", "reading.site_id site", "site.newest_id reading"]
        )
    }

    @Test func `what sessions with the old model write during the preparation is kept`() throws {
        let store = try LargeStore()
        let old = try store.keyed.open(LargeStore.model(1))
        defer { ChangingStore.close(old) }
        let request = NSFetchRequest<NSManagedObject>(entityName: "Reading")
        request.predicate = NSPredicate(format: "name BEGINSWITH 'reading 7.' OR name BEGINSWITH 'reading 59999.'")
        let readings = try old.performAndWait { try old.fetch(request) }
        var written = 0
        try store.migrate { part in
            guard part < Self.share else { return }
            do {
                try old.performAndWait {
                    written += 1
                    for reading in readings { reading.setValue(100_000 + written, forKey: "total") }
                    _ = old.insert("Reading", ["total": 5, "level": 3, "note": "new"])
                    try old.save()
                }
            } catch {
                Issue.record(error)
            }
        }
        expect(written > 50, "\(written)")
        try expectEqual(
            store.number("SELECT count(*) FROM reading WHERE total = \(100_000 + written) AND level = 7"),
            2
        )
        try expectEqual(
            store.number("SELECT count(*) FROM reading WHERE total = 5 AND level = 3 AND place = 'it''s here'"),
            Int64(written)
        )
        try expectEqual(store.number("SELECT count(*) FROM reading"), Int64(store.rows + written))
        try store.expectMigrated(changed: 2 + written)
    }

    @Test func `a killed migration is continued at any step`() throws {
        let store = try LargeStore()
        var reached: [Double] = []
        for step in [1, 2, 150, 302, 303, 304, 305] {
            var count = 0
            let error = expectThrows(CocoaError.self) {
                try store.migrate { part in
                    count += 1
                    guard count == step else { return }
                    reached.append(part)
                    store.endPreparation()
                }
            }
            expect(error != nil)
            try expectEqual(store.keyed.problems(LargeStore.model(1)), [])
        }
        expectEqual(reached, reached.sorted())
        expect(reached.first == 0 && (reached.last ?? 0) >= 0.8, "\(reached)")
        expect(try !store.parts().isEmpty)
        try store.migrate()
        try store.expectMigrated()
    }

    @Test func `the rest of a killed migration to another version is removed`() throws {
        let store = try LargeStore()
        _ = try? store.migrate { part in
            guard part > 0.5 else { return }
            store.endPreparation()
        }
        expect(try !store.parts().isEmpty)
        let other = LargeStore.model(1)
        other.entitiesByName["Reading"]?.properties.append(GuideModel.attribute("extra", .string))
        try store.migrate(to: other)
        try expectEqual(store.parts(), [])
        try expectEqual(store.keyed.problems(other), [])
        try expectEqual(store.number("SELECT count(*) FROM reading WHERE total = strata_id % 1000"), Int64(store.rows))
    }

    @Test func `a trigger that was switched off meanwhile leaves all for the transaction`() throws {
        let store = try LargeStore()
        let file = try store.file()
        var isDone = false
        try store.migrate { part in
            guard part == Self.share, !isDone else { return }
            isDone = true
            do {
                try store.keyed.connection().command(
                    """
                    DO $$DECLARE t record; BEGIN
                    FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'reading'::regclass AND NOT tgisinternal LOOP
                    EXECUTE format('ALTER TABLE reading DISABLE TRIGGER %I', t.tgname);
                    UPDATE reading SET total = 4242 WHERE strata_id = 17;
                    EXECUTE format('ALTER TABLE reading ENABLE ALWAYS TRIGGER %I', t.tgname); END LOOP; END$$
                    """
                )
            } catch {
                Issue.record(error)
            }
        }
        expect(isDone)
        try expectEqual(store.number("SELECT total FROM reading WHERE strata_id = 17"), 4242)
        try store.expectMigrated(changed: 1)
        expect(try store.file() != file)
    }

    @Test func `a table with triggers, views or privileges on columns is not changed in place`() throws {
        for sql in [
            "CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER own BEFORE UPDATE ON reading FOR EACH ROW EXECUTE FUNCTION own()",
            "GRANT SELECT (total) ON reading TO PUBLIC",
        ] {
            let store = try LargeStore()
            try store.keyed.connection().command(sql)
            let file = try store.file()
            try store.migrate { _ in
                if let found = try? store.parts(), !found.isEmpty { Issue.record(Comment(rawValue: "\(found)")) }
            }
            expect(try store.file() != file)
            try expectEqual(store.keyed.problems(LargeStore.model(2)), [])
        }
        let store = try LargeStore()
        try store.keyed.connection().command("CREATE VIEW own AS SELECT total FROM reading")
        let error = expectThrows(CocoaError.self) { try store.migrate() }
        expectEqual(error?.code, .migration)
        try expectEqual(store.parts(), [])
        try expectEqual(store.keyed.problems(LargeStore.model(1)), [])
    }

    @Test func `a cancelled migration leaves nothing, and rows that do not fit end it before anything is made`() throws
    {
        let store = try LargeStore()
        let progress = Progress(totalUnitCount: 100)
        progress.becomeCurrent(withPendingUnitCount: 100)
        var last = 0.0
        let cancelled = expectThrows(CocoaError.self) {
            try store.migrate { part in
                last = part
                if part > 0.4 { progress.cancel() }
            }
        }
        progress.resignCurrent()
        expectEqual(cancelled?.code, .migrationCancelled)
        expect(last > 0.4 && last < Self.share, "\(last)")
        try expectEqual(store.parts(), [])
        let refused = expectThrows(CocoaError.self) {
            try store.migrate(mayDropValues: false) { _ in Issue.record("a step was made") }
        }
        expectEqual(refused?.code, .migration)
        try expectEqual(store.parts(), [])
        try expectEqual(store.keyed.problems(LargeStore.model(1)), [])
    }

    @Test func `if several come at once, one prepares and migrates, and the others find the store migrated`()
        async throws
    {
        let store = try LargeStore()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<3 { group.addTask { try store.migrate() } }
            try await group.waitForAll()
        }
        try store.expectMigrated()
    }

    @Test func `a second process makes nothing until the first one is done, and waits no longer than its time-out`()
        throws
    {
        let store = try LargeStore()
        let name = "second-" + UUID().uuidString
        let url = try require(
            URL(string: TestDatabase.url(for: store.keyed.url).absoluteString + "&application_name=\(name)")
        )
        let steps = Locked(0)
        var second: Errand<Void>?
        try store.migrate { part in
            guard part > 0, part < Self.share, second == nil else { return }
            do {
                let impatient = expectThrows(CocoaError.self) {
                    try store.keyed.make(
                        LargeStore.model(2),
                        [NSPersistentStoreTimeoutOption: 0.3, NSPersistentStoreAllowsLossyMigrationOption: true]
                    )
                }
                expectEqual(impatient?.code, .persistentStoreTimeout)
                let parts = try store.parts()
                expect(!parts.isEmpty)
                second = Errand {
                    try StoreMigration.run(
                        at: url,
                        type: .postgreSQL,
                        from: LargeStore.model(1),
                        to: LargeStore.model(2),
                        by: nil,
                        mayDropValues: true
                    ) { part in if part < 1 { steps.withLock { $0 += 1 } } }
                }
                // It has either asked for the turn in vain, or taken it.
                let asks = """
                    SELECT 1 FROM pg_stat_activity WHERE application_name = '\(name)' AND state = 'idle'
                    AND query LIKE '%pg_try_advisory_lock%'
                    """
                let watcher = try store.keyed.connection()
                try waitUntil { try steps.withLock { $0 > 0 } || watcher.query(asks).rowCount > 0 }
                expectEqual(steps.withLock { $0 }, 0)
                try expectEqual(store.parts(), parts)
            } catch {
                Issue.record(error)
            }
        }
        try require(second).wait()
        expectEqual(steps.withLock { $0 }, 0)
        try store.expectMigrated()
    }

    @Test func `a step that the server refuses is reported, and its table is left for the transaction`() throws {
        let store = try LargeStore()
        let schema = try store.texts("SELECT current_schema()::text")[0]
        // It refuses the functions of this schema only.
        try store.keyed.connection().command(
            """
            CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN
            IF current_schema() = '\(schema)' THEN RAISE EXCEPTION 'no functions' USING ERRCODE = '42501'; END IF; END$$;
            CREATE EVENT TRIGGER \(schema)_refuse ON ddl_command_start WHEN TAG IN ('CREATE FUNCTION')
            EXECUTE FUNCTION refuse()
            """
        )
        defer { _ = try? store.keyed.connection().command("DROP EVENT TRIGGER \(schema)_refuse") }
        let file = try store.file()
        var notes: [String] = []
        try store.migrate(note: { notes.append($0) })
        expectEqual(notes, ["reading was left for the transaction: no functions (42501)"])
        try store.expectMigrated()
        expect(try store.file() != file)
    }

    @Test func `an old transaction of another session keeps an index for the transaction`() throws {
        let store = try LargeStore()
        let holder = try store.keyed.connection()
        // It has a snapshot, and no lock of the table.
        try holder.command("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        defer { _ = try? holder.command("ROLLBACK") }
        try store.keyed.make(
            LargeStore.model(2),
            [NSPersistentStoreTimeoutOption: 2, NSPersistentStoreAllowsLossyMigrationOption: true]
        )
        try store.expectMigrated()
    }

    @Test func `a destroyed store leaves no parts of a preparation`() throws {
        let store = try LargeStore()
        _ = try? store.migrate { part in
            guard part > 0.2 else { return }
            store.endPreparation()
        }
        expect(try !store.parts().isEmpty)
        let url = TestDatabase.url(for: store.keyed.url)
        try expectEqual(PostgreSQLEngine.destroy(at: url, timeout: 30), nil)
        let schema = try ConnectionTarget(url).schema
        let left = try Server.connection().query("SELECT 1 FROM pg_namespace WHERE nspname = '\(schema)'")
        expectEqual(left.rowCount, 0)
    }

    @Test func `if the transaction fails, then nothing is left of the preparation`() throws {
        let store = try LargeStore()
        let model = LargeStore.model(2)
        model.entitiesByName["Reading"]?.attributesByName["name"]?.isOptional = false
        var wasPrepared = false
        let error = expectThrows(CocoaError.self) {
            try store.migrate(to: model) { part in
                guard part == Self.share, let parts = try? store.parts(), !parts.isEmpty else { return }
                wasPrepared = true
                _ = try? store.keyed.connection().command("UPDATE reading SET name = NULL WHERE strata_id = 3")
            }
        }
        expectEqual(error?.code, .migration)
        expect(wasPrepared)
        try expectEqual(store.parts(), [])
        try expectEqual(store.keyed.problems(LargeStore.model(1)), [])
    }

    @Test func `through a pooler nothing is prepared`() throws {
        let store = try LargeStore()
        let file = try store.file()
        let url = try require(
            URL(string: TestDatabase.url(for: store.keyed.url).absoluteString + "&pooler=transaction")
        )
        try StoreMigration.run(
            at: url,
            type: .postgreSQL,
            from: LargeStore.model(1),
            to: LargeStore.model(2),
            by: nil,
            mayDropValues: true
        ) { _ in
            if let parts = try? store.parts(), !parts.isEmpty { Issue.record(Comment(rawValue: "\(parts)")) }
        }
        try store.expectMigrated()
        expect(try store.file() != file)
    }
}
