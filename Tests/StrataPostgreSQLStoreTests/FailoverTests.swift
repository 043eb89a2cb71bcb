import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import Synchronization
import TestSupport
import Testing

@Suite("PostgreSQL stores whose server is replaced by its replica", .enabled(if: Server.isThere))
struct FailoverTests {
    /// A URL that names several hosts.
    private func url(_ hosts: [String]) throws -> URL {
        try require(URL(string: "postgresql:///strata?host=\(hosts.joined(separator: ","))&user=strata&schema=shop"))
    }

    /// A primary that acknowledges a commit only once its replica has it, and that replica.
    private func pair() throws -> (primary: PrivateServer, replica: PrivateServer) {
        let primary = try PrivateServer(["synchronous_commit=on"])
        let replica = try PrivateServer(following: primary)
        let session = try primary.connection()
        try session.command("ALTER SYSTEM SET synchronous_standby_names = '*'")
        try session.command("SELECT pg_reload_conf()")
        try waitUntil {
            try session.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").rowCount > 0
        }
        return (primary, replica)
    }

    @Test func `contexts that save while the primary stops and the replica is promoted lose nothing, and see no error`()
        throws
    {
        let (primary, replica) = try pair()
        let stack = try ServerStack(try url([primary.folder, replica.folder]), history: true)
        let saved = Atomic(0)
        let isEnough = Atomic(false)
        let failures = Locked<[any Error]>([])
        let names = Locked<Set<String>>([])
        let group = DispatchGroup()
        for writer in 0..<3 {
            group.enter()
            Thread.detachNewThread {
                defer { group.leave() }
                var number = 0
                while !isEnough.load(ordering: .acquiring) {
                    let name = "\(writer)-\(number)"
                    do { try stack.insert(name) } catch { return failures.withLock { $0.append(error) } }
                    names.withLock { _ = $0.insert(name) }
                    saved.add(1, ordering: .acquiringAndReleasing)
                    number += 1
                }
            }
        }
        try waitUntil { saved.load(ordering: .acquiring) > 20 }
        try primary.halt()
        try replica.promote()
        let before = saved.load(ordering: .acquiring)
        try waitUntil { saved.load(ordering: .acquiring) > before + 20 || failures.withLock { !$0.isEmpty } }
        isEnough.store(true, ordering: .releasing)
        try require(group.wait(timeout: .now() + 300) == .success)
        expect(failures.withLock { $0 }.isEmpty)
        let found = try replica.connection().query("SELECT name FROM city").rows.map { $0.string(0) }
        expectEqual(found.sorted(), names.withLock { $0 }.sorted())
        try expectEqual(PostgreSQLStore.problems(at: replica.url, GuideModel.make()), [])
    }

    /// The primary's work by the time the connection breaks.
    enum Fate: CaseIterable { case committed, unheard }

    @Test(arguments: Fate.allCases)
    func `a save whose server goes in the middle of it is resolved on the new one, and is there once`(_ fate: Fate)
        throws
    {
        let (primary, replica) = try pair()
        let proxy = try FaultProxy(to: primary.url)
        defer { proxy.close() }
        let stack = try ServerStack(try url([proxy.folder, replica.folder]), history: true)
        try stack.insert("Rome")
        try replica.catchUp(with: primary)
        proxy.closesWithFault.withLock { $0 = true }
        proxy.arm(fate == .committed ? .cutAfter : .cutBefore)
        let save = Errand { try stack.insert("Oslo") }
        try waitUntil { proxy.hasStruck }
        if fate == .committed {
            // The replica has the commit before the primary is stopped.
            let session = try replica.connection()
            try waitUntil { try session.query("SELECT 1 FROM city WHERE name = 'Oslo'").rowCount > 0 }
        }
        try primary.halt()
        try replica.promote()
        let start = ContinuousClock.now
        try save.wait()
        // As soon as a primary answers, long before the question would be given up.
        expect(.now - start < .seconds(20))
        try expectEqual(replica.connection().query("SELECT 1 FROM city WHERE name = 'Oslo'").rowCount, 1)
        try stack.insert("Bern")
        try expectEqual(Cities.fetched(stack.context()), ["Bern", "Oslo", "Rome"])
    }

