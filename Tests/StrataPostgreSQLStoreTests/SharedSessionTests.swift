import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

/// Stores in schemas of one database, whose sessions belong to one budget that no other test has.
private final class SharingStores: Sendable {
    private let mark = "sharing_" + String(UInt64.random(in: 0 ... .max), radix: 36)
    private let base: URL
    /// The most connections of all stores together; all tests on one server with the same number share them.
    let most: Int

    private static let numbers = Locked(100)

    /// Stores in a database.
    ///
    /// - Parameters:
    ///   - most: The most connections; `nil` for a number that is never reached.
    ///   - base: The database; `nil` for that of all tests.
    /// - Throws: An error if there is no server.
    init(most: Int? = nil, at base: URL? = nil) throws {
        self.base = try base ?? require(TestDatabase.url)
        self.most =
            most
            ?? Self.numbers.withLock { number in
                number += 1
                return number
            }
    }

    /// The URL of a store; its sessions are known by their names.
    func url(_ name: String) throws -> URL {
        var parts = try require(URLComponents(url: base, resolvingAgainstBaseURL: true))
        let others = (parts.queryItems ?? []).filter { $0.name != "schema" }
        parts.queryItems =
            others + [
                URLQueryItem(name: "application_name", value: mark),
                URLQueryItem(name: "schema", value: "\(mark)_\(name)"),
            ]
        return try require(parts.url)
    }

    func stack(_ name: String, history: Bool = false, timeout: Double = 60) throws -> ServerStack {
        try ServerStack(
            url(name),
            history: history,
            [NSPostgreSQLServerConnectionsOption: most, NSPersistentStoreTimeoutOption: timeout]
        )
    }

    /// A session of the server that no store uses.
    func observer() throws -> Connection { try Connection.open(ConnectionTarget(base), timeout: 60) }

    /// The server's processes for the stores.
    func processes() throws -> [Int64] {
        let sql = "SELECT pid::bigint FROM pg_stat_activity WHERE application_name = $1 ORDER BY backend_start"
        return try observer().query(sql, [.text(mark)]).rows.map { $0.int64(0) }
    }

    deinit {
        guard let connection = try? observer(),
            let found = try? connection.query(
                "SELECT pg_catalog.quote_ident(nspname) FROM pg_namespace WHERE starts_with(nspname::text, $1)",
                [.text(mark)]
            )
        else { return }
        for row in found.rows { _ = try? connection.command("DROP SCHEMA \(row.string(0)) CASCADE") }
    }
}

@Suite("PostgreSQL stores that share sessions", .enabled(if: Server.isThere))
struct SharedSessionTests {
    @Test func `one session serves many stores in turn, and keeps nothing of the one before`() throws {
        let server = try PrivateServer()
        let stores = try SharingStores(most: 1, at: server.url)
        let stacks = try (0..<5).map { try stores.stack("s\($0)", timeout: Double(20 + $0)) }
        for round in 0..<3 {
            for (index, stack) in stacks.enumerated() {
                try stack.insert("\(index) \(round)")
                try expectEqual(stack.cities(), (0...round).map { "\(index) \($0)" })
            }
        }
        try expectEqual(stores.processes().count, 1)
        for (index, stack) in stacks.enumerated() {
            let database = try stack.database
            let schema = database.pool.target.schema
            try database.pool.withConnection { connection in
                try database.requireSame(connection)
                func text(_ sql: String) throws -> String { try connection.command(sql)[0].string(0) }
                try expectEqual(text("SHOW search_path"), "\"\(schema)\", pg_temp")
                try expectEqual(
                    text("SELECT setting FROM pg_settings WHERE name = 'lock_timeout'"),
                    "\(19_500 + index * 1000)"
                )
                try expectEqual(
                    text("SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"),
                    "\(20_000 + index * 1000)"
                )
                // Only the lock by which a migration of this store finds the session.
                let locks = try connection.query(
                    """
                    SELECT classid::bigint, objid::bigint = (pg_catalog.hashtext($1)::bigint & 4294967295) FROM pg_catalog.pg_locks
                    WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid()
                    """,
                    [.text(schema)]
                )
                expectEqual(locks.rows.map { [$0.int64(0), $0.int64(1)] }, [[7276, 1]])
                try expectEqual(text("SELECT pg_catalog.count(*) FROM pg_catalog.pg_listening_channels()"), "0")
                try expectEqual(
                    text(
                        "SELECT pg_catalog.count(*) FROM pg_class WHERE relnamespace = pg_catalog.pg_my_temp_schema()"
                    ),
                    "0"
                )
                // Everything else is as in a session that only this store has used.
                let others = "SELECT name, setting FROM pg_settings WHERE source = 'session' ORDER BY name"
                let alone = try OpenPostgreSQLStore.pool(database.pool.target, size: 1, timeout: Double(20 + index))
                    .withConnection { try $0.command(others).rows.map { $0.string(0) + $0.string(1) } }
                try expectEqual(connection.command(others).rows.map { $0.string(0) + $0.string(1) }, alone)
            }
        }
    }

