import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

@Suite("PostgreSQL stores on a server that is sharded by schema", .enabled(if: Server.isThere))
struct ShardedServerTests {
    /// Runs `body` with a store on the tests' server, behind a proxy that makes the server behave like a sharded one.
    private func withProxy(_ body: (ShardingProxy, URL) throws -> Void) throws {
        let direct = try require(TestDatabase.url)
        let proxy = try ShardingProxy(to: direct)
        defer { proxy.close() }
        let schema = "sharded_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        defer { _ = try? Server.connection().command("DROP SCHEMA IF EXISTS \"\(schema)\" CASCADE") }
        let mark = proxy.url.query == nil ? "?" : "&"
        try body(proxy, require(URL(string: "\(proxy.url.absoluteString)\(mark)schema=\(schema)")))
    }

    @Test func `the server is known by what it does, and the statistics say so`() throws {
        try withProxy { proxy, url in
            let stack = try ServerStack(url)
            expectEqual(stack.coordinator.statistics().stores.map(\.tablePlacement), [.shardedBySchema])
            try stack.insert("Rome")
            try expectEqual(stack.cities(), ["Rome"])
            expectEqual(proxy.refused.withLock { $0 }, [])
            // No transaction there sees one moment.
            let folder = try ScratchFolder()
            let backup = Tool.run("backup", "--store", url.absoluteString, "--to", folder.file("copy").path)
            expectEqual(backup.code, .failure)
            expect(backup.complaints.joined().contains("sharded by schema"), "\(backup)")
            expect(!FileManager.default.fileExists(atPath: folder.file("copy").path))
            // Another session of the store joins those that a migration ends, on the coordinator.
            try stack.database.pool.withConnection { connection in
                try stack.database.requireSame(connection)
                let locks = try connection.query(
                    "SELECT 1 FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND classid = 7276 AND pid = pg_catalog.pg_backend_pid()"
                )
                expectEqual(locks.rowCount, 1)
            }
        }
        let file = URL(fileURLWithPath: "/tmp/\(UUID().uuidString)")
        defer { TestDatabase.drop(file) }
        let plain = try ServerStack(TestDatabase.url(for: file))
        expectEqual(plain.coordinator.statistics().stores.map(\.tablePlacement), [.oneNode])
    }

    @Test(arguments: [false, true])
    func `a save whose COMMIT is lost is made again, with and without a history`(_ history: Bool) throws {
        try withProxy { proxy, url in
            let stack = try ServerStack(url, history: history)
            try stack.insert("Rome")
            for name in ["Oslo", "Bern"] {
                proxy.cutsCommit.withLock { $0 = true }
                try stack.insert(name)
                expect(!proxy.cutsCommit.withLock { $0 })
            }
            try expectEqual(stack.cities(), ["Bern", "Oslo", "Rome"])
            // A batch has no row that shows its commit.
            proxy.cutsCommit.withLock { $0 = true }
            let context = stack.context()
            try context.performAndWait {
                let update = NSBatchUpdateRequest(entityName: "City")
                update.propertiesToUpdate = ["name": "same"]
                try context.execute(update)
            }
            try expectEqual(stack.cities(), ["same", "same", "same"])
        }
    }

    @Test func `no context can be pinned, the error says why, and a loop over rows reads the newest`() async throws {
        let direct = try require(TestDatabase.url)
        let proxy = try ShardingProxy(to: direct)
        defer { proxy.close() }
        let schema = "sharded_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        defer { _ = try? Server.connection().command("DROP SCHEMA IF EXISTS \"\(schema)\" CASCADE") }
        let mark = proxy.url.query == nil ? "?" : "&"
        let stack = try ServerStack(require(URL(string: "\(proxy.url.absoluteString)\(mark)schema=\(schema)")))
        for name in ["Rome", "Oslo", "Bern"] { try stack.insert(name) }
        let context = stack.context()
        let error = expectThrows(CocoaError.self) {
            try context.performAndWait {
                try context.setQueryGenerationFrom(.current)
                _ = try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "City"))
            }
        }
        expectEqual(error?.code, .persistentStoreOperation)
        expect(
            error?.localizedDescription.contains("sharded by schema") == true,
            "\(error?.localizedDescription ?? "")"
        )
        try await expectEqual(Cities.looped(stack.context()).sorted(), ["Bern", "Oslo", "Rome"])
    }

    @Test func `a sequence that is behind the rows is noticed, though it is asked apart from them`() throws {
        try withProxy { _, url in
            try ServerStack(url).insert("Rome")
            let schema = try ConnectionTarget(url).quotedSchema
            let session = try Server.connection()
            try session.command("SET search_path TO \(schema); UPDATE city SET strata_id = 1500")
            let error = expectThrows(CocoaError.self) { try ServerStack(url).insert("Oslo") }
            expect(
                error?.localizedDescription.contains("is behind the rows") == true,
                "\(error?.localizedDescription ?? "")"
            )
        }
    }
}