    @Test func `a server that only follows does not say that a save is not there`() throws {
        let primary = try PrivateServer(["synchronous_commit=on"])
        let replica = try PrivateServer(following: primary)
        let proxy = try FaultProxy(to: primary.url)
        defer { proxy.close() }
        // One name, like an address that moves. It leads to the replica before the replica is promoted.
        let place = PrivateServer.newFolder()
        func lead(to folder: String) throws {
            try FileManager.default.createSymbolicLink(atPath: place + ".new", withDestinationPath: folder)
            try require(rename(place + ".new", place) == 0)
        }
        try lead(to: proxy.folder)
        defer { unlink(place) }
        let stack = try ServerStack(try url([place]), history: true, [NSPersistentStoreTimeoutOption: 5])
        try stack.insert("Rome")
        try replica.catchUp(with: primary)
        let session = try replica.connection()
        try session.command("SELECT pg_wal_replay_pause()")
        try waitUntil { try replica.text("SELECT pg_get_wal_replay_pause_state()") == "paused" }
        proxy.closesWithFault.withLock { $0 = true }
        proxy.arm(.cutAfter)
        let save = Errand { try stack.insert("Oslo") }
        try waitUntil { proxy.hasStruck }
        try lead(to: replica.folder)
        let error = expectThrows(CocoaError.self) { try save.wait() }
        expect(error?.userInfo[NSPersistentStoreSaveInDoubtKey] is UUID)
        try session.command("SELECT pg_wal_replay_resume()")
        try replica.catchUp(with: primary)
        try primary.halt()
        try replica.promote()
        try expectEqual(stack.cities(), ["Oslo", "Rome"])
    }

    /// The change of a save whose outcome was not reported.
    enum Deed: CaseIterable { case insert, update, delete }

    @Test(arguments: Deed.allCases, Fate.allCases)
    func `without a history the rows on the new server show what has become of a save`(_ deed: Deed, _ fate: Fate)
        throws
    {
        let (primary, replica) = try pair()
        let proxy = try FaultProxy(to: primary.url)
        defer { proxy.close() }
        let stack = try ServerStack(try url([proxy.folder, replica.folder]))
        try stack.insert("Rome")
        try replica.catchUp(with: primary)
        proxy.closesWithFault.withLock { $0 = true }
        proxy.arm(fate == .committed ? .cutAfter : .cutBefore)
        let save = Errand {
            let context = stack.context()
            try context.performAndWait {
                let city = try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
                switch deed {
                case .insert: try stack.insert("Oslo")
                case .update: city.setValue("Oslo", forKey: "name")
                case .delete: context.delete(city)
                }
                try context.save()
            }
        }
        try waitUntil { proxy.hasStruck }
        let after = deed == .insert ? "Oslo,Rome" : deed == .update ? "Oslo" : ""
        let sql = "SELECT coalesce(string_agg(name, ',' ORDER BY name), '') FROM city"
        if fate == .committed { try waitUntil { try replica.text(sql) == after } }
        try primary.halt()
        try replica.promote()
        // The new server gives others the numbers that the old one would have given to this save.
        let session = try replica.connection()
        for _ in 0..<20 { try session.command("SELECT pg_current_xact_id()") }
        if deed == .delete, fate == .committed {
            // Others may also have deleted the row, so the outcome stays unknown.
            let error = expectThrows(CocoaError.self) { try save.wait() }
            expect(error?.userInfo[NSPersistentStoreSaveInDoubtKey] is UUID)
        } else {
            try save.wait()
        }
        try expectEqual(replica.text(sql), after)
    }