    @Test func `a migrated store refuses its old model, and the other stores of its session go on`() throws {
        let stores = try SharingStores()
        func open(_ name: String, _ version: Int, _ more: [AnyHashable: Any] = [:]) throws
            -> NSPersistentStoreCoordinator
        {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ChangingStore.model(version))
            let options = more.merging([NSPostgreSQLServerConnectionsOption: stores.most]) { $1 }
            try coordinator.addPersistentStore(
                type: .postgreSQL,
                configuration: nil,
                at: stores.url(name),
                options: options
            )
            return coordinator
        }
        func count(_ coordinator: NSPersistentStoreCoordinator) throws -> Int {
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            return try context.performAndWait {
                try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "City"))
            }
        }
        let (a, b) = (try open("a", 1), try open("b", 1))
        try expectEqual(count(a), 0)
        try expectEqual(count(b), 0)
        // The session serves "b" now, so the migration of "a" does not end it.
        let before = try stores.processes()
        let migrated = try open("a", 2, ChangingStore.migrating)
        try expect(stores.processes().contains(require(before.first)))
        try expectEqual(count(b), 0)
        let error = expectThrows(CocoaError.self) { try count(a) }
        expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
        try expectEqual(count(migrated), 0)
        try expectEqual(count(b), 0)
        // Both coordinators of one schema use one session in turn, and each has its own model.
        expectEqual(expectThrows(CocoaError.self) { try count(a) }?.code, .persistentStoreIncompatibleVersionHash)
        try expectEqual(count(migrated), 0)
        for coordinator in [a, b, migrated] {
            for store in coordinator.persistentStores { try coordinator.remove(store) }
        }
        try waitUntil { try stores.processes().isEmpty }
    }

    @Test func `a schema that was destroyed and made again under its name is another store`() throws {
        let stores = try SharingStores()
        let (a, b) = (try stores.stack("a"), try stores.stack("b"))
        try a.insert("Rome")
        try b.insert("Oslo")
        let url = try stores.url("a")
        try NSPersistentStoreCoordinator(managedObjectModel: NSManagedObjectModel())
            .destroyPersistentStore(at: url, type: .postgreSQL, options: nil)
        let error = expectThrows(CocoaError.self) { try a.cities() }
        expectEqual(error?.code, .persistentStoreOperation)
        try expectEqual(b.cities(), ["Oslo"])
        let new = try stores.stack("a")
        try new.insert("Bern")
        try expectEqual(b.cities(), ["Oslo"])
        try expectEqual(new.cities(), ["Bern"])
        expectEqual(expectThrows(CocoaError.self) { try a.cities() }?.code, .persistentStoreOperation)
        expectEqual(expectThrows(CocoaError.self) { try a.insert("Kyiv") }?.code, .persistentStoreOperation)
        try expectEqual(new.cities(), ["Bern"])
    }

    @Test func `a table that is another one under its name is noticed by the session of another store`() throws {
        let stores = try SharingStores()
        let (a, b) = (try stores.stack("a"), try stores.stack("b"))
        try a.insert("Rome")
        try b.insert("Oslo")
        // As when a copy is put back: the same UUID and other rows.
        let connection = try stores.observer()
        let schema = try ConnectionTarget(stores.url("a")).quotedSchema
        try connection.command(
            """
            BEGIN; CREATE TABLE \(schema).copy AS TABLE \(schema).strata_store; DROP TABLE \(schema).strata_store;
            ALTER TABLE \(schema).copy RENAME TO strata_store; DELETE FROM \(schema).city; COMMIT
            """
        )
        try expectEqual(a.database.pool.serverChanges, 0)
        try expectEqual(a.cities(), [])
        try expectEqual(a.database.pool.serverChanges, 1)
        try expectEqual(b.cities(), ["Oslo"])
        try expectEqual(b.database.pool.serverChanges, 0)
    }

    @Test func `pinned contexts and blocks that lock rows keep their sessions, and others use the rest`() throws {
        let server = try PrivateServer()
        let stores = try SharingStores(most: 3, at: server.url)
        let stacks = try ["a", "b", "c", "d"].map { try stores.stack($0) }
        for stack in stacks { try stack.insert("old") }
        let pinned = stacks[0].context()
        try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
        try expectEqual(Cities.fetched(pinned), ["old"])
        let locking = stacks[1].context()
        try locking.performAndWait(locking: .seconds(300)) {
            let request = NSFetchRequest<NSManagedObject>(entityName: "City")
            request.rowLock = RowLock(.update)
            let city = try require(locking.fetch(request).first)
            // These use the third session in turn.
            for stack in stacks { try stack.insert("new") }
            for stack in stacks { try expectEqual(stack.cities(), ["new", "old"]) }
            try expectEqual(stores.processes().count, 3)
            city.setValue("locked", forKey: "name")
            try locking.save()
        }
        try expectEqual(Cities.fetched(pinned), ["old"])
        try expectEqual(stacks[1].cities(), ["locked", "new"])
        try pinned.performAndWait { try pinned.setQueryGenerationFrom(nil) }
        // The sessions that were held serve other stores, with the settings of those.
        for _ in 0..<3 {
            let held = try stacks[2...].map { try $0.database.pool.lease() } + [try stacks[1].database.pool.lease()]
            for connection in held {
                expect(connection.isIdle)
                try expectEqual(
                    connection.command("SELECT setting FROM pg_settings WHERE name = 'lock_timeout'")[0].string(0),
                    "59500"
                )
            }
            for (stack, connection) in zip(stacks[2...] + [stacks[1]], held) {
                try stack.database.pool.give(back: connection)
            }
        }
        try expectEqual(stores.processes().count, 3)
    }

    @Test func `a commit that was cut is made once, beside other stores of the budget`() throws {
        let proxy = try FaultProxy()
        defer { proxy.close() }
        let stores = try SharingStores(at: proxy.url)
        let (a, b) = (try stores.stack("a"), try stores.stack("b"))
        for fault in [FaultProxy.Fault.cutBefore, .cutAfter] {
            proxy.arm(fault)
            try a.insert("\(fault)")
            expect(proxy.hasStruck)
            try b.insert("\(fault)")
        }
        try expectEqual(a.cities(), ["cutAfter", "cutBefore"])
        try expectEqual(b.cities(), ["cutAfter", "cutBefore"])
    }

    @Test func `each store notices that the server was started again, though another one has opened the session`()
        throws
    {
        let server = try PrivateServer(["synchronous_commit=on"])
        let stores = try SharingStores(at: server.url)
        let stacks = try ["a", "b", "c"].map { try stores.stack($0) }
        for stack in stacks { try stack.insert("Rome") }
        try server.halt()
        try server.resume()
        for stack in stacks {
            try expectEqual(stack.cities(), ["Rome"])
            try expectEqual(stack.database.pool.serverChanges, 1)
        }
        // The session that the first one has opened has served all of them.
        try expectEqual(stores.processes().count, 1)
        for stack in stacks {
            try stack.insert("Oslo")
            try expectEqual(stack.database.pool.serverChanges, 1)
        }
    }

    @Test func `stores read and save in the room that a role has, and report for how long there was none`() throws {
        let server = try PrivateServer()
        try server.connection().command(
            "CREATE ROLE crowd LOGIN CONNECTION LIMIT 2; GRANT CREATE ON DATABASE strata TO crowd"
        )
        let url = try require(URL(string: server.url.absoluteString.replacing("user=strata", with: "user=crowd")))
        let stores = try SharingStores(at: url)
        let stacks = try (0..<6).map { try stores.stack("s\($0)") }
        let threads = (0..<6).map { thread in
            onThread {
                for round in 0..<10 {
                    let stack = stacks[(thread + round) % 6]
                    try stack.insert("\(thread) \(round)")
                    try expect(stack.cities().contains("\(thread) \(round)"))
                }
            }
        }
        for thread in threads { try thread.join() }
        try expectEqual(stacks.reduce(0) { try $0 + $1.cities().count }, 60)
        let held = try (0..<2).map { try stacks[$0].database.pool.lease() }
        let late = expectThrows(CocoaError.self) { try stores.stack("s5", timeout: 1) }
        let text = (late?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.message ?? ""
        expect(text.contains("no room for another connection for 1"), "\(text)")
        for (index, connection) in held.enumerated() { try stacks[index].database.pool.give(back: connection) }
        try expectEqual(stores.stack("s5", timeout: 1).cities().count, 10)
    }
}
