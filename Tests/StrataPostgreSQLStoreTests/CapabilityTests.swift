import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

/// A server that lacks features of a plain PostgreSQL, for the role `app`: a superuser would not notice missing
/// rights.
private final class LackingServer: Sendable {
    let server: PrivateServer
    let url: URL

    init() throws {
        server = try PrivateServer()
        try server.connection().command("CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE strata TO app")
        url = try require(URL(string: server.url.absoluteString.replacing("user=strata", with: "user=app")))
    }

    func run(_ sql: String) throws { try server.connection().command(sql) }

    /// Replaces one of the server's functions by one that is there but does nothing.
    func replace(_ name: String, _ parameters: String, returning type: String, _ body: String) throws {
        try run(
            """
            ALTER FUNCTION pg_catalog.\(name)(\(parameters)) RENAME TO strata_replaced_\(name);
            CREATE FUNCTION pg_catalog.\(name)(\(parameters)) RETURNS \(type) LANGUAGE sql AS '\(body)'
            """
        )
    }

    func restore(_ name: String, _ parameters: String) throws {
        try run(
            """
            DROP FUNCTION pg_catalog.\(name)(\(parameters));
            ALTER FUNCTION pg_catalog.strata_replaced_\(name)(\(parameters)) RENAME TO \(name)
            """
        )
    }

    /// Expects that the store cannot be opened, and that the error says why.
    func expectRefusal(_ sign: String, _ options: [String: Any] = [:]) {
        let error = expectThrows(CocoaError.self) { _ = try ServerStack(url, options) }
        expectEqual(error?.code, .persistentStoreOpen)
        let text = error?.localizedDescription ?? ""
        expect(text.contains("cannot be opened: the server has not") && text.contains(sign), "\(text)")
    }
}

@Suite("PostgreSQL stores on servers that lack something", .enabled(if: Server.isThere))
struct CapabilityTests {
    @Test(arguments: [false, true])
    func `a store is not opened, and the error names what is missing, also to read-only stores`(_ isReadOnly: Bool)
        throws
    {
        let lacking = try LackingServer()
        try ServerStack(lacking.url).insert("Rome")
        let options: [String: Any] = [NSReadOnlyPersistentStoreOption: isReadOnly]
        for function in ["pg_xact_status(xid8)", "pg_current_xact_id()"] {
            try lacking.run("REVOKE EXECUTE ON FUNCTION pg_catalog.\(function) FROM PUBLIC")
            lacking.expectRefusal("numbers of transactions, and what has become of them", options)
            try lacking.run("GRANT EXECUTE ON FUNCTION pg_catalog.\(function) TO PUBLIC")
        }
        // This function says that it has locked, and does not lock.
        try lacking.replace("pg_try_advisory_xact_lock", "int, int", returning: "boolean", "SELECT true")
        lacking.expectRefusal("advisory locks that pg_locks shows", options)
        try lacking.restore("pg_try_advisory_xact_lock", "int, int")
        try lacking.replace("current_setting", "text, boolean", returning: "text", "SELECT NULL::text")
        try lacking.run("REVOKE EXECUTE ON FUNCTION pg_catalog.pg_xact_status(xid8) FROM PUBLIC")
        lacking.expectRefusal("pg_xact_status); settings of plans (enable_seqscan, plan_cache_mode, jit).", options)
        try lacking.restore("current_setting", "text, boolean")
        try lacking.run("GRANT EXECUTE ON FUNCTION pg_catalog.pg_xact_status(xid8) TO PUBLIC")
        let stack = try ServerStack(lacking.url, options)
        try expectEqual(Cities.fetched(stack.context()), ["Rome"])
    }

    @Test func `a store that is made where advisory locks keep no other session out is portable, and stays so`() throws
    {
        let lacking = try LackingServer()
        try lacking.replace("pg_advisory_xact_lock", "bigint", returning: "void", "SELECT")
        try ServerStack(lacking.url).insert("Rome")
        try lacking.restore("pg_advisory_xact_lock", "bigint")
        let stack = try ServerStack(lacking.url)
        expectEqual(stack.coordinator.statistics().stores.map(\.tablePlacement), [.portable])
        try stack.insert("Oslo")
        try expectEqual(stack.cities(), ["Oslo", "Rome"])
    }

