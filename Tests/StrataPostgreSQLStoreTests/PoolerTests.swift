import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

/// A pgbouncer in transaction mode before the tests' server or another one; see `Tests/postgresql-server.sh`.
///
/// It has four sessions for all clients, and stops when it is released.
private final class Pooler: Sendable {
    private let folder = "/tmp/strata-pool." + String(UInt64.random(in: 0 ... .max), radix: 36)
    private let schema = "pooled_" + String(UInt64.random(in: 0 ... .max), radix: 36)
    /// Leads through the pooler to a schema that no other test uses.
    let url: URL
    /// The server that belongs to the test alone; `nil` for that of all tests.
    private let own: PrivateServer?

    static let isThere = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"].contains {
        FileManager.default.isExecutableFile(atPath: "\($0)/pgbouncer")
    }

    init(before own: PrivateServer? = nil) throws {
        self.own = own
        let items = TestDatabase.url.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true)?.queryItems }
        let host = try require(own?.folder ?? items?.first { $0.name == "host" }?.value)
        let told = try PrivateServer.run(["pooler", folder, host], [:])
        url = try require(URL(string: "\(told)&schema=\(schema)"))
    }

    deinit {
        if own == nil, let direct = try? direct() {
            _ = try? direct.command("DROP SCHEMA IF EXISTS \"\(schema)\" CASCADE")
        }
        _ = try? PrivateServer.run(["stop", folder], [:])
    }

    /// Makes it lead to another server from now on, while its clients stay connected.
    func lead(to server: PrivateServer) throws {
        _ = try PrivateServer.run(["redirect", folder, server.folder], [:])
    }

    /// Leads to the same schema without the pooler.
    var directURL: URL {
        get throws {
            let direct = try require(TestDatabase.url)
            return try require(URL(string: "\(direct.absoluteString)&schema=\(schema)"))
        }
    }

    /// A session of the server.
    func direct() throws -> Connection {
        let connection = try Connection.open(try ConnectionTarget(directURL), timeout: 30)
        try connection.command("SET search_path TO \"\(schema)\"")
        return connection
    }
}

@Suite("PostgreSQL stores behind a pooler in transaction mode", .enabled(if: Server.isThere && Pooler.isThere))
struct PoolerTests {
    private func insert(_ names: [String], _ context: NSManagedObjectContext) throws {
        try context.performAndWait {
            for name in names {
                NSEntityDescription.insertNewObject(forEntityName: "City", into: context).setValue(name, forKey: "name")
            }
            try context.save()
        }
    }

    private func names(_ context: NSManagedObjectContext) throws -> [String] {
        try context.performAndWait {
            context.reset()
            return try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City"))
                .compactMap { $0.value(forKey: "name") as? String }.sorted()
        }
    }

    @Test func `a connection through a pooler is distinguished from one that leads to the server`() throws {
        let pooler = try Pooler()
        try expect(Connection.open(try ConnectionTarget(pooler.url), timeout: 30).isBehindPooler())
        try expect(!Server.connection().isBehindPooler())
    }

