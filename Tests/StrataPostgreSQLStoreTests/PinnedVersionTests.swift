import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataRows
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

/// A store in a separate schema, and the database behind it.
final class PinnedStack: Sendable {
    let stack: ServerStack
    let database: OpenPostgreSQLStore
    private let schema = "pinned_" + String(UInt64.random(in: 0 ... .max), radix: 36)

    init(_ options: [String: Any] = [:]) throws {
        let server = try require(TestDatabase.url)
        stack = try ServerStack(require(URL(string: "\(server.absoluteString)&schema=\(schema)")), options)
        database = try stack.database
    }

    deinit {
        for store in stack.coordinator.persistentStores { try? stack.coordinator.remove(store) }
        _ = try? Server.connection().command("DROP SCHEMA \"\(schema)\" CASCADE")
    }

    /// A session besides the store's.
    func direct() throws -> Connection {
        let connection = try Server.connection()
        try connection.command("SET search_path TO \"\(schema)\"")
        return connection
    }

    func version(ageLimit: Double? = nil) throws -> PinnedPostgreSQLVersion {
        try PinnedPostgreSQLVersion.newest(database, mayBeReplica: false, ageLimit: ageLimit)
    }

    /// The number of sessions that hold a version: each has read the store's metadata in its open transaction.
    func holders() throws -> Int {
        try Self.holders(direct())
    }

    /// The same number, from a session that sees the schema.
    static func holders(_ session: Connection) throws -> Int {
        let sql =
            "SELECT 1 FROM pg_catalog.pg_locks WHERE locktype = 'relation' AND relation = 'strata_store'::regclass"
        return try session.query(sql).rowCount
    }
}

extension ServerStack {
    /// The database that runs the store's statements.
    var database: OpenPostgreSQLStore {
        get throws {
            let store = try require(coordinator.persistentStores.first as? PostgreSQLStore)
            return try require(store.engine as? PostgreSQLEngine).openDatabase()
        }
    }
}

/// A value that one thread notes for another.
final class Noted<Value: Sendable>: Sendable {
    private let value = Locked<Value?>(nil)
    func note(_ new: Value) { value.withLock { $0 = new } }
    var noted: Value? { value.withLock { $0 } }
}

@Suite("Pinned versions of PostgreSQL stores", .enabled(if: Server.isThere))
struct PinnedVersionTests {
    private static let count = "SELECT pg_catalog.count(*) FROM city"

    private func end(_ process: Int32) throws {
        try Server.connection().query("SELECT pg_catalog.pg_terminate_backend($1::int)", [.int8(Int64(process))])
    }

    private func expectGone(_ text: String, _ body: () throws -> Void) {
        let error = expectThrows(CocoaError.self) { try body() }
        expectEqual(error?.code, .persistentStoreOperation)
        expectEqual(error?.localizedDescription.contains(text), true, "\(error?.localizedDescription ?? "")")
    }

    // MARK: - Readers beside each other

    @Test func `a context reads a version while another one waits for the answer to its own read of it`() throws {
        let pinned = try PinnedStack([NSPersistentStoreTimeoutOption: 10.0])
        try pinned.stack.insert("Rome")
        let (first, second) = (pinned.stack.context(), pinned.stack.context())
        try first.performAndWait { try first.setQueryGenerationFrom(.current) }
        let token = first.performAndWait { first.queryGenerationToken }
        try second.performAndWait { try second.setQueryGenerationFrom(token) }

        let session = try pinned.direct()
        try session.command("BEGIN; LOCK TABLE venue IN ACCESS EXCLUSIVE MODE")
        let waiter = onThread {
            try first.performAndWait {
                try expectEqual(first.count(for: NSFetchRequest<NSManagedObject>(entityName: "Venue")), 0)
            }
        }
        func isWaiting() throws -> Bool {
            let sql = "SELECT 1 FROM pg_catalog.pg_locks WHERE NOT granted AND relation = 'venue'::regclass"
            return try session.query(sql).rowCount > 0
        }
        try wait { (try? isWaiting()) == true }
        try pinned.stack.insert("Oslo")
        try expectEqual(Cities.fetched(second), ["Rome"])
        try expect(isWaiting())
        try session.command("COMMIT")
        try waiter.join()
        try expectEqual(Cities.fetched(second), ["Rome"])
        try expectEqual(Cities.fetched(pinned.stack.context()), ["Oslo", "Rome"])
    }