    @Test func `a store that is made for a role without numbers of transactions, or settings of plans, is portable`()
        throws
    {
        let lacking = try LackingServer()
        try lacking.run("REVOKE EXECUTE ON FUNCTION pg_catalog.pg_xact_status(xid8) FROM PUBLIC")
        try ServerStack(lacking.url).insert("Rome")
        try lacking.run("GRANT EXECUTE ON FUNCTION pg_catalog.pg_xact_status(xid8) TO PUBLIC")
        try lacking.replace("current_setting", "text, boolean", returning: "text", "SELECT NULL::text")
        let other = try require(URL(string: lacking.url.absoluteString.replacing("schema=shop", with: "schema=other")))
        for url in [lacking.url, other] {
            let stack = try ServerStack(url)
            expectEqual(stack.coordinator.statistics().stores.map(\.tablePlacement), [.portable])
            try stack.insert("Oslo")
        }
    }

    @Test func `without exported snapshots contexts can be pinned, and readers of one version take turns`() throws {
        let lacking = try LackingServer()
        try lacking.run("REVOKE EXECUTE ON FUNCTION pg_catalog.pg_export_snapshot() FROM PUBLIC")
        let stack = try ServerStack(lacking.url)
        try stack.insert("Rome")
        let database = try stack.database
        let version = try PinnedPostgreSQLVersion.newest(database, mayBeReplica: false)
        try stack.insert("Oslo")
        let count = "SELECT count(*) FROM city"
        let second = Noted<Int64>()
        let done = DispatchSemaphore(value: 0)
        let first = try version.read { connection -> Int64? in
            let found = try connection.query(count).firstInt64
            Thread.detachNewThread {
                defer { done.signal() }
                let found = try? version.read { connection -> Int64? in try connection.query(count).firstInt64 }
                if let found { second.note(found) }
            }
            // The second reader waits for its turn.
            let end = ContinuousClock.now + .seconds(300)
            while version.waiterCount == 0, second.noted == nil, .now < end { usleep(1_000) }
            return found
        }
        try require(done.wait(timeout: .now() + 300) == .success)
        expectEqual([first, second.noted], [1, 1])
        let pinned = stack.context()
        try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
        try expectEqual(Cities.fetched(pinned), ["Oslo", "Rome"])
        try stack.insert("Bern")
        try expectEqual(Cities.fetched(pinned), ["Oslo", "Rome"])
    }

    @Test func `a store that may not be read for a while has versions that are shared afterwards`() throws {
        let lacking = try LackingServer()
        let stack = try ServerStack(lacking.url)
        try stack.insert("Rome")
        let database = try stack.database
        let schema = database.pool.target.quotedSchema
        try lacking.run("REVOKE SELECT ON \(schema).strata_store FROM app")
        let error = expectThrows(PostgreSQLError.self) {
            _ = try PinnedPostgreSQLVersion.newest(database, mayBeReplica: false)
        }
        expectEqual(error?.sqlState, "42501")
        try lacking.run("GRANT SELECT ON \(schema).strata_store TO app")
        let version = try PinnedPostgreSQLVersion.newest(database, mayBeReplica: false)
        // Another read of the version runs at the same time, and does not wait.
        let count = "SELECT count(*) FROM city"
        try version.read { connection in
            try connection.query(count)
            let beside = Errand { try version.read { try $0.query(count).firstInt64 } }
            try expectEqual(beside.wait(), 1)
        }
    }

