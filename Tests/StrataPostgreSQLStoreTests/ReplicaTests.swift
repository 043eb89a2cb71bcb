import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataRows
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("PostgreSQL stores with replicas", .enabled(if: Server.isThere))
struct ReplicaTests {
    /// Options that name a replica, and that allow waiting for it as long as a slow machine needs.
    private func following(_ url: URL, wait: Double = 60) -> [String: Any] {
        [NSPostgreSQLReplicasOption: [url], NSPostgreSQLReplicaWaitOption: wait]
    }

    /// Stops a replica at its current state.
    private func pause(_ replica: PrivateServer) throws {
        let connection = try replica.connection()
        try connection.command("SELECT pg_wal_replay_pause()")
        // The replica pauses after its current record.
        try waitUntil {
            try connection.query("SELECT 1 WHERE pg_get_wal_replay_pause_state() = 'paused'").rowCount > 0
        }
    }

    @Test func `pinned contexts, loops and asynchronous fetches of contexts that opt in are answered by the replica`()
        async throws
    {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let stack = try ServerStack(primary.url, following(replica.url))
        let others = try ServerStack(primary.url)
        let reader = stack.context(readsFromReplicas: true)
        try stack.insert("Rome")
        // The read waits until the replica has this store's save.
        try await expectEqual(Cities.awaited(reader), ["Rome"])
        let pinned = stack.context(readsFromReplicas: true)
        try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
        try expectEqual(Cities.fetched(pinned), ["Rome"])

        try pause(replica)
        try others.insert("Oslo")
        try await expectEqual(Cities.awaited(reader), ["Rome"])
        try await expectEqual(Cities.looped(reader), ["Rome"])
        let later = stack.context(readsFromReplicas: true)
        try later.performAndWait { try later.setQueryGenerationFrom(.current) }
        try expectEqual(Cities.fetched(later), ["Rome"])
        try await expectEqual(Cities.awaited(later), ["Rome"])
        // All other reads go to the primary.
        try expectEqual(Cities.fetched(reader), ["Oslo", "Rome"])
        let plain = stack.context()
        try await expectEqual(Cities.awaited(plain), ["Oslo", "Rome"])
        try await expectEqual(Cities.looped(plain), ["Oslo", "Rome"])

        try replica.connection().command("SELECT pg_wal_replay_resume()")
        try expectEqual(Cities.fetched(pinned), ["Rome"])
        try stack.insert("Bern")
        try await expectEqual(Cities.awaited(reader), ["Bern", "Oslo", "Rome"])
    }

    @Test func `a replica that has everything answers, though the primary has begun a page of its log`() async throws {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        // The wait is too short for the primary to write to its log by itself, which it does every 15 seconds.
        let stack = try ServerStack(primary.url, following(replica.url, wait: 10))
        let others = try ServerStack(primary.url)
        let reader = stack.context(readsFromReplicas: true)
        try stack.insert("Rome")
        try await expectEqual(Cities.awaited(reader), ["Rome"])
        try stack.insert("Oslo")
        try primary.connection().command("SELECT pg_switch_wal()")
        try await expectEqual(Cities.awaited(reader), ["Oslo", "Rome"])
        // The replica has answered: from here on only the primary knows of the new city, and the read does not show
        // it.
        try pause(replica)
        try others.insert("Bern")
        try await expectEqual(Cities.awaited(reader), ["Oslo", "Rome"])
        try replica.connection().command("SELECT pg_wal_replay_resume()")
    }

