import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

@Suite("The numbers of a PostgreSQL store's history", .enabled(if: Server.isThere))
struct HistoryNumberTests {
    /// The lock of processes that give numbers.
    private static let lock = "pg_catalog.hashtextextended(pg_catalog.current_schema(), 7275)"

    /// A store's URL that leads through a proxy.
    private func url(_ proxy: FaultProxy) throws -> URL {
        try require(URL(string: "\(proxy.url.absoluteString)&schema=shop"))
    }

    /// Reads the whole history, on another thread.
    private func reading(_ stack: ServerStack) -> Errand<Int> {
        Errand {
            let context = stack.context()
            return try context.performAndWait {
                let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
                let result = try context.execute(request) as? NSPersistentHistoryResult
                return (result?.result as? [NSPersistentHistoryTransaction])?.count ?? -1
            }
        }
    }

    @Test func `a store is opened though a session keeps others from giving numbers`() throws {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url, history: true, [NSPersistentStoreTimeoutOption: 10])
        let blocker = try server.connection()
        try blocker.command("SELECT pg_catalog.pg_advisory_lock(\(Self.lock))")
        try stack.insert("Rome")
        let other = try ServerStack(server.url, history: true, [NSPersistentStoreTimeoutOption: 5])
        try expectEqual(other.cities(), ["Rome"])
        try expectEqual(blocker.query("SELECT last FROM strata_history").firstInt64, 0)
    }

    @Test func `a client that stands still while it gives numbers keeps no other from the history`() throws {
        let server = try PrivateServer()
        let proxy = try FaultProxy(to: server.url)
        defer { proxy.close() }
        let still = try ServerStack(try url(proxy), history: true)
        let stack = try ServerStack(server.url, history: true, [NSPersistentStoreTimeoutOption: 20])
        // The text of the statement that gives the first numbers passes when it is prepared.
        proxy.arm(.standstill, at: "pg_advisory_xact_lock")
        let session = try server.connection()
        try session.command("SELECT pg_catalog.pg_advisory_lock(\(Self.lock))")
        try still.insert("Rome")
        try waitUntil { proxy.hasStruck }
        try session.command("SELECT pg_catalog.pg_advisory_unlock(\(Self.lock))")
        try stack.insert("Oslo")
        try expectEqual(reading(stack).wait(), 2)
        // The server has not ended the session for being idle, either.
        let log = try String(contentsOfFile: server.folder + "/server.log", encoding: .utf8)
        expect(!log.contains("idle-in-transaction timeout"))
    }

    @Test func `a client that stands still while it purges is ended after some seconds`() throws {
        let server = try PrivateServer()
        let proxy = try FaultProxy(to: server.url)
        defer { proxy.close() }
        let still = try ServerStack(try url(proxy), history: true, [NSPersistentStoreTimeoutOption: 120])
        let stack = try ServerStack(server.url, history: true, [NSPersistentStoreTimeoutOption: 30])
        try still.insert("Rome")
        let token = try require(still.coordinator.currentPersistentHistoryToken(fromStores: nil))
        try still.insert("Oslo")
        let later = try require(still.coordinator.currentPersistentHistoryToken(fromStores: nil))
        expect(token.isBehind(later))
        proxy.arm(.standstill, at: "DELETE FROM strata_change")
        let purge = Errand {
            let context = still.context()
            try context.performAndWait {
                _ = try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: later))
            }
        }
        try waitUntil { proxy.hasStruck }
        try stack.insert("Bern")
        try expectEqual(reading(stack).wait(), 3)
        proxy.close()
        _ = try? purge.wait()
    }

    @Test func `if several processes come to give the same numbers, only one writes`() throws {
        let server = try PrivateServer()
        let stacks = try (0..<3).map { _ in try ServerStack(server.url, history: true) }
        let session = try server.connection()
        try session.command(
            """
            CREATE TABLE updates (at bigint);
            CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO shop.updates VALUES (1); RETURN NULL; END $$;
            CREATE TRIGGER noted AFTER UPDATE ON strata_history FOR EACH ROW EXECUTE FUNCTION note()
            """
        )
        try session.command("SELECT pg_catalog.pg_advisory_lock(\(Self.lock))")
        try stacks[0].insert("Rome")
        let waiting = """
            SELECT 1 FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND pid <> pg_catalog.pg_backend_pid()
            """
        // Each store looks at least once a second.
        try waitUntil { try session.query(waiting).rowCount == stacks.count }
        try session.command("SELECT pg_catalog.pg_advisory_unlock(\(Self.lock))")
        try waitUntil { try session.query(waiting).rowCount == 0 }
        try expectEqual(session.query("SELECT last FROM strata_history").firstInt64, 1)
        try expectEqual(session.query("SELECT count(*) FROM updates").firstInt64, 1)
        withExtendedLifetime(stacks) {}
    }

    @Test func `a number that was given outlives a crash, though commits need not`() throws {
        let server = try PrivateServer(["synchronous_commit=off", "wal_writer_delay=10s"])
        let stack = try ServerStack(server.url, history: true)
        try server.connection().command("CHECKPOINT")
        try stack.insert("Rome")
        let token = try require(stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
        expectEqual(Array(token.transactionNumbers.values), [1])
        let sql = "SELECT number || ' ' || id FROM strata_transaction"
        let told = try server.text(sql)
        try server.halt()
        try server.resume()
        try expectEqual(server.text(sql), told)
        try expectEqual(server.text("SELECT last::text FROM strata_history"), "1")
        withExtendedLifetime(stack) {}
    }

    @Test(.enabled(if: Compiler.isThere))
    func `the times of transactions and consumers are those of the server's clock`() throws {
        let server = try PrivateServer(environment: ["STRATA_DISK": "1", "STRATA_CLOCK": "7200"])
        let stack = try ServerStack(server.url, history: true)
        try stack.insert("Rome")
        let context = stack.context()
        let transaction = try context.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            let result = try context.execute(request) as? NSPersistentHistoryResult
            return try require((result?.result as? [NSPersistentHistoryTransaction])?.first)
        }
        expect(abs(transaction.timestamp.timeIntervalSinceNow - 7200) < 600)
        try stack.coordinator.setPersistentHistoryToken(transaction.token, forConsumer: "index")
        let consumer = try require(stack.coordinator.persistentHistoryConsumers().first)
        expect(abs(consumer.lastSeen.timeIntervalSinceNow - 7200) < 600)
    }

    @Test(.enabled(if: Compiler.isThere))
    func `the time of a migration is that of the server's clock`() throws {
        let server = try PrivateServer(environment: ["STRATA_DISK": "1", "STRATA_CLOCK": "7200"])
        for version in 1...2 {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LargeStore.model(version))
            let options = ChangingStore.migrating.merging([NSPersistentHistoryTrackingKey: true]) { $1 }
            let store = try coordinator.addPersistentStore(
                type: .postgreSQL,
                configuration: nil,
                at: server.url,
                options: options
            )
            try coordinator.remove(store)
        }
        let times = try Array(server.connection().query("SELECT time, author FROM strata_transaction").rows)
        expectEqual(times.count, 1)
        let end = Date().timeIntervalSinceReferenceDate + 7200
        expect(times.allSatisfy { abs($0.double(0) - end) < 600 && $0.string(1).hasPrefix("com.apple.coredata") })
    }

    @Test func `own transactions are noted at a cost that does not grow with their number`() {
        func processorTime() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
        var own = OwnTransactions()
        let identifiers = (0..<120_000).map { _ in UUID() }
        let start = processorTime()
        for (index, identifier) in identifiers.enumerated() {
            own.add(identifier)
            own.add(Int64(index), of: identifier)
        }
        expect(processorTime() - start < 10)
        own.add(Int64(119_999), of: UUID())
        expect(own.contains(Int64(119_998)) && !own.contains(Int64(119_999)))
        expect(own.contains(Int64(90_000)) && !own.contains(Int64(0)))
    }
}