    @Test func `without wake-ups others' changes are noticed, and no session is lost for it`() throws {
        let lacking = try LackingServer()
        try lacking.run("REVOKE EXECUTE ON FUNCTION pg_catalog.pg_notify(text, text) FROM PUBLIC")
        let options = [NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
        let (writer, reader) = (
            try ServerStack(lacking.url, history: true), try ServerStack(lacking.url, history: true, options)
        )
        let told = DispatchSemaphore(value: 0)
        let token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: reader.coordinator,
            queue: nil
        ) { _ in told.signal() }
        defer { NotificationCenter.default.removeObserver(token) }
        func sessions() throws -> Set<Int64> {
            let sql = "SELECT pid::bigint FROM pg_stat_activity WHERE usename = 'app'"
            return Set(try lacking.server.connection().query(sql).rows.map { $0.int64(0) })
        }
        // Each store has one session in its pool, and one that looks for changes.
        let end = ContinuousClock.now + .seconds(300)
        while try sessions().count < 4, .now < end { usleep(1_000) }
        let before = try sessions()
        for name in ["Rome", "Oslo", "Bern"] {
            try writer.insert(name)
            try require(told.wait(timeout: .now() + 300) == .success)
        }
        try expect(before.isSubset(of: sessions()))
        try expectEqual(Cities.fetched(reader.context()), ["Bern", "Oslo", "Rome"])
    }
}

@Suite("PostgreSQL stores whose URL leads elsewhere", .enabled(if: Server.isThere))
struct OtherClusterTests {
    /// Makes a server that has a copy of a store with the same UUID, as after restoring a dump.
    private func copy(of original: PrivateServer) throws -> PrivateServer {
        // The server is made anew, since all copies of one template belong to one cluster.
        let copy = try PrivateServer(environment: ["STRATA_POSTGRESQL_TEMPLATE": ""])
        try ServerStack(copy.url).insert("Atlantis")
        let found = try original.connection().query("SELECT uuid, metadata FROM strata_store")
        try copy.connection().query(
            "UPDATE strata_store SET uuid = $1, metadata = $2",
            [.text(found[0].string(0)), .bytea(found[0].data(1))]
        )
        return copy
    }

    @Test func `a server of another cluster is not believed, and what is there is neither read nor written`() throws {
        let own = try PrivateServer()
        try ServerStack(own.url).insert("Rome")
        let other = try copy(of: own)
        // The name of a host that leads first to one server, and then to the other.
        let host = "/tmp/strata-host." + String(UInt64.random(in: 0 ... .max), radix: 36)
        func lead(to server: PrivateServer) throws {
            try? FileManager.default.removeItem(atPath: host)
            try FileManager.default.createSymbolicLink(atPath: host, withDestinationPath: server.folder)
            try own.connection().command(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        }
        defer { try? FileManager.default.removeItem(atPath: host) }
        try lead(to: own)
        let stack = try ServerStack(
            require(URL(string: "postgresql:///strata?host=\(host)&user=strata&schema=shop")),
            [NSPersistentStoreTimeoutOption: 20]
        )
        let context = stack.context()
        try expectEqual(Cities.fetched(context), ["Rome"])
        try lead(to: other)
        let reading = expectThrows(CocoaError.self) { try Cities.fetched(context) }
        expectEqual(reading?.code, .persistentStoreOperation)
        let text = reading?.localizedDescription ?? ""
        expect(text.contains("of another cluster than before"), "\(text)")
        let saving = expectThrows(CocoaError.self) { try stack.insert("Oslo") }
        expectEqual(saving?.code, .persistentStoreSave)
        try expectEqual(other.text("SELECT string_agg(name, ',') FROM city"), "Atlantis")
        try lead(to: own)
        try stack.insert("Oslo")
        try expectEqual(Cities.fetched(context), ["Oslo", "Rome"])
    }

    @Test func `a replica of another cluster is not read from, however far it is`() async throws {
        let own = try PrivateServer()
        let stack = try ServerStack(own.url)
        try stack.insert("Rome")
        let other = try copy(of: own)
        let replica = try PrivateServer(following: other)
        let session = try other.connection()
        // This is far beyond the end of the other log.
        for _ in 0..<4 { try session.command("SELECT pg_logical_emit_message(true, 'a', 'b'), pg_switch_wal()") }
        try replica.catchUp(with: other)
        let reading = try ServerStack(
            own.url,
            [NSPostgreSQLReplicasOption: [replica.url], NSPostgreSQLReplicaWaitOption: 0.2]
        )
        try await expectEqual(Cities.awaited(reading.context(readsFromReplicas: true)), ["Rome"])
    }
}
