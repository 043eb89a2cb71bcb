import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import StrataPostgreSQLStore
import TestSupport
import Testing

/// A store behind a proxy, in a separate schema, and a context on it.
private final class FaultyStack {
    let proxy: FaultProxy
    let url: URL
    let coordinator: NSPersistentStoreCoordinator
    let context: NSManagedObjectContext
    private let schema = "fault_" + String(UInt64.random(in: 0 ... .max), radix: 36)

    init(timeout: Double = 5, history: Bool = false) throws {
        proxy = try FaultProxy()
        url = try require(URL(string: "\(proxy.url.absoluteString)&schema=\(schema)"))
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try coordinator.addPersistentStore(
            type: .postgreSQL,
            configuration: nil,
            at: url,
            options: [NSPersistentStoreTimeoutOption: timeout, NSPersistentHistoryTrackingKey: history]
        )
        context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
    }

    deinit {
        for store in coordinator.persistentStores { try? coordinator.remove(store) }
        proxy.close()
        if let direct = try? direct() { _ = try? direct.command("DROP SCHEMA \"\(schema)\" CASCADE") }
    }

    /// A connection that bypasses the proxy.
    func direct() throws -> Connection {
        let url = try require(TestDatabase.url)
        let target = try ConnectionTarget(require(URL(string: "\(url.absoluteString)&schema=\(schema)")))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \"\(schema)\"")
        return connection
    }

    /// The number of rows for a city in the database.
    func count(_ name: String) throws -> Int64? {
        try direct().query("SELECT count(*) FROM city WHERE name = $1", [.text(name)]).firstInt64
    }

    func insert(_ name: String) {
        context.performAndWait {
            NSEntityDescription.insertNewObject(forEntityName: "City", into: context).setValue(name, forKey: "name")
        }
    }

    func save() throws { try context.performAndWait { try context.save() } }

    func names() throws -> [String] {
        try context.performAndWait {
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City"))
                .compactMap { $0.value(forKey: "name") as? String }.sorted()
        }
    }
}

@Suite("PostgreSQL stores whose connections break", .enabled(if: Server.isThere))
struct FaultTests {
    @Test(arguments: [false, true])
    func `a save whose answer is lost is found to be there`(_ history: Bool) throws {
        let stack = try FaultyStack(history: history)
        stack.insert("Rome")
        stack.proxy.arm(.cutAfter)
        try stack.save()
        expect(stack.proxy.hasStruck)
        try expectEqual(stack.count("Rome"), 1)
        // The context goes on as after any other save.
        stack.insert("Oslo")
        try stack.save()
        try expectEqual(stack.names(), ["Oslo", "Rome"])
    }

    @Test(arguments: [false, true])
    func `a save that the server itself does not know the end of is looked for, and is there once`(_ history: Bool)
        throws
    {
        let stack = try FaultyStack(history: history)
        stack.insert("Rome")
        stack.proxy.arm(.doubtAfter)
        try stack.save()
        expect(stack.proxy.hasStruck)
        try expectEqual(stack.count("Rome"), 1)
        stack.insert("Oslo")
        try stack.save()
        try expectEqual(stack.names(), ["Oslo", "Rome"])
    }

    @Test(arguments: [false, true])
    func `a save that never arrived is made again, once`(_ history: Bool) throws {
        let stack = try FaultyStack(history: history)
        stack.insert("Rome")
        stack.proxy.arm(.cutBefore)
        try stack.save()
        expect(stack.proxy.hasStruck)
        try expectEqual(stack.count("Rome"), 1)
    }

    @Test(arguments: [false, true])
    func `a save that the server refuses before the connection breaks is made again, once`(_ history: Bool) throws {
        let stack = try FaultyStack(history: history)
        stack.insert("Rome")
        stack.proxy.arm(.refusedAndCut)
        try stack.save()
        expect(stack.proxy.hasStruck)
        try expectEqual(stack.count("Rome"), 1)
        stack.insert("Oslo")
        try stack.save()
        try expectEqual(stack.names(), ["Oslo", "Rome"])
    }