    @Test func `a reader that finds a version's connection taken sees the version's rows on another one`() throws {
        let pinned = try PinnedStack()
        try pinned.stack.insert("Rome")
        let version = try pinned.version()
        try pinned.stack.insert("Oslo")
        try version.read { held in
            let seen = Noted<(Int32, Int64?)>()
            try onThread {
                try version.read { seen.note(($0.serverProcess, try $0.query(Self.count).firstInt64)) }
            }.join()
            let (process, count) = try require(seen.noted)
            expect(process != held.serverProcess)
            expectEqual(count, 1)
        }
        // The connection of the pool keeps nothing of the version.
        try expectEqual(pinned.database.pool.withConnection { try $0.query(Self.count).firstInt64 }, 2)
    }

    @Test func `without a free connection readers take turns`() throws {
        let pinned = try PinnedStack([NSPersistentStoreConnectionPoolMaxSizeKey: 1])
        let version = try pinned.version()
        let taken = try pinned.database.pool.lease()
        defer { pinned.database.pool.give(back: taken) }
        let seen = Noted<Int32>()
        let (process, other) = try version.read { held in
            let other = onThread { try version.read { seen.note($0.serverProcess) } }
            try wait { version.waiterCount == 1 }
            expectEqual(seen.noted, nil)
            return (held.serverProcess, other)
        }
        try other.join()
        expectEqual(seen.noted, process)
    }

    @Test func `a reader whose connection of the pool is lost reads on the connection of the version`() throws {
        let pinned = try PinnedStack()
        try pinned.stack.insert("Rome")
        let version = try pinned.version()
        let seen = Noted<Int64?>()
        let lost = Noted<Int32>()
        let other = try version.read { held in
            let process = held.serverProcess
            let other = onThread {
                try version.read { connection in
                    if connection.serverProcess != process {
                        lost.note(connection.serverProcess)
                        try end(connection.serverProcess)
                    }
                    seen.note(try connection.query(Self.count).firstInt64)
                }
            }
            try wait { version.waiterCount == 1 }
            return other
        }
        try other.join()
        expect(lost.noted != nil)
        expectEqual(seen.noted, 1)
    }

    @Test func `a version is gone for all of its readers when the server ends its session`() throws {
        let pinned = try PinnedStack()
        let version = try pinned.version()
        let other = Noted<JoinableThread>()
        expectGone("the server has ended its transaction") {
            try version.read { held in
                try end(held.serverProcess)
                // The name of the snapshot ends with the session.
                other.note(
                    onThread {
                        expectGone("the server has ended its transaction") {
                            try version.read { _ = try $0.query("SELECT 1") }
                        }
                    }
                )
                try wait { version.waiterCount == 1 }
                try held.query("SELECT 1")
            }
        }
        try require(other.noted).join()
    }

    @Test func `a name that another session has given by now is no snapshot of the version`() throws {
        let (exporter, reader) = (try Server.connection(), try Server.connection())
        func exported(_ columns: String) throws -> PinnedSnapshotName {
            try require(PinnedSnapshotName(exporter.query("SELECT \(columns)")[0], from: 0))
        }
        try exporter.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try expectEqual(reader.answer(exported(PinnedSnapshotName.columns).begin(on: reader)).rowCount, 1)
        try reader.rollback()
        let stranger = "pg_catalog.pg_export_snapshot(), pg_catalog.pg_backend_pid()::bigint, 0::bigint"
        try expectEqual(reader.answer(exported(stranger).begin(on: reader)).rowCount, 0)
        try reader.rollback()
        let name = try require(exporter.query("SELECT pg_catalog.pg_export_snapshot()")[0].optionalString(0))
        expectEqual(try reader.literal(name), "'\(name)'")
        expectEqual(try reader.literal("a'b"), "'a''b'")
    }

    // MARK: - Connections that were in use before