    @Test(arguments: Fate.allCases, [true, false])
    func `the save after one in doubt looks for that one, and stores nothing twice`(
        _ fate: Fate,
        history: Bool
    ) throws {
        let server = try PrivateServer()
        let proxy = try FaultProxy(to: server.url)
        defer { proxy.close() }
        // With a second session, a save could ask what has become of its commit although the proxy is closed.
        let options: [String: Any] = [NSPersistentStoreTimeoutOption: 2, NSPersistentStoreConnectionPoolMaxSizeKey: 1]
        let stack = try ServerStack(proxy.url, history: history, options)
        try stack.insert("Rome")
        let context = stack.context()
        try context.performAndWait {
            func insert(_ name: String) -> NSManagedObject {
                let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                city.setValue(name, forKey: "name")
                return city
            }
            let oslo = insert("Oslo")
            let rome = try require(
                context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first { $0 !== oslo }
            )
            rome.setValue(3, forKey: "population")
            // The transactions so far get their numbers now, so that the fault does not strike a COMMIT of the numbering.
            _ = stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
            proxy.closesWithFault.withLock { $0 = true }
            proxy.arm(fate == .committed ? .cutAfter : .cutBefore)
            let first = expectThrows(CocoaError.self) { try context.save() }
            let second = expectThrows(CocoaError.self) { try context.save() }
            let identifier = try require(first?.userInfo[NSPersistentStoreSaveInDoubtKey] as? UUID)
            expectEqual(second?.userInfo[NSPersistentStoreSaveInDoubtKey] as? UUID, identifier)
            proxy.setOpen(true)
            oslo.setValue(5, forKey: "population")
            _ = insert("Bern")
            try context.save()
            expect(!context.hasChanges && !oslo.objectID.isTemporaryID)
        }
        try expectEqual(
            server.text("SELECT string_agg(name || population, ',' ORDER BY name) FROM city"),
            "Bern0,Oslo5,Rome3"
        )
        try expectEqual(stack.cities(), ["Bern", "Oslo", "Rome"])
        try expectEqual(PostgreSQLStore.problems(at: server.url, GuideModel.make()), [])
    }

    @Test func `a server that is started again is waited for, though the URL names no other one`() throws {
        let server = try PrivateServer(["synchronous_commit=on"])
        let stack = try ServerStack(server.url, [NSPersistentStoreTimeoutOption: 120])
        try stack.insert("Rome")
        try server.halt()
        let save = Errand { try stack.insert("Oslo") }
        let read = Errand { try stack.cities() }
        usleep(300_000)
        try server.resume()
        try save.wait()
        expect(try read.wait().contains("Rome"))
        try expectEqual(stack.cities(), ["Oslo", "Rome"])
    }

    @Test func `a server that is not there ends a save once the time-out is over`() throws {
        let server = try PrivateServer(["synchronous_commit=on"])
        let stack = try ServerStack(server.url, [NSPersistentStoreTimeoutOption: 1])
        try stack.insert("Rome")
        try server.halt()
        let start = ContinuousClock.now
        expectEqual(expectThrows(CocoaError.self) { try stack.insert("Oslo") }?.code, .persistentStoreSave)
        expect(.now - start > .seconds(0.5) && .now - start < .seconds(60))
        // A new store, which has not seen the server before, gets the error at once.
        let error = expectThrows(CocoaError.self) { _ = try ServerStack(server.url) }
        expectEqual(error?.code, .persistentStoreOpen)
        try server.resume()
        try expectEqual(stack.cities(), ["Rome"])
    }

    @Test func `an old primary that is silent keeps no store from the new one`() throws {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let proxy = try FaultProxy(to: primary.url)
        defer { proxy.close() }
        let stack = try ServerStack(try url([proxy.folder, replica.folder]), [NSPersistentStoreTimeoutOption: 100])
        try stack.insert("Rome")
        try replica.catchUp(with: primary)
        let before = proxy.callers.withLock { $0 }
        proxy.setOpen(false)
        proxy.isSilent.withLock { $0 = true }
        proxy.setOpen(true)
        let save = Errand { try stack.insert("Oslo") }
        try waitUntil { proxy.callers.withLock { $0 } >= before + 2 }
        let start = ContinuousClock.now
        try replica.promote()
        try save.wait()
        expect(.now - start < .seconds(40))
        try expectEqual(replica.text("SELECT string_agg(name, ',' ORDER BY name) FROM city"), "Oslo,Rome")
    }

