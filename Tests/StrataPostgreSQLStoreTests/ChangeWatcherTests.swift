import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import Synchronization
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataPostgreSQLStore

extension ServerStack {
    /// The watcher for changes of other processes.
    var watcher: ChangeWatcher {
        get throws {
            let store = try require(coordinator.persistentStores.first as? PostgreSQLStore)
            return try require((store.engine as? PostgreSQLEngine)?.watcher.withLock { $0 })
        }
    }

    /// Has the watcher look only at a wake-up: by itself it would look again after an hour.
    func lookOnlyWhenTold() throws {
        let watcher = try watcher
        watcher.interval.store(3_600_000, ordering: .releasing)
        let looks = watcher.looks.load(ordering: .acquiring)
        watcher.wake()
        try waitUntil { watcher.looks.load(ordering: .acquiring) > looks }
    }

    /// The ID of the only city.
    func city() throws -> NSManagedObjectID {
        let context = context()
        return try context.performAndWait {
            try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first).objectID
        }
    }

    /// The name of a city in a new context.
    func name(_ id: NSManagedObjectID) throws -> String? {
        let context = context()
        return try context.performAndWait { try context.existingObject(with: id).value(forKey: "name") as? String }
    }

    /// Gives the only city another name.
    func rename(_ name: String) throws {
        let context = context()
        try context.performAndWait {
            let city = try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
            city.setValue(name, forKey: "name")
            try context.save()
        }
    }
}

@Suite("Watching for what others save in a PostgreSQL store", .enabled(if: Server.isThere))
struct ChangeWatcherTests {
    @Test func `a watcher whose server is silent looks for another connection in time, and shows how old rows may be`()
        throws
    {
        let server = try PrivateServer()
        try ServerStack(server.url, history: true).insert("Rome")
        let proxy = try FaultProxy(to: server.url)
        defer { proxy.close() }
        // The fault strikes at the watcher's first look. Everything else goes on.
        proxy.arm(.silence, at: "WHERE number IS NULL LIMIT 1")
        let place = try require(URL(string: "\(proxy.url.absoluteString)&schema=shop"))
        let stack = try ServerStack(place, history: true, [NSPersistentStoreTimeoutOption: 90])
        let other = try ServerStack(server.url, history: true)
        let id = try stack.city()
        try waitUntil { proxy.hasStruck }
        try other.rename("Roma")
        try expectEqual(stack.name(id), "Rome")
        var oldest = Duration.zero
        let start = ContinuousClock.now
        try waitUntil {
            oldest = max(oldest, try require(stack.coordinator.statistics().stores.first?.historyAge))
            return try stack.name(id) == "Roma"
        }
        expect(.now - start < .seconds(60))
        expect(oldest > .seconds(5))
        try waitUntil { try require(stack.coordinator.statistics().stores.first?.historyAge) < .seconds(5) }
        let plain = try ServerStack(try require(URL(string: server.url.absoluteString + "2")))
        expect(plain.coordinator.statistics().stores.first?.historyAge == nil)
    }

    @Test func `what others save while a watcher has no connection is found when it has one again`() throws {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url, history: true)
        try stack.insert("Rome")
        let id = try stack.city()
        try stack.lookOnlyWhenTold()
        let session = try server.connection()
        // The server refuses all connections for a while.
        try session.command("UPDATE pg_database SET datallowconn = false WHERE datname = 'strata'")
        try session.command(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        // This does what a process does that saves, and dies before the wake-up.
        try session.command(
            """
            WITH t AS (INSERT INTO strata_transaction (id, time) VALUES (gen_random_uuid(), 0) RETURNING seq)
            INSERT INTO strata_change (seq, place, kind, entity, keys)
            SELECT t.seq, 1, 1, c.entity, c.keys FROM t, strata_change AS c;
            UPDATE city SET name = 'Roma', strata_version = strata_version + 1;
            UPDATE pg_database SET datallowconn = true WHERE datname = 'strata'
            """
        )
        try waitUntil { try stack.name(id) == "Roma" }
    }

    @Test func `wake-ups that come in quick succession are looked at together`() throws {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url, history: true)
        try stack.lookOnlyWhenTold()
        let watcher = try stack.watcher
        let session = try server.connection()
        let before = watcher.looks.load(ordering: .acquiring)
        let start = ContinuousClock.now
        for _ in 0..<2_000 {
            try session.query("SELECT pg_notify($1, '')", [.text(ChangeWatcher.channel(of: "shop"))])
        }
        let looks = watcher.looks.load(ordering: .acquiring) - before
        expect(looks > 0 && Double(looks) <= (.now - start) / .milliseconds(10) + 2)
    }

    @Test func `many saves in a row wake others up once in ten milliseconds at most`() throws {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url, history: true)
        let listener = try server.connection()
        try listener.command("LISTEN \"\(ChangeWatcher.channel(of: "shop"))\"")
        let start = ContinuousClock.now
        for number in 0..<300 { try stack.insert("\(number)") }
        // The last save's number shows that all saves were reported.
        var count = 0
        var number: Int64? = 0
        while number != 300 {
            count += try listener.waitForNotification(orFor: -1, seconds: 0.05)
            number = try listener.query("SELECT last FROM strata_history").firstInt64
        }
        var more = 1
        while more > 0 {
            more = try listener.waitForNotification(orFor: -1, seconds: 1)
            count += more
        }
        expect(count > 0 && Double(count) <= (.now - start) / .milliseconds(10) + 2)
    }
}