    @Test func `a version that is pinned while a migration has its locks is refused, and not empty`() throws {
        let pinned = try PinnedStack()
        try pinned.stack.insert("Rome")
        let schema = "other_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let server = try require(TestDatabase.url)
        let other = NSPersistentStoreCoordinator(managedObjectModel: StoreModels.model(StoreModels.entity("Other")))
        let url = try require(URL(string: "\(server.absoluteString)&schema=\(schema)"))
        let store = try other.addPersistentStore(type: .postgreSQL, configuration: nil, at: url)
        defer {
            try? other.remove(store)
            _ = try? Server.connection().command("DROP SCHEMA \"\(schema)\" CASCADE")
        }
        let (migrating, observer) = (try pinned.direct(), try pinned.direct())
        // A migration in another program does the same: it moves rows to other tables, and writes another model into
        // the metadata.
        try migrating.command(
            """
            BEGIN; LOCK TABLE strata_store, city IN ACCESS EXCLUSIVE MODE; CREATE TABLE city_new AS SELECT * FROM city;
            DROP TABLE city CASCADE; ALTER TABLE city_new RENAME TO city;
            UPDATE strata_store SET metadata = (SELECT metadata FROM "\(schema)".strata_store)
            """
        )
        pinned.database.pool.closeIdle()
        let pinning = Errand { try pinned.version().read { try $0.query(Self.count).firstInt64 } }
        try wait {
            let sql = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'strata_store'::regclass"
            return (try? observer.query(sql).rowCount) == 1
        }
        try migrating.command("COMMIT")
        let error = expectThrows(CocoaError.self) { try pinning.wait() }
        expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
    }

    @Test func `a version is read on a connection that has statements from before a column was altered`() throws {
        let pinned = try PinnedStack()
        let context = pinned.stack.context()
        let venue = try context.performAndWait {
            let venue = context.insert("Venue", ["name": "Bar", "price": 7])
            try context.save()
            return venue.objectID
        }
        func price(_ context: NSManagedObjectContext) throws -> Int? {
            try context.performAndWait {
                context.reset()
                return try context.existingObject(with: venue).value(forKey: "price") as? Int
            }
        }
        // The value must come from the database, and not from cached rows.
        let other = pinned.stack.context()
        other.stalenessInterval = 0
        try expectEqual(price(other), 7)
        try pinned.direct().command("ALTER TABLE venue ALTER price TYPE integer")
        try pinned.stack.insert("Rome")
        try other.performAndWait { try other.setQueryGenerationFrom(.current) }
        try expectEqual(price(other), 7)
    }

    // MARK: - The end

    @Test func `a version that was released ends its transaction, and cannot be read any more`() throws {
        let pinned = try PinnedStack()
        let version = try pinned.version()
        try expectEqual(pinned.holders(), 1)
        version.end()
        try wait { (try? pinned.holders()) == 0 }
        expectGone("removed from its coordinator") { try version.read { _ in } }

        // A read that is under way still succeeds.
        let other = try pinned.version()
        try other.read { held in
            other.end()
            expectGone("removed from its coordinator") { try other.read { _ in } }
            try expectEqual(held.query(Self.count).firstInt64, 0)
            try expectEqual(pinned.holders(), 1)
        }
        try wait { (try? pinned.holders()) == 0 }
        expectGone("removed from its coordinator") { try other.read { _ in } }
    }

    @Test func `a version that is read again and again is given up at its age, and its transaction ends`() throws {
        let pinned = try PinnedStack()
        let version = try pinned.version(ageLimit: 0.5)
        expectGone("older than the 0.5 s that NSPostgreSQLPinnedVersionAgeOption allows") {
            let end = ContinuousClock.now + .seconds(30)
            while ContinuousClock.now < end { try version.read { _ in } }
        }
        try wait { (try? pinned.holders()) == 0 }
        expectGone("older than the 0.5 s") { try version.read { _ in } }
    }

    @Test func `the server lets go by itself of an old version that is not read`() throws {
        let pinned = try PinnedStack()
        let version = try pinned.version(ageLimit: 0.5)
        try wait { (try? pinned.holders()) == 0 }
        expectGone("older than the 0.5 s") { try version.read { _ in } }
    }

    @Test func `an old version whose session the server has just ended is too old all the same`() throws {
        let pinned = try PinnedStack()
        let version = try pinned.version(ageLimit: 0.1)
        let end = ContinuousClock.now + .seconds(0.1)
        expectGone("older than the 0.1 s") {
            try version.read { held in
                try wait { ContinuousClock.now >= end }
                try self.end(held.serverProcess)
                try held.query(Self.count)
            }
        }
    }