    @Test func `a replica that still follows the old primary after a failover is not asked`() async throws {
        let old = try PrivateServer()
        let (new, stray) = (try PrivateServer(following: old), try PrivateServer(following: old))
        try ServerStack(old.url).insert("Rome")
        try new.catchUp(with: old)
        try new.promote()
        try waitUntil { try new.text("SELECT pg_is_in_recovery()::text") == "false" }
        // The old primary goes on by itself, and its log grows beyond the new one's.
        let others = try ServerStack(old.url)
        for _ in 0..<50 { try others.insert("Atlantis") }
        try stray.catchUp(with: old)

        let stack = try ServerStack(new.url, following(stray.url, wait: 0.2))
        let reader = stack.context(readsFromReplicas: true)
        try await expectEqual(Cities.awaited(reader), ["Rome"])
        try await expectEqual(Cities.looped(reader), ["Rome"])
        // A replica that follows the new primary is asked.
        let replica = try PrivateServer(following: new)
        let followed = try ServerStack(new.url, following(replica.url))
        let other = followed.context(readsFromReplicas: true)
        try await expectEqual(Cities.awaited(other), ["Rome"])
        try pause(replica)
        try stack.insert("Oslo")
        try await expectEqual(Cities.awaited(other), ["Rome"])
        try replica.connection().command("SELECT pg_wal_replay_resume()")
    }

    @Test func `predicates that SQL cannot say are evaluated with the replica's rows`() async throws {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let stack = try ServerStack(primary.url, following(replica.url))
        let others = try ServerStack(primary.url)
        for name in ["Rome", "Oslo", "Röme"] { try stack.insert(name) }
        let reader = stack.context(readsFromReplicas: true)
        func names(_ context: NSManagedObjectContext, limit: Int = 0) async throws -> [String] {
            let request = NSFetchRequest<NSManagedObject>(entityName: "City")
            request.predicate = NSPredicate(format: "name ==[cd] 'rome'")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.fetchLimit = limit
            return try await context.fetch(request, progress: nil) { cities in
                cities.compactMap { $0.value(forKey: "name") as? String }
            }
        }
        try await expectEqual(names(reader), ["Rome", "Röme"])
        try pause(replica)
        try others.insert("ROME")
        try await expectEqual(names(reader), ["Rome", "Röme"])
        try await expectEqual(names(reader, limit: 1), ["Rome"])
        try await expectEqual(names(stack.context(), limit: 1), ["ROME"])
        try replica.connection().command("SELECT pg_wal_replay_resume()")
    }

