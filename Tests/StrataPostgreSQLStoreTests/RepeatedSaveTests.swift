import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Saves that PostgreSQL ends in favour of others", .enabled(if: Server.isThere))
struct RepeatedSaveTests {
    /// Waits until a session waits for another one, and gives the process that waits.
    private func waiting(for blocker: Connection, _ observer: Connection) throws -> Int64 {
        var pid: Int64?
        try waitUntil {
            pid = try observer.query(
                "SELECT pid::bigint FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))",
                [.int8(Int64(blocker.serverProcess))]
            ).firstInt64
            return pid != nil
        }
        return try require(pid)
    }

    /// Runs into a deadlock, for which the server ends a save: the save wants a row of another session, which waits
    /// for a row of the save.
    ///
    /// A third session holds a row in between, so that the save stands still until the other session waits for it. The
    /// server looks for deadlocks for the session that begins to wait last. The other session waits earlier, and is
    /// set not to look.
    ///
    /// - Parameters:
    ///   - change: The other session's change of the row that both want, before it releases both rows.
    ///   - check: Called with the saving context, and with a function that waits for its save.
    /// - Throws: Errors of `check`.
    private func deadlock(_ change: String, _ check: (NSManagedObjectContext, () throws -> Void) throws -> Void) throws
    {
        let pinned = try PinnedStack()
        let context = pinned.stack.context()
        try context.performAndWait {
            for name in ["Rome", "Oslo", "Bern"] { _ = context.insert("City", ["name": name]) }
            try context.save()
        }
        let (other, between, observer) = (try pinned.direct(), try pinned.direct(), try pinned.direct())
        let keys = try observer.query("SELECT strata_id FROM city ORDER BY strata_id").rows.map { $0.int64(0) }
        let locked: @Sendable (Int64) -> String = { key in
            "SELECT 1 FROM city WHERE strata_id = \(key) FOR UPDATE"
        }
        try between.command("BEGIN; \(locked(keys[1]))")
        try other.command("SET deadlock_timeout = '1h'; BEGIN; \(locked(keys[2]))")

        let saving = Errand {
            try context.performAndWait {
                for city in try context.all("City") {
                    city.setValue((city.value(forKey: "name") as? String ?? "") + "!", forKey: "name")
                }
                try context.save()
            }
        }
        let saver = try waiting(for: between, observer)
        let wanting = Errand { _ = try other.command(locked(keys[0])) }
        // This waits until the other session waits for the save.
        try waitUntil {
            try observer.query(
                "SELECT 1 WHERE $1::int = ANY(pg_blocking_pids($2::int))",
                [.int8(saver), .int8(Int64(other.serverProcess))]
            ).rowCount > 0
        }
        try between.rollback()
        // The other session gets the row only if the save releases everything that it had.
        try wanting.wait()
        try other.command(change.replacing("KEY", with: "\(keys[0])") + "COMMIT")
        try check(context) { try saving.wait() }
    }

    @Test func `a save that the server ends because of a deadlock is made again`() throws {
        try deadlock("") { context, wait in
            try wait()
            try expectEqual(Cities.fetched(context), ["Bern!", "Oslo!", "Rome!"])
            context.performAndWait { context.reset() }
            try expectEqual(Cities.fetched(context), ["Bern!", "Oslo!", "Rome!"])
        }
    }

    @Test func `a save that is made again after a deadlock finds what the other one has changed`() throws {
        try deadlock("UPDATE city SET strata_version = strata_version + 1 WHERE strata_id = KEY;") { context, wait in
            expectEqual(expectThrows(CocoaError.self) { try wait() }?.code, .managedObjectMerge)
            // The save has written nothing, and the context has lost nothing.
            expect(context.performAndWait { context.updatedObjects.count == 3 })
            let other = NSManagedObjectContext(.privateQueue)
            other.persistentStoreCoordinator = context.persistentStoreCoordinator
            try expectEqual(Cities.fetched(other), ["Bern", "Oslo", "Rome"])
        }
    }