    @Test func `a save of a block that locks rows is not made again on another session`() throws {
        let stack = try FaultyStack()
        stack.insert("Rome")
        try stack.save()
        let request = NSFetchRequest<NSManagedObject>(entityName: "City")
        request.rowLock = RowLock(.update)
        func rename(_ name: String) throws {
            try stack.context.performAndWait(locking: .seconds(30)) {
                try stack.context.fetch(request).first?.setValue(name, forKey: "name")
                try stack.context.save()
            }
        }
        // The locks are lost with the session.
        stack.proxy.arm(.cutBefore)
        let error = expectThrows(CocoaError.self) { try rename("Roma") }
        expect(stack.proxy.hasStruck)
        expectEqual(error?.code, .persistentStoreSave)
        try expectEqual(stack.count("Roma"), 0)
        stack.context.performAndWait {
            expect(stack.context.hasChanges)
            stack.context.rollback()
        }
        // The server has committed, and says so when it is asked again.
        stack.proxy.arm(.cutAfter)
        try rename("Romulus")
        expect(stack.proxy.hasStruck)
        try expectEqual(stack.count("Romulus"), 1)
    }

    @Test func `a save of a block whose end cannot be found out says so, as any other save does`() throws {
        let stack = try FaultyStack(timeout: 1)
        stack.insert("Rome")
        try stack.save()
        let request = NSFetchRequest<NSManagedObject>(entityName: "City")
        request.rowLock = RowLock(.update)
        let error = expectThrows(CocoaError.self) {
            try stack.context.performAndWait(locking: .seconds(60)) {
                try stack.context.fetch(request).first?.setValue("Roma", forKey: "name")
                stack.proxy.closesWithFault.withLock { $0 = true }
                stack.proxy.arm(.cutAfter)
                try stack.context.save()
            }
        }
        expect(error?.userInfo[NSPersistentStoreSaveInDoubtKey] is UUID, "\(String(describing: error))")
        try expectEqual(stack.count("Roma"), 1)
        expect(stack.context.performAndWait { stack.context.hasChanges })
    }

    @Test func `a save that the network swallows is made again after the time-out, when its session is ended`() throws {
        let stack = try FaultyStack(timeout: 1)
        stack.insert("Rome")
        stack.proxy.arm(.silence)
        try stack.save()
        expect(stack.proxy.hasStruck)
        try expectEqual(stack.count("Rome"), 1)
    }

    @Test func `a save whose end cannot be found out says so, with its identifier`() throws {
        let stack = try FaultyStack(timeout: 1, history: true)
        stack.insert("Rome")
        stack.proxy.closesWithFault.withLock { $0 = true }
        stack.proxy.arm(.cutAfter)
        let error = expectThrows(CocoaError.self) { try stack.save() }
        let identifier = try require(error?.userInfo[NSPersistentStoreSaveInDoubtKey] as? UUID)
        // The identifier shows the outcome once the server can be reached again.
        let found = try stack.direct().query(
            "SELECT count(*) FROM strata_transaction WHERE id = $1",
            [.uuid(identifier)]
        )
        expectEqual(found.firstInt64, 1)
        try expectEqual(stack.count("Rome"), 1)
        expect(stack.context.performAndWait { stack.context.hasChanges })
    }

    @Test func `a batch whose end cannot be found out says so, and what it may have changed is read again`() throws {
        let stack = try FaultyStack(timeout: 1)
        stack.insert("Rome")
        try stack.save()
        stack.proxy.closesWithFault.withLock { $0 = true }
        stack.proxy.arm(.cutAfter)
        let error = expectThrows(CocoaError.self) {
            try stack.context.performAndWait {
                let update = NSBatchUpdateRequest(entityName: "City")
                update.propertiesToUpdate = ["name": "Roma"]
                _ = try stack.context.execute(update)
            }
        }
        expectEqual(error?.code, .persistentStoreSave)
        expect(error?.userInfo[NSPersistentStoreSaveInDoubtKey] is UUID)
        try expectEqual(stack.count("Roma"), 1)
        stack.proxy.setOpen(true)
        let others = NSManagedObjectContext(.privateQueue)
        others.persistentStoreCoordinator = stack.coordinator
        let name = try others.performAndWait {
            let request = NSFetchRequest<NSManagedObjectID>(entityName: "City")
            request.resultType = .managedObjectIDResultType
            let city = try others.object(with: require(others.fetch(request).first))
            return city.value(forKey: "name") as? String
        }
        expectEqual(name, "Roma")
    }

