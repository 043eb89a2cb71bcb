import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import StrataPostgreSQLStore

@Suite("Batches that are one statement of PostgreSQL", .enabled(if: Server.isThere))
struct BatchAtOnceTests {
    /// A store with three cities and one venue.
    private func filled(_ options: [String: Any] = [:]) throws -> PinnedStack {
        let pinned = try PinnedStack(options)
        let context = pinned.stack.context()
        try context.performAndWait {
            for name in ["Rome", "Oslo", "Bern"] { _ = context.insert("City", ["name": name]) }
            _ = context.insert("Venue", ["name": "Bar", "distance": 4097.0])
            try context.save()
        }
        return pinned
    }

    private func update(_ entity: String, _ name: String, _ format: String, _ pinned: PinnedStack) throws {
        let context = pinned.stack.context()
        let request = NSBatchUpdateRequest(entityName: entity)
        request.propertiesToUpdate = [name: NSExpression(format: format)]
        try context.performAndWait { _ = try context.execute(request) }
    }

    @Test func `after a deadlock the rows are locked in the order of their keys, as savers lock them`() throws {
        let pinned = try filled()
        let (other, observer) = (try pinned.direct(), try pinned.direct())
        let keys = try observer.query("SELECT strata_id FROM city ORDER BY strata_id").rows.map { $0.int64(0) }
        // From here on the second row lies behind the third one. The server finds the rows in this order.
        try observer.command("UPDATE city SET population = 0 WHERE strata_id = \(keys[1])")
        let schema = try require(observer.command("SELECT current_schema()")[0].optionalString(0))
        try observer.command(
            """
            CREATE SEQUENCE attempts;
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('\(schema).attempts') <= 1 THEN RAISE EXCEPTION 'not now' USING ERRCODE = '40P01'; END IF;
            RETURN NULL; END $$;
            CREATE TRIGGER refused BEFORE UPDATE ON city FOR EACH STATEMENT EXECUTE FUNCTION refuse()
            """
        )
        try other.command("BEGIN; SELECT 1 FROM city WHERE strata_id = \(keys[1]) FOR UPDATE")
        let updating = Errand { try update("City", "population", "population + 1", pinned) }
        try waitUntil {
            try observer.query(
                "SELECT 1 FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))",
                [.int8(Int64(other.serverProcess))]
            ).rowCount == 1
        }
        // The statement that waits for the second row does not have the third one yet.
        try observer.command("BEGIN; SELECT 1 FROM city WHERE strata_id = \(keys[2]) FOR UPDATE NOWAIT; ROLLBACK")
        try other.command("ROLLBACK")
        try updating.wait()
        try expectEqual(observer.query("SELECT sum(population)::bigint FROM city").firstInt64, 3)
    }

    @Test func `a claim passes by rows that others have locked`() throws {
        let pinned = try filled([NSPersistentStoreTimeoutOption: 30.0])
        let other = try pinned.direct()
        let context = pinned.stack.context()
        let attributes = ClaimAttributes(worker: "name", end: "createdAt")
        try context.performAndWait {
            for number in 1...3 { _ = context.insert("Venue", ["distance": Double(number)]) }
            try context.save()
        }
        try other.command("BEGIN; SELECT 1 FROM venue WHERE distance = 2 FOR UPDATE")
        let request = NSFetchRequest<NSManagedObject>(entityName: "Venue")
        request.predicate = NSPredicate(format: "distance < 10")
        request.sortDescriptors = [NSSortDescriptor(key: "distance", ascending: true)]
        try context.performAndWait {
            func claim() throws -> [Double?] {
                try context.claim(request, as: "one", for: .seconds(60), limit: 2, attributes: attributes)
                    .map { $0.value(forKey: "distance") as? Double }
            }
            try expectEqual(claim(), [1, 3])
            try expectEqual(claim(), [])
            try other.command("ROLLBACK")
            try expectEqual(claim(), [2])
        }
    }