    @Test func `what is saved by many at once is there, and nothing is left in the sessions of others`() async throws {
        let pooler = try Pooler()
        let stack = try ServerStack(pooler.url, history: true)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<8 {
                group.addTask {
                    let context = stack.context()
                    for save in 0..<10 {
                        try await context.perform {
                            for place in 0..<3 {
                                let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                                city.setValue("\(writer) \(save) \(place)", forKey: "name")
                            }
                            try context.save()
                            context.reset()
                            let request = NSFetchRequest<NSManagedObject>(entityName: "City")
                            request.predicate = NSPredicate(format: "name BEGINSWITH %@", "\(writer) ")
                            let found = try context.fetch(request)
                            expectEqual(found.count, (save + 1) * 3)
                            found.first?.setValue("\(writer) first \(save)", forKey: "name")
                            try context.save()
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        try expectEqual(names(stack.context()).count, 240)
        try expectEqual(pooler.direct().query("SELECT pg_catalog.count(*) FROM strata_transaction").firstInt64, 160)
        // The next client of a server session finds it as it was.
        let stranger = try Connection.open(try ConnectionTarget(pooler.url), timeout: 30)
        let path = try stranger.command("SHOW search_path")
        expectEqual(path[0].string(0), #""$user", public"#)
        try expectEqual(stranger.command("SELECT * FROM pg_catalog.pg_prepared_statements").rowCount, 0)
        let locks = try stranger.command(
            "SELECT 1 FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND classid = 7276 AND objid::bigint = (pg_catalog.hashtext('\(try ConnectionTarget(pooler.url).schema)')::bigint & 4294967295)"
        )
        expectEqual(locks.rowCount, 0)
    }

    @Test func `stores of several schemas share connections through a pooler`() throws {
        let pooler = try Pooler()
        let schema = try ConnectionTarget(pooler.url).schema
        let otherURL = try require(URL(string: pooler.url.absoluteString.replacing(schema, with: "\(schema)_b")))
        defer { _ = try? pooler.direct().command("DROP SCHEMA IF EXISTS \"\(schema)_b\" CASCADE") }
        // The budget is that of this pooler alone.
        let options: [String: Any] = [NSPostgreSQLServerConnectionsOption: 1]
        let (a, b) = (try ServerStack(pooler.url, options), try ServerStack(otherURL, options))
        let budget = try require(a.database.pool.budget)
        for round in 0..<3 {
            try a.insert("a \(round)")
            try b.insert("b \(round)")
            try expectEqual(a.cities(), (0...round).map { "a \($0)" })
            try expectEqual(b.cities(), (0...round).map { "b \($0)" })
            expectEqual([budget.usedCount, budget.idleCount], [0, 1])
        }
        try expect(a.database.pool.withConnection { $0.isPooled })
        // The server's session shows the schema of a store only inside of its transactions.
        let stranger = try Connection.open(try ConnectionTarget(pooler.url), timeout: 30)
        try expectEqual(stranger.command("SHOW search_path")[0].string(0), #""$user", public"#)
        try NSPersistentStoreCoordinator(managedObjectModel: NSManagedObjectModel())
            .destroyPersistentStore(at: otherURL, type: .postgreSQL, options: nil)
        expectEqual(expectThrows(CocoaError.self) { try b.cities() }?.code, .persistentStoreOperation)
        try expectEqual(a.cities().count, 3)
    }

    @Test func `a store gets foreign keys through a pooler, and saves with them`() throws {
        let pooler = try Pooler()
        try ServerStack(pooler.url).insert("Rome")
        let stack = try ServerStack(pooler.url, [NSPostgreSQLForeignKeysOption: true])
        let context = stack.context()
        try context.performAndWait {
            let city = try require(try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
            NSEntityDescription.insertNewObject(forEntityName: "Venue", into: context).setValue(city, forKey: "city")
            try context.save()
        }
        let direct = try pooler.direct()
        let error = expectThrows(PostgreSQLError.self) { try direct.command("DELETE FROM city") }
        expectEqual(error?.sqlState, "23503")
        // The session keeps nothing of the wait for locks.
        try expectEqual(
            Connection.open(try ConnectionTarget(pooler.url), timeout: 30).command("SHOW lock_timeout")[0].string(0),
            "0"
        )
    }

    @Test func `blocks lock rows through a pooler`() throws {
        let pooler = try Pooler()
        let stack = try ServerStack(pooler.url)
        try stack.insert("Rome")
        let errands = (0..<3).map { _ in
            let context = stack.context()
            return Errand {
                for _ in 0..<5 {
                    try context.performAndWait(locking: .seconds(60)) {
                        let request = NSFetchRequest<NSManagedObject>(entityName: "City")
                        request.rowLock = RowLock(.update)
                        let city = try require(context.fetch(request).first)
                        city.setValue((city.value(forKey: "population") as? Int ?? 0) + 1, forKey: "population")
                        try context.save()
                    }
                }
            }
        }
        for errand in errands { try errand.wait() }
        try expectEqual(pooler.direct().query("SELECT population::bigint FROM city").firstInt64, 15)
        // The session keeps nothing of the wait for locks.
        let stranger = try Connection.open(try ConnectionTarget(pooler.url), timeout: 30)
        for setting in ["lock_timeout", "idle_in_transaction_session_timeout"] {
            try expectEqual(stranger.command("SHOW \(setting)")[0].string(0), "0")
        }
    }

    @Test func `a version that a context is pinned to stays as it was`() throws {
        let pooler = try Pooler()
        let stack = try ServerStack(pooler.url)
        let (writer, reader) = (stack.context(), stack.context())
        try insert(["Rome"], writer)
        func count() throws -> Int {
            try reader.performAndWait { try reader.count(for: NSFetchRequest<NSManagedObject>(entityName: "City")) }
        }
        try reader.performAndWait { try reader.setQueryGenerationFrom(.current) }
        try expectEqual(count(), 1)
        try insert(["Oslo"], writer)
        try expectEqual(count(), 1)
        try expectEqual(names(writer), ["Oslo", "Rome"])
    }

    @Test func `readers of a version take turns, as a pooler may lead anywhere, and it may have an age`() throws {
        let pooler = try Pooler()
        let stack = try ServerStack(pooler.url)
        let version = try PinnedPostgreSQLVersion.newest(stack.database, mayBeReplica: false)
        let seen = Noted<Bool>()
        let other = try version.read { _ in
            let other = onThread { try version.read { _ in seen.note(true) } }
            try wait { version.waiterCount == 1 }
            expectEqual(seen.noted, nil)
            return other
        }
        try other.join()
        expectEqual(seen.noted, true)

        version.end()
        let old = try PinnedPostgreSQLVersion.newest(stack.database, mayBeReplica: false, ageLimit: 0.5)
        let session = try pooler.direct()
        let sql =
            "SELECT 1 FROM pg_catalog.pg_locks WHERE locktype = 'relation' AND relation = 'strata_store'::regclass"
        try wait { (try? session.query(sql).rowCount) == 0 }
        let error = expectThrows(CocoaError.self) { try old.read { _ in } }
        expectEqual(error?.code, .persistentStoreOperation)
        expectEqual(error?.localizedDescription.contains("older than the 0.5 s"), true)
    }

    @Test func `a batch and its history pass`() throws {
        let pooler = try Pooler()
        let stack = try ServerStack(pooler.url, history: true)
        let context = stack.context()
        try insert((0..<50).map { "c\($0)" }, context)
        let start = stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
        let updated = try context.performAndWait {
            let update = NSBatchUpdateRequest(entityName: "City")
            update.propertiesToUpdate = ["name": "same"]
            update.predicate = NSPredicate(format: "name BEGINSWITH 'c1'")
            update.resultType = .updatedObjectsCountResultType
            return try (context.execute(update) as? NSBatchUpdateResult)?.result as? Int
        }
        expectEqual(updated, 11)
        try expectEqual(names(context).filter { $0 == "same" }.count, 11)
        let told = try context.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: start)
            let result = try context.execute(request) as? NSPersistentHistoryResult
            return (result?.result as? [NSPersistentHistoryTransaction])?.map { $0.changes?.count ?? 0 }
        }
        expectEqual(told, [11])
    }

    @Test(arguments: [true, false])
    func `a context with an old model learns that the store was migrated, and saves nothing`(_ saves: Bool) throws {
        let pooler = try Pooler()
        func open(_ version: Int, _ url: URL) throws -> NSManagedObjectContext {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ChangingStore.model(version))
            try coordinator.addPersistentStore(
                type: .postgreSQL,
                configuration: nil,
                at: url,
                options: ChangingStore.migrating
            )
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            return context
        }
        let old = try open(1, pooler.url)
        defer { ChangingStore.close(old) }
        try insert(["Rome"], old)
        try expectEqual(names(old), ["Rome"])
        ChangingStore.close(try open(2, pooler.directURL))
        let error = expectThrows(CocoaError.self) {
            if saves { try insert(["Oslo"], old) } else { _ = try names(old) }
        }
        expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
        try expectEqual(pooler.direct().query("SELECT pg_catalog.count(*) FROM city").firstInt64, 1)
    }

    @Test func `another store object's metadata do not stop reads and saves`() throws {
        let pooler = try Pooler()
        let (one, other) = (try ServerStack(pooler.url), try ServerStack(pooler.url))
        try insert(["Rome"], one.context())
        let store = try require(other.coordinator.persistentStores.first)
        other.coordinator.setMetadata(["Owner": "somebody"], for: store)
        try insert(["Oslo"], other.context())
        try expectEqual(names(one.context()), ["Oslo", "Rome"])
        try insert(["Bern"], one.context())
        try expectEqual(names(other.context()), ["Bern", "Oslo", "Rome"])
    }

    @Test(arguments: [FaultProxy.Fault.cutAfter, .cutBefore, .silence], [false, true])
    func `a save whose connection breaks at COMMIT is there once`(_ fault: FaultProxy.Fault, _ history: Bool) throws {
        let pooler = try Pooler()
        let proxy = try FaultProxy(to: pooler.url)
        defer { proxy.close() }
        let stack = try ServerStack(proxy.url, history: history, [NSPersistentStoreTimeoutOption: 1.0])
        proxy.arm(fault)
        try insert(["Rome"], stack.context())
        expect(proxy.hasStruck)
        try expectEqual(names(stack.context()), ["Rome"])
    }

    @Test func `a follower of the history finds others' changes by looking`() async throws {
        let pooler = try Pooler()
        let options: [String: Any] = [NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
        let one = try ServerStack(pooler.url, history: true, options)
        let other = try ServerStack(pooler.url, history: true, options)
        let (told, teller) = AsyncStream.makeStream(of: Void.self)
        let token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: one.coordinator,
            queue: nil
        ) { _ in teller.yield() }
        defer { NotificationCenter.default.removeObserver(token) }
        try insert(["Rome"], other.context())
        for await _ in told { break }
        try expectEqual(names(one.context()), ["Rome"])
    }

    @Test func `a URL may say what stands before the server`() throws {
        let direct = try require(TestDatabase.url).absoluteString
        func target(_ word: String) throws -> ConnectionTarget {
            try ConnectionTarget(require(URL(string: "\(direct)&pooler=\(word)")))
        }
        try expectEqual(target("transaction").isPooled, true)
        try expectEqual(target("session").isPooled, false)
        try expectEqual(target("none").isPooled, false)
        try expectEqual(ConnectionTarget(require(TestDatabase.url)).isPooled, nil)
        expectThrows(PostgreSQLError.self) { try target("statement") }
        try expect(!target("transaction").url.contains("pooler"))
    }

    @Test func `a server that is started again behind a pooler may have lost saves, and is asked for new keys`() throws
    {
        let server = try PrivateServer(["synchronous_commit=on"])
        let pooler = try Pooler(before: server)
        let schema = try ConnectionTarget(pooler.url).quotedSchema
        let stack = try ServerStack(pooler.url)
        try insert(["Rome"], stack.context())
        let before = try require(server.text("SELECT strata_version::text FROM \(schema).city"))
        try stack.rename("Lost")
        try expectEqual(names(stack.context()), ["Lost"])
        // As a crash does that loses the last save.
        try server.connection().command("UPDATE \(schema).city SET name = 'Rome', strata_version = \(before)")
        try server.halt()
        try server.resume()
        try expectEqual(names(stack.context()), ["Rome"])
        try insert(["Oslo"], stack.context())
        let keys = try server.connection().query("SELECT strata_id FROM \(schema).city ORDER BY name DESC").rows
            .map { $0.int64(0) }
        expect(keys.count == 2 && keys[1] >= keys[0] + 1000, "\(keys)")
    }

    @Test func `a pooler that leads to a server which has taken another's place gives keys of its own`() throws {
        let primary = try PrivateServer(["synchronous_commit=on"])
        let replica = try PrivateServer(following: primary)
        let pooler = try Pooler(before: primary)
        let schema = try ConnectionTarget(pooler.url).quotedSchema
        let stack = try ServerStack(pooler.url)
        try insert(["Rome"], stack.context())
        try replica.catchUp(with: primary)
        try primary.halt()
        try replica.promote()
        try pooler.lead(to: replica)
        try insert(["Oslo"], stack.context())
        try expectEqual(names(stack.context()), ["Oslo", "Rome"])
        let keys = try replica.connection().query("SELECT strata_id FROM \(schema).city ORDER BY name DESC").rows
            .map { $0.int64(0) }
        // The upper bits of a key count the timelines.
        expect(keys.count == 2 && keys[0] < 1 << 40 && keys[1] > 1 << 40, "\(keys)")
    }
}