    @Test func `a commit that waits for another session's unique value ends with the time-out, and once`() throws {
        let stack = try FaultyStack(timeout: 2)
        let direct = try stack.direct()
        try direct.command(
            """
            BEGIN;
            INSERT INTO "user" (strata_id, strata_entity, strata_version, email)
            VALUES (-1, (SELECT 7), 1, 'a@example.org')
            """
        )
        // The server is so far away that the client would be the first to give up.
        stack.proxy.delay.withLock { $0 = 20_000 }
        let start = ContinuousClock.now
        let error = expectThrows(CocoaError.self) {
            try stack.context.performAndWait {
                _ = stack.context.insert("User", ["email": "a@example.org"])
                try stack.context.save()
            }
        }
        expectEqual(error?.code, .persistentStoreTimeout)
        expect(.now - start < .seconds(4))
        try direct.command("ROLLBACK")
        try stack.context.performAndWait { try stack.context.save() }
    }

    @Test func `reads and saves do not notice that the server has ended all sessions in between`() throws {
        let stack = try FaultyStack()
        stack.insert("Rome")
        try stack.save()
        for name in ["Oslo", "Bern"] {
            stack.proxy.setOpen(false)
            stack.proxy.setOpen(true)
            stack.insert(name)
            try stack.save()
            stack.proxy.setOpen(false)
            stack.proxy.setOpen(true)
            try expect(stack.names().contains(name))
        }
    }

    @Test func `a session that breaks while it is set up is opened again`() throws {
        let stack = try FaultyStack()
        stack.insert("Rome")
        try stack.save()
        for name in ["Oslo", "Bern"] {
            stack.proxy.setOpen(false)
            stack.proxy.setOpen(true)
            stack.proxy.arm(.cutBefore, at: "idle_in_transaction_session_timeout")
            stack.insert(name)
            try stack.save()
            expect(stack.proxy.hasStruck)
            try expect(stack.names().contains(name))
        }
    }

    @Test func `a save waits while the server recovers from a crash of one of its processes`() throws {
        let server = try PrivateServer(["synchronous_commit=on"])
        let stack = try ServerStack(server.url)
        for number in 0..<5 {
            var victim: Connection?
            // The server may still be recovering from the last crash.
            while victim == nil { victim = try? server.connection() }
            let process = try require(victim).serverProcess
            kill(process, SIGKILL)
            // The server ends all sessions, and accepts none until it has read its log.
            try stack.insert("\(number)")
        }
        try expectEqual(Cities.fetched(stack.context()), ["0", "1", "2", "3", "4"])
    }