    @Test func `a read does not put off the moment at which the server lets go`() throws {
        let pinned = try PinnedStack()
        let version = try pinned.version(ageLimit: 600)
        func milliseconds() throws -> Int64? {
            try version.read { connection in
                try connection.query(
                    "SELECT setting::bigint FROM pg_catalog.pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
                ).firstInt64
            }
        }
        try expect(require(milliseconds()) > 590_000)
        try wait { (try? milliseconds()).flatMap { $0 }.map { $0 < 599_999 } == true }
        // A read that fails does not put it off either, though it sets the server's time limit again.
        let before = try require(milliseconds())
        expectThrows(PostgreSQLError.self) {
            try version.read { connection in
                let later = ContinuousClock.now + .milliseconds(20)
                try wait { ContinuousClock.now >= later }
                try connection.query("SELECT 1/0")
            }
        }
        try expect(require(milliseconds()) <= before - 20)
        // Without an age limit the server does not end it.
        let other = try pinned.version()
        let setting = try other.read { connection in
            try connection.command("SHOW idle_in_transaction_session_timeout")[0].optionalString(0)
        }
        expectEqual(setting, "0")
    }

    // MARK: - Options

    @Test func `a pinned context reads until its version is as old as the option says`() throws {
        let pinned = try PinnedStack([NSPostgreSQLPinnedVersionAgeOption: 0.5])
        try pinned.stack.insert("Rome")
        let context = pinned.stack.context()
        try context.performAndWait { try context.setQueryGenerationFrom(.current) }
        expectGone("NSPostgreSQLPinnedVersionAgeOption allows. Pin the context anew") {
            let end = ContinuousClock.now + .seconds(30)
            while ContinuousClock.now < end { try expectEqual(Cities.fetched(context), ["Rome"]) }
        }
        try context.performAndWait { try context.setQueryGenerationFrom(.current) }
        try expectEqual(Cities.fetched(context), ["Rome"])
    }