    @Test func `a server whose place another has taken is not written to any more`() throws {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let proxy = try FaultProxy(to: primary.url)
        defer { proxy.close() }
        let stack = try ServerStack(
            try url([proxy.folder, replica.folder]),
            [NSPersistentStoreTimeoutOption: 3]
        )
        try stack.insert("Rome")
        try replica.catchUp(with: primary)
        proxy.setOpen(false)
        try replica.promote()
        try stack.insert("Oslo")
        // The old primary is back, and comes first in the URL. All sessions of the new one are gone.
        proxy.setOpen(true)
        let session = try replica.connection()
        try session.command(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        try stack.insert("Bern")
        try expectEqual(primary.text("SELECT string_agg(name, ',') FROM city"), "Rome")
        try expectEqual(Cities.fetched(stack.context()), ["Bern", "Oslo", "Rome"])
    }

    @Test func `after a failover that has lost a save another save has its number, and is followed`()
        async throws
    {
        let primary = try PrivateServer(["synchronous_commit=on"])
        let replica = try PrivateServer(following: primary)
        let stack = try ServerStack(
            try url([primary.folder, replica.folder]),
            history: true,
            [NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
        )
        try stack.insert("Rome")
        let context = stack.context()
        let city = try context.performAndWait {
            try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
        }
        func name() -> String? { context.performAndWait { city.value(forKey: "name") as? String } }
        expectEqual(name(), "Rome")
        let token = stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
        try replica.catchUp(with: primary)
        try replica.halt()
        // The replica never gets this save, which has a number already.
        try stack.insert("Oslo")
        try context.performAndWait {
            _ = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
        }
        try primary.halt()
        try replica.resume()
        try replica.promote()
        let others = try ServerStack(replica.url, history: true)
        let writer = others.context()
        try writer.performAndWait {
            let city = try require(writer.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
            city.setValue("Roma", forKey: "name")
            try writer.save()
        }
        let follower = try stack.coordinator.followRemoteChanges(into: [context], after: token)
        defer { follower.stop() }
        try await follower.catchUp()
        expectEqual(name(), "Roma")
    }

    @Test(arguments: [false, true])
    func `a follower finds that a failover has lost a save whose number is given once more`(_ isPurged: Bool)
        throws
    {
        let primary = try PrivateServer(["synchronous_commit=on"])
        let replica = try PrivateServer(following: primary)
        let proxy = try FaultProxy(to: replica.url)
        defer { proxy.close() }
        let stack = try ServerStack(
            try url([primary.folder, proxy.folder]),
            history: true,
            [NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
        )
        try stack.insert("Rome")
        let context = stack.context()
        let city = try context.performAndWait {
            try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
        }
        func name() -> String? { context.performAndWait { city.value(forKey: "name") as? String } }
        expectEqual(name(), "Rome")
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        defer { follower.stop() }
        _ = stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
        try replica.catchUp(with: primary)
        try replica.halt()
        // The replica never gets this save.
        try stack.insert("Oslo")
        try waitUntil { follower.token.transactionNumbers.values.contains(2) }
        proxy.setOpen(false)
        try primary.halt()
        try replica.resume()
        try replica.promote()
        // This save gets the same number before the store has found the new server.
        let others = try ServerStack(replica.url, history: true)
        try others.rename("Roma")
        let newest = try require(others.coordinator.currentPersistentHistoryToken(fromStores: nil))
        expectEqual(Array(newest.transactionNumbers.values), [2])
        if isPurged {
            // Nothing is left to distinguish the two saves.
            try replica.connection().command("DELETE FROM strata_change; DELETE FROM strata_transaction")
        }
        proxy.setOpen(true)
        try waitUntil { name() == "Roma" }
    }

    @Test func `a history token of a save that a failover has lost has expired, though others have its number`() throws
    {
        let primary = try PrivateServer(["synchronous_commit=on"])
        let replica = try PrivateServer(following: primary)
        let stack = try ServerStack(primary.url, history: true)
        try stack.insert("Rome")
        let before = try require(stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
        try replica.catchUp(with: primary)
        try replica.halt()
        try stack.insert("Oslo")
        let token = try require(stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
        let transactions = try changes(of: stack, after: before)
        try primary.halt()
        try replica.resume()
        try replica.promote()
        let others = try ServerStack(replica.url, history: true)
        for name in ["Bern", "Riga", "Bonn"] { try others.insert(name) }
        // The token has expired in whatever way it was passed on.
        let archived = try NSKeyedUnarchiver.unarchivedObject(
            ofClass: NSPersistentHistoryToken.self,
            from: NSKeyedArchiver.archivedData(withRootObject: token, requiringSecureCoding: true)
        )
        let encoded = try JSONDecoder().decode(NSPersistentHistoryToken.self, from: JSONEncoder().encode(token))
        let told = try require(transactions.last).token
        for lost in try [token, require(archived), encoded, told, before.advanced(to: token)] {
            let error = expectThrows(CocoaError.self) { try changes(of: others, after: lost) }
            expectEqual(error?.code.rawValue, NSPersistentHistoryTokenExpiredError)
            let consumer = expectThrows(CocoaError.self) {
                try others.coordinator.setPersistentHistoryToken(lost, forConsumer: "index")
            }
            expectEqual(consumer?.code.rawValue, NSPersistentHistoryTokenExpiredError)
        }
        // A token whose save is not lost is accepted, and so is one that does not say which save it is.
        try expectEqual(changes(of: others, after: before).count, 3)
        let plain = NSPersistentHistoryToken(transactionNumbers: token.transactionNumbers)
        try expectEqual(changes(of: others, after: plain).count, 2)
        // From here on the history cannot distinguish them.
        let newest = others.coordinator.currentPersistentHistoryToken(fromStores: nil)
        let context = others.context()
        try context.performAndWait {
            _ = try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: newest))
        }
        try expectEqual(changes(of: others, after: newest).count, 0)
    }

    /// The transactions of a history after a place.
    @discardableResult
    private func changes(of stack: ServerStack, after token: NSPersistentHistoryToken?) throws
        -> [NSPersistentHistoryTransaction]
    {
        let context = stack.context()
        return try context.performAndWait {
            let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
            return try require((result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction])
        }
    }

    @Test func `a watcher leaves the old server as soon as any context has found the new one`() throws {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let proxy = try FaultProxy(to: primary.url)
        defer { proxy.close() }
        let stack = try ServerStack(
            try url([proxy.folder, replica.folder]),
            history: true,
            [NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
        )
        try stack.insert("Rome")
        try replica.catchUp(with: primary)
        try stack.lookOnlyWhenTold()
        let told = Atomic(0)
        let token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: stack.coordinator,
            queue: nil
        ) { _ in told.add(1, ordering: .releasing) }
        defer { NotificationCenter.default.removeObserver(token) }
        // Only the watcher still reaches the old server, which lets no other connection in.
        proxy.isSilent.withLock { $0 = true }
        try primary.connection().command(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
            AND query NOT LIKE '%strata_history%' AND query NOT LIKE '%strata_transaction%'
            """
        )
        try replica.promote()
        let before = told.load(ordering: .acquiring)
        try expectEqual(stack.cities(), ["Rome"])
        try waitUntil { told.load(ordering: .acquiring) > before }
    }

    @Test func `a save that no standby has confirmed is in doubt when its connection breaks`() throws {
        let (primary, replica) = try pair()
        let proxy = try FaultProxy(to: primary.url)
        defer { proxy.close() }
        let stack = try ServerStack(try url([proxy.folder]), history: true, [NSPersistentStoreTimeoutOption: 5])
        try stack.insert("Rome")
        try replica.halt()
        proxy.arm(.cutAfter)
        let error = expectThrows(CocoaError.self) { try stack.insert("Oslo") }
        expect(proxy.hasStruck)
        expectEqual(error?.code, .persistentStoreSave)
        let identifier = try require(error?.userInfo[NSPersistentStoreSaveInDoubtKey] as? UUID)
        // The primary completes the commit once the standby is back and has it.
        try replica.resume()
        let session = try primary.connection()
        try waitUntil {
            try session.query("SELECT 1 FROM strata_transaction WHERE id = $1", [.uuid(identifier)]).rowCount > 0
        }
        try expectEqual(stack.cities(), ["Oslo", "Rome"])
    }

    @Test func `a role that is locked out gets the error at once, though there are several hosts`() throws {
        let server = try PrivateServer()
        let session = try server.connection()
        try session.command("CREATE ROLE guide LOGIN; GRANT CREATE ON DATABASE strata TO guide")
        let hosts = try url([server.folder, server.folder])
        let place = try require(URL(string: hosts.absoluteString.replacing("user=strata", with: "user=guide")))
        let stack = try ServerStack(place, [NSPersistentStoreTimeoutOption: 120])
        try stack.insert("Rome")
        try session.command("ALTER ROLE guide NOLOGIN")
        try session.command(
            "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE usename = 'guide'"
        )
        let start = ContinuousClock.now
        let error = expectThrows(CocoaError.self) { try stack.insert("Oslo") }
        expectEqual((error?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "28000")
        expect(.now - start < .seconds(60))
    }

    @Test func `a host is waited for as long as the URL says`() throws {
        let silent = try FaultProxy()
        defer { silent.close() }
        silent.isSilent.withLock { $0 = true }
        let place = try url([silent.folder]).absoluteString + "&connect_timeout=1"
        let start = ContinuousClock.now
        let error = expectThrows(CocoaError.self) {
            _ = try ServerStack(require(URL(string: place)), [NSPersistentStoreTimeoutOption: 120])
        }
        expect(error != nil && .now - start < .seconds(60))
    }

    @Test func `a host that lets in and then says nothing does not keep a store from the next one`() throws {
        let server = try PrivateServer()
        let silent = try FaultProxy(to: server.url)
        defer { silent.close() }
        // The silence strikes at the first query of the store.
        silent.arm(.silence, at: "pg_backend_pid")
        let place = try url([silent.folder, server.folder])
        let stack = try ServerStack(place, [NSPersistentStoreTimeoutOption: 4])
        expect(silent.hasStruck)
        try stack.insert("Rome")
        // Later stores do not ask this host again.
        silent.arm(.silence, at: "pg_backend_pid")
        try expectEqual(ServerStack(place).cities(), ["Rome"])
        expect(!silent.hasStruck)
        try expectEqual(server.text("SELECT name FROM city"), "Rome")
    }

    @Test func `a save goes over to the new server when the old one takes no more writes`() throws {
        let (primary, replica) = try pair()
        // The server notifies its oldest session last of the new settings.
        let session = try primary.connection()
        let stack = try ServerStack(try url([primary.folder, replica.folder]), history: true)
        try stack.insert("Rome")
        try replica.catchUp(with: primary)
        try session.command("ALTER SYSTEM SET default_transaction_read_only = on")
        try session.command("SELECT pg_reload_conf()")
        try waitUntil { try session.command("SHOW default_transaction_read_only")[0].string(0) == "on" }
        try replica.promote()
        try stack.insert("Oslo")
        try expectEqual(replica.text("SELECT string_agg(name, ',' ORDER BY name) FROM city"), "Oslo,Rome")
        try expectEqual(primary.text("SELECT string_agg(name, ',' ORDER BY name) FROM city"), "Rome")
    }

    @Test func `a host that is silent does not keep a store from the next one`() throws {
        let server = try PrivateServer()
        // A socket that accepts connections, and never sends anything.
        let silent = try FaultProxy(to: server.url)
        defer { silent.close() }
        silent.isSilent.withLock { $0 = true }
        let stack = try ServerStack(
            try url([silent.folder, server.folder]),
            [NSPersistentStoreTimeoutOption: 4]
        )
        try stack.insert("Rome")
        try expectEqual(Cities.fetched(stack.context()), ["Rome"])
        // Later stores do not wait for this host again.
        let others = try ServerStack(try url([silent.folder, server.folder]))
        try expectEqual(Cities.fetched(others.context()), ["Rome"])
        expectEqual(silent.callers.withLock { $0 }, 1)
    }
}