    @Test func `a role that may only read opens a store with a history, and reads what others have numbered`() throws {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url, history: true)
        let start = stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
        try stack.insert("Rome")
        // A reader gives the number to this transaction.
        let session = try server.connection()
        try session.command(
            "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA shop TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA shop TO reader"
        )
        try session.command("INSERT INTO strata_transaction (id, time) VALUES (gen_random_uuid(), 0)")
        let url = try require(
            URL(string: server.url.absoluteString.replacing("user=strata", with: "user=reader"))
        )
        let reader = try ServerStack(url, history: true, [NSReadOnlyPersistentStoreOption: true])
        try expectEqual(Cities.fetched(reader.context()), ["Rome"])
        func count(_ stack: ServerStack) throws -> Int {
            let context = stack.context()
            return try context.performAndWait {
                let request = NSPersistentHistoryChangeRequest.fetchHistory(after: start)
                let result = try context.execute(request) as? NSPersistentHistoryResult
                return (result?.result as? [NSPersistentHistoryTransaction])?.count ?? 0
            }
        }
        expect(try count(reader) <= 2)
        try expectEqual(count(stack), 2)
        try expectEqual(count(reader), 2)
        let error = expectThrows(CocoaError.self) { try reader.insert("Oslo") }
        expectEqual(error?.code, .fileWriteNoPermission)
    }

    @Test func `a server that only follows can be opened to read, with its history`() throws {
        let primary = try PrivateServer()
        let replica = try PrivateServer(following: primary)
        let stack = try ServerStack(primary.url, history: true)
        try stack.insert("Rome")
        try primary.connection().command("INSERT INTO strata_transaction (id, time) VALUES (gen_random_uuid(), 0)")
        try replica.catchUp(with: primary)
        let reader = try ServerStack(replica.url, history: true, [NSReadOnlyPersistentStoreOption: true])
        try expectEqual(Cities.fetched(reader.context()), ["Rome"])
    }

    @Test func `a session that stands still is given up at the time-out, and the next one serves`() throws {
        let stack = try FaultyStack(timeout: 1)
        stack.insert("Rome")
        try stack.save()
        _ = try stack.names()
        // All sessions of this store, which no other test uses.
        let processes = try stack.direct().query(
            """
            SELECT DISTINCT l.pid::bigint FROM pg_locks AS l WHERE l.locktype = 'advisory' AND l.classid = 7276
            AND l.objid::bigint = (hashtext(current_schema())::bigint & 4294967295)
            """
        ).rows.map { pid_t($0.int64(0)) }
        expect(!processes.isEmpty)
        for process in processes { kill(process, SIGSTOP) }
        defer { for process in processes { kill(process, SIGCONT) } }
        let error = expectThrows(CocoaError.self) { for _ in processes { _ = try stack.names() } }
        expectEqual(error?.code, .persistentStoreTimeout)
        try expectEqual(stack.names(), ["Rome"])
    }

    @Test func `the server ends what it does for a client that is gone`() throws {
        let stack = try FaultyStack()
        stack.insert("Rome")
        try stack.save()
        let direct = try stack.direct()
        // Older servers, and servers that do not run on Linux, go on with the work.
        let sql =
            "SELECT 1 WHERE current_setting('client_connection_check_interval', true) = '0' AND version() LIKE '%linux%'"
        guard try direct.query(sql).rowCount == 1 else { return }
        // A save has to wait for this trigger, which keeps the server busy for ten minutes.
        try direct.command(
            """
            CREATE FUNCTION dream() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$;
            CREATE TRIGGER dreams BEFORE INSERT ON city FOR EACH ROW EXECUTE FUNCTION dream()
            """
        )
        let dreaming = """
            SELECT pid::bigint FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'city'::regclass)
            """
        let (context, proxy) = (stack.context, stack.proxy)
        let saving = Errand {
            try context.performAndWait {
                _ = context.insert("City", ["name": "Oslo"])
                try context.save()
            }
        }
        try waitUntil { try direct.query(dreaming).rowCount == 1 }
        // This is like killing the process, after which no code cancels anything.
        proxy.setOpen(false)
        expectThrows(CocoaError.self) { try saving.wait() }
        try waitUntil { try direct.query(dreaming).rowCount == 0 }
    }

    @Test func `a refusal by the server is reported without values, also if the connection breaks afterwards`()
        throws
    {
        let proxy = try FaultProxy()
        defer { proxy.close() }
        proxy.lastAnswer.withLock { $0 = "xyzzy-secret" }
        let ways: [(Connection) throws -> Void] = [
            { try $0.command("SELECT pg_temp.refuse()") }, { try $0.query("SELECT pg_temp.refuse()") },
            { try $0.each("SELECT pg_temp.refuse()") { _ in true } },
            { connection in
                try connection.command("BEGIN")
                try connection.post("SELECT 1")
                try connection.post("SELECT pg_temp.refuse()")
                try connection.post("SELECT 2")
                try connection.readPostedAnswers()
            },
        ]
        for way in ways {
            let connection = try Connection.open(ConnectionTarget(proxy.url), timeout: 30)
            // The server must compose the text.
            try connection.command(
                "CREATE FUNCTION pg_temp.refuse() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'bad value %-secret', 'xyzzy'; END $$"
            )
            let error = expectThrows(PostgreSQLError.self) { try way(connection) }
            expectEqual(error?.sqlState, "P0001")
            var text = "\(String(describing: error))"
            dump(error, to: &text)
            expect(!text.contains("xyzzy"), "\(text)")
            expect(connection.isBroken)
        }
        let connection = try Connection.open(ConnectionTarget(proxy.url), timeout: 30)
        let error = expectThrows(PostgreSQLError.self) {
            try connection.copy("COPY \"xyzzy-secret\" FROM STDIN (FORMAT binary)") { _ in }
        }
        expectEqual(error?.sqlState, "42P01")
    }

    @Test func `a session whose texts have another encoding is refused`() throws {
        let proxy = try FaultProxy()
        defer { proxy.close() }
        proxy.lie.withLock { $0 = ("client_encoding\0UTF8", "client_encoding\0EUCX") }
        let error = expectThrows(PostgreSQLError.self) {
            try Connection.open(ConnectionTarget(proxy.url), timeout: 30)
        }
        expectEqual(error?.kind, .misuse)
        expect(error?.message.contains("EUCX") == true, "\(String(describing: error))")
    }

    @Test func `without a server a save fails with the environment's error, and passes when it is back`() throws {
        let stack = try FaultyStack(timeout: 1)
        stack.proxy.setOpen(false)
        stack.insert("Rome")
        let error = expectThrows(CocoaError.self) { try stack.save() }
        expectEqual(error?.code, .persistentStoreSave)
        stack.proxy.setOpen(true)
        try stack.save()
        try expectEqual(stack.count("Rome"), 1)
    }
}