    @Test func `no more versions are held than the option allows`() throws {
        let pinned = try PinnedStack([NSPostgreSQLPinnedVersionsOption: 2])
        let contexts = (0..<3).map { _ in pinned.stack.context() }
        func pin(_ context: NSManagedObjectContext) throws {
            try context.performAndWait {
                try context.setQueryGenerationFrom(.current)
                _ = try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "City"))
            }
        }
        for context in contexts.prefix(2) {
            try pin(context)
            try pinned.stack.insert("Rome")
        }
        expectGone("holds 2 versions already") { try pin(contexts[2]) }
        try contexts[0].performAndWait { try contexts[0].setQueryGenerationFrom(nil) }
        try pin(contexts[2])
    }

    @Test func `loops over rows hold versions as well`() async throws {
        let pinned = try PinnedStack([NSPostgreSQLPinnedVersionsOption: 1])
        for _ in 0..<3 { try pinned.stack.insert("Rome") }
        let request = NSFetchRequest<NSManagedObject>(entityName: "City")
        var isFirst = true
        for try await _ in pinned.stack.context().rows(for: request, batchSize: 1) where isFirst {
            isFirst = false
            let other = pinned.stack.context()
            do {
                for try await _ in other.rows(for: request, batchSize: 1) { expect(false, "there are two loops") }
            } catch let error as CocoaError {
                expectEqual(error.code, .persistentStoreOperation)
                expect(error.localizedDescription.contains("holds 1 versions already"))
            }
        }
        expect(!isFirst)
        // The first loop has ended.
        try await expectEqual(Cities.looped(pinned.stack.context()).count, 3)
    }

    @Test func `versions that others are about to hold count as well`() throws {
        let pinned = try PinnedStack([NSPostgreSQLPinnedVersionsOption: 1, NSPersistentStoreTimeoutOption: 10.0])
        let contexts = (0..<2).map { _ in pinned.stack.context() }
        @Sendable func pin(_ context: NSManagedObjectContext) throws {
            try context.performAndWait {
                try context.setQueryGenerationFrom(.current)
                _ = try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "City"))
            }
        }
        // A context that is about to hold a version reads the store's metadata.
        let session = try pinned.direct()
        try session.command("BEGIN; LOCK TABLE strata_store IN ACCESS EXCLUSIVE MODE")
        let first = onThread { try pin(contexts[0]) }
        let waiting = "SELECT 1 FROM pg_catalog.pg_locks WHERE NOT granted AND relation = 'strata_store'::regclass"
        try wait { (try? session.query(waiting).rowCount > 0) == true }
        expectGone("holds 1 versions already") { try pin(contexts[1]) }
        try session.command("COMMIT")
        try first.join()
        try contexts[0].performAndWait { try contexts[0].setQueryGenerationFrom(nil) }
        try pin(contexts[1])
    }

    // MARK: - Commits in doubt

    /// The outcome of a commit of a transaction that has written a city, once the server was started again.
    @Test(arguments: ["there", "gone", "somebody else's", "yet to come", "the same run"])
    func `after a crash a number alone proves no commit, as another transaction may have it`(_ fate: String) throws {
        let pinned = try PinnedStack([NSPersistentStoreTimeoutOption: 1.0])
        let session = try pinned.database.pool.open()
        try session.command("BEGIN")
        var begun = try session.query("SELECT pg_catalog.pg_current_xact_id()::text, pg_catalog.pg_backend_pid()")
        if fate != "gone", fate != "the same run" {
            try session.command(
                "INSERT INTO city (strata_id, strata_entity, strata_version, name) SELECT 7, 1, 1, 'Rome'"
            )
        }
        try session.command("COMMIT")
        if fate == "somebody else's" { try session.command("UPDATE city SET strata_version = 2") }
        if fate == "yet to come" {
            begun = try session.query(
                "SELECT (pg_catalog.pg_current_xact_id()::text::bigint + 1000000)::text, pg_catalog.pg_backend_pid()"
            )
        }
        let city = try require(pinned.database.mapping.entities.first { $0.layout.name == "City" })
        let witness = WrittenRow(
            table: city.table,
            naming: pinned.database.naming,
            key: 7,
            deed: .inserted,
            version: 1
        )
        if fate != "the same run" { session.serverRun = ServerRun(start: "", processes: []) }
        let mark = CommitMark(begun: begun, on: session, identifier: UUID(), isRecorded: false, witness: witness)
        let lost = PostgreSQLError(.connection, "the answer did not come")
        switch fate {
        case "there", "the same run": try mark.resolve(in: pinned.database, after: lost)
        case "somebody else's", "gone":
            expectThrows(SaveInDoubt.self) { try mark.resolve(in: pinned.database, after: lost) }
        default:
            // The save is made again.
            let error = expectThrows(PostgreSQLError.self) { try mark.resolve(in: pinned.database, after: lost) }
            expectEqual(error?.kind, .rolledBack)
        }
    }

    // MARK: - Replicas

    @Test func `readers of a replica's version are beside each other on the replica, for as long as the option says`()
        throws
    {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let stack = try ServerStack(
            primary.url,
            [NSPostgreSQLReplicasOption: [replica.url], NSPostgreSQLReplicaWaitOption: 60.0]
        )
        try stack.insert("Rome")
        let database = try stack.database
        let version = try PinnedPostgreSQLVersion.newest(database, mayBeReplica: true)
        expect(version.isOfReplica)
        try stack.insert("Oslo")
        try replica.catchUp(with: primary)
        try version.read { held in
            let seen = Noted<(Int32, [Int64])>()
            try onThread {
                try version.read { connection in
                    let row = try connection.query(
                        "SELECT pg_catalog.count(*), pg_catalog.pg_is_in_recovery() FROM city"
                    )[0]
                    seen.note((connection.serverProcess, [row.int64(0), row.int64(1)]))
                }
            }.join()
            let (process, told) = try require(seen.noted)
            expect(process != held.serverProcess)
            expectEqual(told, [1, 1])
        }
        let old = try PinnedPostgreSQLVersion.newest(database, mayBeReplica: true, ageLimit: 0.5)
        expect(old.isOfReplica)
        let session = try replica.connection()
        try wait { (try? PinnedStack.holders(session)) == 1 }
        expectGone("older than the 0.5 s") { try old.read { _ in } }
        try version.read { try expectEqual($0.query(Self.count).firstInt64, 1) }
    }
}