    @Test func `a statement may take longer than the time-out as long as the server works at it`() throws {
        let pinned = try filled([NSPersistentStoreTimeoutOption: 3.0])
        let observer = try pinned.direct()
        try observer.command(
            """
            CREATE FUNCTION toil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(8); RETURN NULL; END $$;
            CREATE TRIGGER toils BEFORE UPDATE ON city FOR EACH STATEMENT EXECUTE FUNCTION toil()
            """
        )
        try update("City", "population", "population + 1", pinned)
        try expectEqual(observer.query("SELECT sum(population)::bigint FROM city").firstInt64, 3)
        // A wait for a lock still ends at the time-out.
        try observer.command("BEGIN; LOCK TABLE city IN EXCLUSIVE MODE")
        let error = expectThrows(CocoaError.self) { try update("City", "population", "population + 1", pinned) }
        expectEqual(error?.code, .persistentStoreTimeout)
        try observer.command("ROLLBACK")
    }

    @Test func `a statement may take longer than the time-out although it has the only connection of the budget`()
        throws
    {
        let pinned = try filled([NSPersistentStoreTimeoutOption: 3.0, NSPostgreSQLServerConnectionsOption: 1])
        let observer = try pinned.direct()
        try observer.command(
            """
            CREATE FUNCTION toil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(8); RETURN NULL; END $$;
            CREATE TRIGGER toils BEFORE UPDATE ON city FOR EACH STATEMENT EXECUTE FUNCTION toil()
            """
        )
        try update("City", "population", "population + 1", pinned)
        try expectEqual(observer.query("SELECT sum(population)::bigint FROM city").firstInt64, 3)
    }

    /// Work that grows with the square of the members would take many times as long for eight times as many.
    @Test func `a batch that fills an ordered relationship takes time that grows with its members`() throws {
        func time(_ count: Int) throws -> Duration {
            let pinned = try filled()
            let context = pinned.stack.context()
            return try context.performAndWait {
                let venue = try require(context.all("Venue").first)
                let objects = (0..<count).map { ["title": "\($0)", "venue": venue.objectID] as [String: Any] }
                let began = ContinuousClock.now
                _ = try context.execute(NSBatchInsertRequest(entityName: "Photo", objects: objects))
                let time = ContinuousClock.now - began
                let photos = venue.value(forKey: "photos") as? NSOrderedSet
                expectEqual(photos?.count, count)
                expectEqual((photos?.lastObject as? NSManagedObject)?.value(forKey: "title") as? String, "\(count - 1)")
                return time
            }
        }
        try expectGrowth(below: 24, from: { try time(1000) }, to: { try time(8000) })
    }

    @Test func `a fetch within a snapshot goes on after an operator has changed the type of a column`() throws {
        let pinned = try filled()
        let observer = try pinned.direct()
        // Each fetch reads the cities.
        pinned.stack.coordinator.limits.rowCacheBytes = 0
        let context = pinned.stack.context()
        try context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Venue")
            request.predicate = NSPredicate(format: "city.name MATCHES 'R.*' AND name MATCHES 'B.*'")
            let cities = try context.all("City")
            for venue in try context.all("Venue") {
                venue.setValue(cities.first { $0.value(forKey: "name") as? String == "Rome" }, forKey: "city")
            }
            try context.save()
            for _ in 0..<3 {
                context.reset()
                try expectEqual(context.fetch(request).count, 1)
            }
            try observer.command("ALTER TABLE city ALTER name TYPE varchar(200)")
            for _ in 0..<3 {
                context.reset()
                try expectEqual(context.fetch(request).count, 1)
            }
        }
    }

    @Test func `the size of single values limits what one statement writes`() {
        var arrays = ColumnArrays([.int8, .text])
        let text = String(repeating: "x", count: ColumnArrays.statement.bytes / 2)
        for isFull in [false, true] {
            arrays.append(1, to: 0)
            arrays.append(PostgreSQLValue.text(text), to: 1)
            expectEqual(arrays.endRow(), isFull)
        }
        _ = arrays.removeRows()
        arrays.append(1, to: 0)
        arrays.append(PostgreSQLValue.text("x"), to: 1)
        expect(!arrays.endRow())
    }

    @Test func `a number of a column that an operator has made narrower is computed as wide as its attribute`() throws {
        let pinned = try filled()
        let observer = try pinned.direct()
        try observer.command("ALTER TABLE venue ALTER distance TYPE real")
        // The product needs one bit more than such a column has.
        try update("Venue", "distance", "distance * distance - 16785408.0", pinned)
        try expectEqual(observer.query("SELECT distance::bigint FROM venue").firstInt64, 1)
    }
}
