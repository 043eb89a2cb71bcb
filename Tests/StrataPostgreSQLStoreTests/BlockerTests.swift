import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

@Suite("Who keeps others from a row of a PostgreSQL store", .enabled(if: Server.isThere))
struct BlockerTests {
    /// A session with an open transaction that has locked all cities.
    private func holder(_ pinned: PinnedStack) throws -> Connection {
        let session = try pinned.direct()
        try session.command("SET application_name = 'nightly import'")
        try session.command("BEGIN; SELECT 1 FROM city WHERE name = 'Rome' FOR UPDATE")
        return session
    }

    /// Changes the locked city, and returns the error of the save.
    private func change(_ pinned: PinnedStack) throws -> CocoaError? {
        let context = pinned.stack.context()
        return try context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "City")
            try require(context.fetch(request).first).setValue("Roma", forKey: "name")
            return expectThrows(CocoaError.self) { try context.save() }
        }
    }

    @Test(arguments: [0.5, 2])
    func `a save that gives up waiting for a row names the blocker, and what it is doing, without its statement`(
        _ timeout: Double
    ) throws {
        let pinned = try PinnedStack([NSPersistentStoreTimeoutOption: timeout])
        try pinned.stack.insert("Rome")
        let session = try holder(pinned)
        let error = try change(pinned)
        expectEqual(error?.code, .persistentStoreTimeout)
        let text = error?.localizedDescription ?? ""
        let who =
            "blocked by process \(session.serverProcess) of the server (application \"nightly import\", role \"strata\")"
        expect(text.contains(who), "\(text)")
        expect(text.contains("s ago, and is idle"), "\(text)")
        expect(!text.contains("Rome") && !text.contains("FOR UPDATE"))
        try session.command("ROLLBACK")
    }

    @Test func `of many blockers the three are named whose transactions are the oldest`() throws {
        let pinned = try PinnedStack([NSPersistentStoreTimeoutOption: 1.0])
        try pinned.stack.insert("Rome")
        let sessions = try (0..<4).map { _ in
            let session = try pinned.direct()
            try session.command("BEGIN; LOCK TABLE city IN SHARE MODE")
            return session
        }
        let text = try change(pinned)?.localizedDescription ?? ""
        let areNamed = sessions.map { text.contains("process \($0.serverProcess) ") }
        expectEqual(areNamed, [true, true, true, false], "\(text)")
        for session in sessions { try session.command("ROLLBACK") }
    }

    @Test func `without a free connection to ask on a save gives up as before`() throws {
        let pinned = try PinnedStack([
            NSPersistentStoreTimeoutOption: 0.5, NSPersistentStoreConnectionPoolMaxSizeKey: 1,
        ])
        try pinned.stack.insert("Rome")
        let session = try holder(pinned)
        let error = try change(pinned)
        expectEqual(error?.code, .persistentStoreTimeout)
        expectEqual(error?.localizedDescription.contains("blocked by"), false)
        try session.command("ROLLBACK")
    }

    @Test func `a read that gives up waiting for a table names the blocker`() throws {
        let pinned = try PinnedStack([NSPersistentStoreTimeoutOption: 1.0])
        let session = try pinned.direct()
        try session.command("BEGIN; LOCK TABLE city IN ACCESS EXCLUSIVE MODE")
        let error = expectThrows(CocoaError.self) { try Cities.fetched(pinned.stack.context()) }
        expectEqual(error?.code, .persistentStoreTimeout)
        expectEqual(error?.localizedDescription.contains("blocked by process \(session.serverProcess) "), true)
        try session.command("ROLLBACK")
    }

    @Test func `the error names a blocker that waits for another`() throws {
        let pinned = try PinnedStack([NSPersistentStoreTimeoutOption: 1.0])
        try pinned.stack.insert("Rome")
        let (first, second) = (try holder(pinned), try pinned.direct())
        try second.command("BEGIN; LOCK TABLE venue IN ACCESS EXCLUSIVE MODE")
        let process = second.serverProcess
        let waiter = onThread { try second.command("SELECT 1 FROM city FOR UPDATE") }
        let sql = "SELECT 1 FROM pg_catalog.pg_locks WHERE NOT granted AND pid = $1::int"
        try wait { (try? first.query(sql, [.int8(Int64(process))]).rowCount).map { $0 > 0 } == true }
        let context = pinned.stack.context()
        let error = context.performAndWait {
            expectThrows(CocoaError.self) {
                try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Venue"))
            }
        }
        let text = error?.localizedDescription ?? ""
        expect(text.contains("process \(process) ") && text.contains("and waits for a lock itself"), "\(text)")
        expect(!text.contains("process \(first.serverProcess) "))
        try first.command("ROLLBACK")
        try waiter.join()
    }

    @Test func `a prepared transaction, which has no process, is named as such`() throws {
        let server = try PrivateServer(["max_prepared_transactions=2"])
        let stack = try ServerStack(server.url, [NSPersistentStoreTimeoutOption: 1.0])
        let session = try server.connection()
        try session.command("BEGIN; LOCK TABLE city IN ACCESS EXCLUSIVE MODE; PREPARE TRANSACTION 'import'")
        let error = expectThrows(CocoaError.self) { try Cities.fetched(stack.context()) }
        expectEqual(error?.localizedDescription.contains("blocked by a prepared transaction"), true)
        try session.command("ROLLBACK PREPARED 'import'")
    }

    @Test func `if the store and not the server gives up, the error names the blocker as well`() throws {
        let pinned = try PinnedStack([NSPersistentStoreTimeoutOption: 1.0])
        try pinned.stack.insert("Rome")
        let session = try holder(pinned)
        let error = expectThrows(PostgreSQLError.self) {
            try pinned.database.pool.withConnection { connection in
                try connection.command("SET lock_timeout = 0")
                try connection.query("SELECT 1 FROM city FOR UPDATE")
            }
        }
        expectEqual(error?.kind, .deadline)
        expectEqual(error?.message.contains("blocked by process \(session.serverProcess) "), true)
        try session.command("ROLLBACK")
    }

    @Test func `a statement that is slow by itself has no blocker to name`() throws {
        let pinned = try PinnedStack([NSPersistentStoreTimeoutOption: 1.0])
        let error = expectThrows(PostgreSQLError.self) {
            try pinned.database.pool.withConnection { try $0.query("SELECT pg_catalog.pg_sleep(60)") }
        }
        expectEqual(error?.kind, .deadline)
        expectEqual(error?.message, "the server has not answered for 1.0 s")
    }

    @Test func `sessions have the name of the process, unless the URL has another one`() throws {
        let pinned = try PinnedStack()
        func name(_ target: ConnectionTarget) throws -> String? {
            try Connection.open(target, timeout: 30).command("SHOW application_name")[0].optionalString(0)
        }
        // The server keeps only 63 bytes.
        try expectEqual(name(pinned.database.pool.target), String(ProcessInfo.processInfo.processName.prefix(63)))
        let server = try require(TestDatabase.url)
        let url = try require(URL(string: "\(server.absoluteString)&application_name=Shop"))
        try expectEqual(name(ConnectionTarget(url)), "Shop")
    }
}
