import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

@Suite("Portable PostgreSQL stores", .enabled(if: Server.isThere && Compiler.isThere))
struct PortableStoreTests {
    private static func numbers(_ stack: ServerStack, after token: NSPersistentHistoryToken? = nil) throws -> [Int64] {
        try transactions(stack, after: token).map(\.transactionNumber)
    }

    private static func transactions(_ stack: ServerStack, after token: NSPersistentHistoryToken?) throws
        -> [NSPersistentHistoryTransaction]
    {
        let context = stack.context()
        return try context.performAndWait {
            let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
            return (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
        }
    }

    private static func metadata(_ stack: ServerStack) throws -> [String: Any] {
        try withExtendedLifetime(stack) { try require(stack.coordinator.persistentStores.first?.metadata) }
    }

    @Test(arguments: PortableProxy.Locks.allCases)
    func `a store is made, written by two, read, pinned, followed and destroyed`(_ locks: PortableProxy.Locks)
        async throws
    {
        let proxy = try PortableProxy(locks)
        let options = [NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
        var stacks = try (0..<2).map { _ in try ServerStack(proxy.url, history: true, options) }
        expectEqual(
            stacks.flatMap { $0.coordinator.statistics().stores.map(\.tablePlacement) },
            [.portable, .portable]
        )
        try expectEqual(proxy.number("SELECT count(*) FROM strata_lease"), 2)
        let told = DispatchSemaphore(value: 0)
        let token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: stacks[1].coordinator,
            queue: nil
        ) { _ in told.signal() }
        defer { NotificationCenter.default.removeObserver(token) }
        // Some of the COMMITs are answered by 40001.
        for number in 0..<10 { try stacks[0].insert("\(number)") }
        try require(told.wait(timeout: .now() + 300) == .success)
        let all = (0..<10).map { "\($0)" }
        try expectEqual(stacks[1].cities(), all)
        try await expectEqual(Cities.looped(stacks[1].context()), all)
        let pinned = stacks[1].context()
        try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
        try expectEqual(Cities.fetched(pinned), all)
        for number in 10..<14 { try stacks[0].insert("\(number)") }
        try expectEqual(Cities.fetched(pinned), all)
        try expectEqual(stacks[1].cities().count, 14)
        try expectEqual(Self.numbers(stacks[1]), Array(1...14))
        pinned.performAndWait { pinned.reset() }
        stacks = []
        try expectEqual(proxy.number("SELECT count(*) FROM strata_lease"), 0)
        try expectEqual(proxy.number("SELECT count(*) FROM strata_receipt"), 0)
        // All processes use the store in the same way, also those that find that the server has everything.
        let direct = try ServerStack(proxy.direct)
        expectEqual(direct.coordinator.statistics().stores.map(\.tablePlacement), [.portable])
        try direct.insert("14")
        try expectEqual(Self.numbers(direct), Array(1...15))
        let inspected = Tool.run("inspect", "--store", proxy.url.absoluteString)
        expect(inspected.lines.contains { $0.hasPrefix("Tables") && $0.hasSuffix("portable") }, "\(inspected)")
        expect(
            inspected.lines.contains { $0.hasSuffix("a migration copies all tables, and nobody may write meanwhile") },
            "\(inspected)"
        )
        try PostgreSQLStore.destroyStore(at: proxy.url, options: nil)
        try expectEqual(proxy.number("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"), 0)
    }

    // MARK: - Commits

    @Test(arguments: [false, true])
    func `a commit without an answer is settled by its receipt, with and without a history`(_ history: Bool) throws {
        let portable = try PortableProxy(every: 0)
        let proxy = try FaultProxy(to: portable.url)
        defer { proxy.close() }
        let stack = try ServerStack(proxy.url, history: history, [NSPersistentStoreTimeoutOption: 20])
        let faults: [FaultProxy.Fault] = [.cutBefore, .cutAfter, .doubtAfter]
        for (number, fault) in faults.enumerated() {
            proxy.arm(fault)
            try stack.insert("\(number)")
            expect(proxy.hasStruck)
            try expectEqual(stack.cities().count, number + 1)
        }
        // A batch has no row that would show its commit.
        for fault in faults {
            proxy.arm(fault)
            let context = stack.context()
            try context.performAndWait {
                let update = NSBatchUpdateRequest(entityName: "City")
                update.propertiesToUpdate = ["population": NSExpression(format: "population + 1")]
                try context.execute(update)
            }
            expect(proxy.hasStruck)
        }
        try expectEqual(portable.number("SELECT sum(population)::bigint FROM city"), 9)
        // What is known to be committed needs no receipt any more.
        let lease = try require(try stack.database.lease)
        try lease.renew()
        try expectEqual(portable.number("SELECT count(*) FROM strata_receipt WHERE NOT void"), 0)
    }

    @Test func `a receipt and its void twin are never both stored`() throws {
        let proxy = try PortableProxy(every: 0)
        let stack = try ServerStack(proxy.url)
        let lease = try require(try stack.database.lease)
        let (old, asking) = (try proxy.session(), try proxy.session())
        // The old session is still at work; then it commits.
        let first = lease.newReceipt()
        try old.command("BEGIN")
        try first.post(on: old)
        try old.readPostedAnswers()
        try expectEqual(first.isCommitted(asking), nil)
        try old.commit()
        try expectEqual(first.isCommitted(asking), true)
        // The old session does not come before the question, and then it is too late.
        let second = lease.newReceipt()
        try expectEqual(second.isCommitted(asking), false)
        try old.command("BEGIN")
        try second.post(on: old)
        let error = expectThrows(PostgreSQLError.self) { try old.readPostedAnswers() }
        expectEqual(error?.sqlState, "23505")
        try old.rollback()
        try expectEqual(second.isCommitted(asking), false)
        // A lease that was not renewed for a day is removed, and receipts without a lease.
        let third = lease.newReceipt()
        try proxy.session().command(
            """
            DELETE FROM strata_lease;
            INSERT INTO strata_lease (name, holder, seen) VALUES ('dead', '\(UUID())', \(HistoryQueries.now) - \(StoreLease.life + 1))
            """
        )
        let other = try ServerStack(proxy.url)
        try other.database.lease?.renew()
        try expectEqual(proxy.number("SELECT count(*) FROM strata_receipt"), 0)
        try expectEqual(proxy.number("SELECT count(*) FROM strata_lease WHERE name = 'dead'"), 0)
        // If others have taken the store object for dead, then its receipts may be gone.
        expectThrows(PostgreSQLError.self) { _ = try third.isCommitted(asking) }
        // It goes on under another name.
        try lease.renew()
        try expectEqual(proxy.number("SELECT count(*) FROM strata_lease"), 2)
        try expectEqual(lease.newReceipt().isCommitted(asking), false)
    }

    @Test func `the leases of all stores are renewed, and end with the stores`() throws {
        let proxies = try (0..<3).map { _ in try PortableProxy(every: 0) }
        let stacks = try proxies.map { try ServerStack($0.url) }
        for proxy in proxies {
            try proxy.session().command("UPDATE strata_lease SET seen = seen - 1000")
        }
        for proxy in proxies {
            let live = "SELECT count(*) FROM strata_lease WHERE seen > \(HistoryQueries.now) - 100"
            try waitUntil { try proxy.number(live) == 1 }
        }
        for stack in stacks { TrialTests.close(stack.coordinator) }
        for proxy in proxies { try expectEqual(proxy.number("SELECT count(*) FROM strata_lease"), 0) }
    }

    @Test func `a store that was dropped keeps no lease of its server from being renewed`() throws {
        let proxy = try PortableProxy(every: 0)
        let schemas = (0..<5).map { "\(proxy.schema)_\($0)" }
        let stacks = try schemas.map { schema in
            let url = proxy.url.absoluteString.replacingOccurrences(of: proxy.schema, with: schema)
            return try ServerStack(require(URL(string: url)))
        }
        defer { withExtendedLifetime(stacks) {} }
        let session = try proxy.session()
        // The leases have no order, so each store is dropped in turn.
        for (number, schema) in schemas.enumerated() {
            try session.command("DROP SCHEMA \(schema) CASCADE")
            let rest = schemas[(number + 1)...]
            for other in rest { try session.command("UPDATE \(other).strata_lease SET seen = seen - 1000") }
            LeaseRounds.shared.renewAll()
            for other in rest {
                let live = "SELECT count(*) FROM \(other).strata_lease WHERE seen > \(HistoryQueries.now) - 100"
                try expectEqual(session.query(live).firstInt64, 1)
            }
        }
    }

    @Test
    func `whatever the server takes back at COMMIT is made again, and a save that it always takes back is not stored`()
        throws
    {
        let proxy = try PortableProxy(every: 2)
        let stack = try ServerStack(proxy.url, history: true)
        for name in ["Rome", "Oslo", "Bern"] { try stack.insert(name) }
        let context = stack.context()
        try context.performAndWait {
            let insert = NSBatchInsertRequest(entityName: "City", objects: (0..<6_000).map { ["name": "many \($0)"] })
            try context.execute(insert)
            let many = NSFetchRequest<any NSFetchRequestResult>(entityName: "City")
            many.predicate = NSPredicate(format: "name BEGINSWITH 'many'")
            try context.execute(NSBatchDeleteRequest(fetchRequest: many))
        }
        for _ in 0..<3 {
            let pinned = stack.context()
            try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
            try expectEqual(Cities.fetched(pinned), ["Bern", "Oslo", "Rome"])
            try expectEqual(Self.numbers(stack), Array(1...5))
        }
        let token = try Self.transactions(stack, after: nil)[2].token
        try context.performAndWait {
            _ = try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: token))
        }
        try expectEqual(Self.numbers(stack), [3, 4, 5])
        let store = try require(stack.coordinator.persistentStores.first)
        stack.coordinator.setMetadata(
            stack.coordinator.metadata(for: store).merging(["Theme": "dark"]) { $1 },
            for: store
        )
        try stack.insert("Kyiv")
        try expectEqual(Self.metadata(ServerStack(proxy.url))["Theme"] as? String, "dark")
        // 40001 at COMMIT is no doubt: nothing was stored.
        let refusing = try PortableProxy(every: 1)
        let error = expectThrows(CocoaError.self) { try ServerStack(refusing.url).insert("Rome") }
        expectEqual(error?.code, .persistentStoreOpen)
        try expectEqual(refusing.number("SELECT count(*) FROM strata_store"), 0)
    }

    @Test func `an insertion that is made again counts no row twice in its progress`() async throws {
        let proxy = try PortableProxy(every: nil)
        let stack = try ServerStack(proxy.url)
        let told = Shared<[BatchInsertProgress]>([])
        let request = NSBatchInsertRequest(entityName: "City", objects: (0..<600).map { ["name": "\($0)"] })
        _ = try await stack.context().execute(request) { progress in told.update { $0.append(progress) } }
        let all = told.current
        expectEqual(all.map(\.completedRows).max(), 600)
        expectEqual(all.last?.completedRows, 600)
        expect(all.allSatisfy { $0.expectedRows ?? 600 == 600 }, "\(all)")
        expectEqual(zip(all, all.dropFirst()).count { $1.completedRows < $0.completedRows }, 1)
        try expectEqual(stack.cities().count, 600)
    }

    @Test func `a save of a block that locks rows is not made again, and the block may run again`() throws {
        let proxy = try PortableProxy(every: nil)
        let stack = try ServerStack(proxy.url)
        try stack.insert("Rome")
        let request = NSFetchRequest<NSManagedObject>(entityName: "City")
        request.rowLock = RowLock(.update)
        func rename(_ name: String) throws {
            let context = stack.context()
            try context.performAndWait(locking: .seconds(30)) {
                try context.fetch(request).first?.setValue(name, forKey: "name")
                try context.save()
            }
        }
        // The block has read what it saves, so only its caller can make it again.
        let error = expectThrows(CocoaError.self) { try rename("Roma") }
        expectEqual(error?.code, .managedObjectContextLocking)
        try expectEqual(stack.cities(), ["Rome"])
        // The next connection may be a new one, on which the first COMMIT is refused too.
        try waitUntil { (try? rename("Roma")) != nil }
        try expectEqual(stack.cities(), ["Roma"])
    }

    // MARK: - History

    @Test func `numbers become visible in their order, so a reader misses nothing`() throws {
        let proxy = try PortableProxy()
        let stack = try ServerStack(proxy.url, history: true)
        let writers = (0..<6).map { writer in
            Errand {
                let stack = try ServerStack(proxy.url)
                for number in 0..<10 { try stack.insert("\(writer) \(number)") }
            }
        }
        var seen: [Int64] = []
        var token: NSPersistentHistoryToken?
        try waitUntil {
            let new = try Self.transactions(stack, after: token)
            seen += new.map(\.transactionNumber)
            token = new.last?.token ?? token
            return seen.count >= 60
        }
        for writer in writers { try writer.wait() }
        expectEqual(seen, Array(1...60))
        // A save that has not ended holds back the number of the next one.
        let old = try proxy.session()
        try old.command("BEGIN; UPDATE strata_history SET last = last + 1")
        let late = Errand { try stack.insert("late") }
        try waitUntil {
            try proxy.number("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'") ?? 0 > 0
        }
        try expectEqual(Self.numbers(stack, after: token), [])
        try old.rollback()
        try late.wait()
        try expectEqual(Self.numbers(stack, after: token), [61])
    }

    @Test func `a history begins while others save without one, and all that comes later is in it`() throws {
        let proxy = try PortableProxy()
        let first = try ServerStack(proxy.url)
        try first.insert("Rome")
        let second = try ServerStack(proxy.url, history: true)
        try first.insert("Oslo")
        try second.insert("Bern")
        try expectEqual(Self.numbers(second), [1, 2])
    }

    // MARK: - Making

    @Test func `several make a store at once, and there is one`() throws {
        let proxy = try PortableProxy()
        let makers = (0..<6).map { _ in
            Errand {
                try require(Self.metadata(ServerStack(proxy.url))[NSStoreUUIDKey] as? String)
            }
        }
        try expectEqual(Set(makers.map { try $0.wait() }).count, 1)
    }

    @Test func `a maker that is at work is waited for, and the work of one that has died is continued`() throws {
        let proxy = try PortableProxy()
        let session = try proxy.session()
        let schema = try ConnectionTarget(proxy.url).quotedSchema
        try session.command("CREATE SCHEMA \(schema); \(PortableTables.leases)")
        try session.command(
            "CREATE TABLE strata_receipt (id uuid PRIMARY KEY, lease text NOT NULL, void boolean NOT NULL, time float8 NOT NULL)"
        )
        try session.query(
            "INSERT INTO strata_lease (name, holder, seen) VALUES ($1, $2, \(HistoryQueries.now))",
            [.text(ShapeLease.name), .uuid(UUID())]
        )
        let error = expectThrows(CocoaError.self) {
            _ = try ServerStack(proxy.url, [NSPersistentStoreTimeoutOption: 1])
        }
        expectEqual(error?.code, .persistentStoreTimeout)
        try session.command("UPDATE strata_lease SET seen = seen - \(ShapeLease.duration + 1)")
        try ServerStack(proxy.url).insert("Rome")
        try expectEqual(PostgreSQLStore.problems(at: proxy.url, GuideModel.make()), [])
    }

    @Test func `foreign keys are refused with the reason`() throws {
        let proxy = try PortableProxy()
        let keys = expectThrows(CocoaError.self) {
            _ = try ServerStack(proxy.url, [NSPostgreSQLForeignKeysOption: true])
        }
        expectEqual(keys?.code, .persistentStoreOpen)
        expect(keys?.localizedDescription.contains("cannot have foreign keys") == true, "\(String(describing: keys))")
    }
}