    /// Makes the server refuse so many insertions of cities, as transactions that cannot be serialized.
    private func refuse(_ pinned: PinnedStack, _ count: Int64) throws -> Connection {
        let session = try pinned.direct()
        let schema = try require(session.command("SELECT current_schema()")[0].optionalString(0))
        try session.command(
            """
            CREATE SEQUENCE attempts;
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('\(schema).attempts') <= \(count) THEN RAISE EXCEPTION 'not now' USING ERRCODE = '40001'; END IF;
            RETURN NULL; END $$;
            CREATE TRIGGER refused AFTER INSERT ON city FOR EACH STATEMENT EXECUTE FUNCTION refuse()
            """
        )
        return session
    }

    @Test func `what the server ends with 40001 is made again, and there once`() throws {
        let pinned = try PinnedStack([NSPersistentHistoryTrackingKey: true])
        let session = try refuse(pinned, 3)
        try pinned.stack.insert("Rome")
        try expectEqual(session.query("SELECT last_value FROM attempts").firstInt64, 4)
        try session.command("SELECT setval('attempts', 1, false)")
        let context = pinned.stack.context()
        try context.performAndWait {
            _ = try context.execute(NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"]]))
        }
        try expectEqual(session.query("SELECT last_value FROM attempts").firstInt64, 4)
        try expectEqual(Cities.fetched(context), ["Oslo", "Rome"])
        try expectEqual(session.query("SELECT count(*) FROM strata_transaction").firstInt64, 2)
    }

    @Test func `what the server ends with 40001 again and again is given up after ten times, and can be saved later`()
        throws
    {
        let pinned = try PinnedStack()
        let session = try refuse(pinned, .max)
        let context = pinned.stack.context()
        try context.performAndWait {
            _ = context.insert("City", ["name": "Rome"])
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreSave)
            expectEqual((error?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "40001")
            try expectEqual(session.query("SELECT last_value FROM attempts").firstInt64, 10)
            try expectEqual(session.query("SELECT count(*) FROM city").firstInt64, 0)
            expect(context.hasChanges)
            try session.command("DROP TRIGGER refused ON city")
            try context.save()
        }
        try expectEqual(Cities.fetched(pinned.stack.context()), ["Rome"])
    }

    @Test func `no attempt begins when the time-out of the store is over`() throws {
        let pinned = try PinnedStack([NSPersistentStoreTimeoutOption: 2])
        let session = try refuse(pinned, .max)
        // Each attempt takes half a second.
        try session.command(
            """
            CREATE FUNCTION dream() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$;
            CREATE TRIGGER dreams AFTER INSERT ON city FOR EACH STATEMENT EXECUTE FUNCTION dream()
            """
        )
        let error = expectThrows(CocoaError.self) { try pinned.stack.insert("Rome") }
        expectEqual((error?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "40001")
        let attempts = try require(session.query("SELECT last_value FROM attempts").firstInt64)
        expect(attempts <= 4, "\(attempts)")
    }

    /// Runs a batch about three cities.
    ///
    /// Between each two of its statements another session adds 1,000 to all cities that are not locked.
    ///
    /// - Parameters:
    ///   - request: The batch.
    ///   - isCrowded: Whether the other session also inserts a city each time.
    /// - Throws: Errors of the batch.
    /// - Returns: How often the other session has changed all three cities, and the populations of the cities that are
    ///   left.
    private func overtaken(_ request: NSPersistentStoreRequest, isCrowded: Bool = false) throws -> (
        overtakings: Int64, populations: [Int64]
    ) {
        var result: (Int64, [Int64]) = (0, [])
        try FaultProxy.withStore { proxy, schema, coordinator in
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            let overtakings = Locked<Int64>(0)
            let other = try Server.connection()
            try other.command("SET search_path TO \"\(schema)\"; SET lock_timeout TO '10ms'")
            try context.performAndWait {
                let insertion = NSBatchInsertRequest(
                    entityName: "City",
                    objects: ["Rome", "Oslo", "Bern"].map { ["name": $0] }
                )
                _ = try context.execute(insertion)
                proxy.onBytes.withLock {
                    $0 = { _ in
                        // Only one connection of the store at a time runs this.
                        overtakings.withLock { overtakings in
                            let changed = try? other.query(
                                """
                                UPDATE city SET population = population + 1000, strata_version = strata_version + 1 WHERE strata_id IN
                                (SELECT strata_id FROM city FOR UPDATE SKIP LOCKED)
                                """
                            )
                            if changed?.changeCount == 3 { overtakings += 1 }
                            guard isCrowded else { return }
                            _ = try? other.command(
                                """
                                INSERT INTO city (strata_id, strata_entity, strata_version, name, population)
                                SELECT min(strata_id) - 1, min(strata_entity), 1, 'Zug', 0 FROM city
                                """
                            )
                        }
                    }
                }
                _ = try context.execute(request)
                proxy.onBytes.withLock { $0 = nil }
            }
            result = try overtakings.withLock { overtakings in
                (overtakings, try other.query("SELECT population FROM city").rows.map { $0.int64(0) })
            }
        }
        return result
    }

    @Test func `a batch update that others always overtake locks its rows, and loses nothing`() throws {
        let request = NSBatchUpdateRequest(entityName: "City")
        // The process, and not the server, computes divisions.
        request.propertiesToUpdate = ["population": NSExpression(format: "(population * 2 + 2) / 2")]
        let (overtakings, populations) = try overtaken(request)
        // At least the first attempt was overtaken.
        expect(overtakings > 0)
        expectEqual(populations, [Int64](repeating: overtakings * 1000 + 1, count: 3))
    }

    @Test func `a batch update beside which others always insert and change rows keeps them out in the end`() throws {
        let request = NSBatchUpdateRequest(entityName: "City")
        request.propertiesToUpdate = ["population": NSExpression(format: "(population * 2 + 2) / 2")]
        let (_, populations) = try overtaken(request, isCrowded: true)
        // The last attempt has changed all cities that were inserted before it began.
        expect(populations.count { $0 % 1000 == 1 } > 3)
    }

    @Test func `a batch deletion that others always overtake locks its rows`() throws {
        // Before it deletes cities with venues, the process has to remove them from the venues.
        let fetch = NSFetchRequest<NSManagedObject>(entityName: "City")
        let (overtakings, populations) = try overtaken(NSBatchDeleteRequest(fetchRequest: fetch))
        expect(overtakings > 0)
        expectEqual(populations, [])
    }

    /// - Parameters:
    ///   - change: The change that another session makes to the first of three cities, once the batch has seen the
    ///     city's name.
    ///   - left: The cities that two deletions leave.
    /// - Throws: Errors of the batch.
    @Test(arguments: [
        ("UPDATE city SET name = 'Zug', strata_version = strata_version + 1 WHERE name = 'Bern'", ["Zug"]),
        ("DELETE FROM city WHERE name = 'Bern'", []),
    ])
    func `a batch deletes the first rows of an order, though others change or delete one that it has found`(
        change: String,
        left: [String]
    ) throws {
        try FaultProxy.withStore { proxy, schema, coordinator in
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            let other = try Server.connection()
            try other.command("SET search_path TO \"\(schema)\"")
            let fetch = NSFetchRequest<NSManagedObject>(entityName: "City")
            // The process sorts: it reads the values to sort by, and then the first rows.
            fetch.sortDescriptors = [
                NSSortDescriptor(key: "name", ascending: true, selector: .localizedStandardCompare)
            ]
            fetch.fetchLimit = 2
            try context.performAndWait {
                for name in ["Rome", "Oslo", "Bern"] { _ = context.insert("City", ["name": name]) }
                try context.save()
                proxy.onBytes.withLock {
                    $0 = { _ in
                        // This runs before the batch gets the names that it has asked for.
                        _ = try? other.query(change)
                    }
                }
                try context.execute(NSBatchDeleteRequest(fetchRequest: fetch))
                proxy.onBytes.withLock { $0 = nil }
            }
            try expectEqual(Cities.fetched(context), left)
        }
    }
}