    @Test func `what was saved here, or is known of others, is read from the primary while the replica is behind`()
        async throws
    {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let stack = try ServerStack(primary.url, history: true, following(replica.url, wait: 0.05))
        let others = try ServerStack(primary.url, history: true)
        try stack.insert("Rome")
        try replica.catchUp(with: primary)
        let reader = stack.context(readsFromReplicas: true)
        try await expectEqual(Cities.awaited(reader), ["Rome"])
        try pause(replica)
        try stack.insert("Oslo")
        try await expectEqual(Cities.awaited(reader), ["Oslo", "Rome"])
        try await expectEqual(Cities.looped(reader), ["Oslo", "Rome"])
        try reader.performAndWait { try reader.setQueryGenerationFrom(.current) }
        try expectEqual(Cities.fetched(reader), ["Oslo", "Rome"])
        try reader.performAndWait { try reader.setQueryGenerationFrom(nil) }

        // A deleted row does not come back.
        try reader.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "City")
            request.predicate = NSPredicate(format: "name == 'Rome'")
            for city in try reader.fetch(request) { reader.delete(city) }
            try reader.save()
        }
        try await expectEqual(Cities.awaited(reader), ["Oslo"])

        try others.insert("Bern")
        // A context that has read the history knows of the city.
        let start: NSPersistentHistoryToken? = nil
        try reader.performAndWait {
            _ = try reader.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: start))
        }
        try await expectEqual(Cities.awaited(reader), ["Bern", "Oslo"])
        try replica.connection().command("SELECT pg_wal_replay_resume()")
    }

    @Test func `a version that the replica has to give up ends with 134070, and a new one can be had`() async throws {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary, ["max_standby_streaming_delay=0"])
        let stack = try ServerStack(primary.url, following(replica.url))
        for name in ["Rome", "Oslo", "Bern"] { try stack.insert(name) }
        let pinned = stack.context(readsFromReplicas: true)
        try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
        try expectEqual(Cities.fetched(pinned).count, 3)
        let loop = stack.context(readsFromReplicas: true)
        var batches = loop.rows(for: NSFetchRequest<NSManagedObject>(entityName: "City"), batchSize: 1)
            .makeAsyncIterator()
        try await expectEqual(batches.next()?.count, 1)

        // The primary removes rows that the versions need.
        let session = try primary.connection()
        try session.command("DELETE FROM city WHERE name <> 'Rome'")
        try session.command("VACUUM city")
        try replica.catchUp(with: primary)
        let error = expectThrows(CocoaError.self) { try Cities.fetched(pinned) }
        expectEqual(error?.code, .persistentStoreOperation)
        expectEqual(error?.localizedDescription.contains("replica"), true)
        // The loop has given out rows already, so no other version can continue it.
        let loopError = await expectThrows(CocoaError.self) { while try await batches.next() != nil {} }
        expectEqual(loopError?.code, .persistentStoreOperation)

        try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
        try expectEqual(Cities.fetched(pinned), ["Rome"])
    }

    @Test func `a loop whose version goes before its first rows is answered by the primary`() throws {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let stack = try ServerStack(primary.url, following(replica.url))
        for name in ["Rome", "Oslo"] { try stack.insert(name) }
        let model = try require(stack.coordinator.frozenModel)
        var plan = try FetchPlanner(model: model).plan(
            NSFetchRequest<NSManagedObject>(entityName: "City").specification
        )
        let control = FetchControl()
        control.mayReadReplica = true
        plan.control = control
        let store = try require(stack.coordinator.persistentStores.first as? PostgreSQLStore)
        let cursor = try store.engine.cursor(for: plan)
        try replica.halt()
        try expectEqual(cursor.next(10).count, 2)
        try expect(cursor.next(10).isEmpty)
    }

    @Test func `a read that breaks off on the replica is made again on the primary, also when the replica is gone`()
        async throws
    {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let proxy = try FaultProxy(to: replica.url)
        defer { proxy.close() }
        let stack = try ServerStack(primary.url, following(proxy.url))
        for name in ["Rome", "Oslo"] { try stack.insert(name) }
        let reader = stack.context(readsFromReplicas: true)
        // The connection breaks when the rows are there and were counted.
        proxy.arm(.cutBefore)
        let told = Locked<[FetchProgress]>([])
        let request = NSFetchRequest<NSManagedObject>(entityName: "City")
        let count = try await reader.fetch(request, progress: { step in told.withLock { $0.append(step) } }) {
            $0.count
        }
        expectEqual(count, 2)
        expect(proxy.hasStruck)
        expect(told.withLock { $0.last } == FetchProgress(completedRows: 2, expectedRows: 2))

        try replica.halt()
        try await expectEqual(Cities.awaited(stack.context(readsFromReplicas: true)), ["Oslo", "Rome"])
        try await expectEqual(Cities.looped(reader), ["Oslo", "Rome"])
    }

    @Test func `a replica that was promoted is not read from any more`() async throws {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let stack = try ServerStack(primary.url, following(replica.url))
        try stack.insert("Rome")
        let reader = stack.context(readsFromReplicas: true)
        try await expectEqual(Cities.awaited(reader), ["Rome"])
        try replica.promote()
        // The promoted server's new rows do not concern this store.
        try replica.connection().command("UPDATE city SET name = 'Paris'")
        try await expectEqual(Cities.awaited(stack.context(readsFromReplicas: true)), ["Rome"])
        try await expectEqual(Cities.looped(reader), ["Rome"])
        try stack.insert("Oslo")
        try await expectEqual(Cities.awaited(reader), ["Oslo", "Rome"])
    }

    @Test(arguments: ["postgresql://a:secret@db/shop", "mysql://db/shop"])
    func `an option that names no replicas, or has a password, is refused`(_ text: String) throws {
        let server = try require(TestDatabase.url)
        let url = try require(URL(string: "\(server)&schema=never"))
        let error = expectThrows(CocoaError.self) {
            _ = try ServerStack(url, [NSPostgreSQLReplicasOption: [text]])
        }
        expectEqual(error?.code, .persistentStoreOpen)
        expectEqual(error?.localizedDescription.contains("secret"), false)
    }
}
