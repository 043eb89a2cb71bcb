import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

@Suite("Sessions of PostgreSQL stores", .enabled(if: Server.isThere))
struct SessionTests {
    @Test func `what a server says of itself when it lets in is not printed`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            endInTime()
            let server = try PrivateServer()
            try server.connection().command(
                "UPDATE pg_catalog.pg_database SET datcollversion = '0' WHERE datname = 'strata'"
            )
            try withExtendedLifetime(server) { try ServerStack(server.url).insert("Rome") }
        }
        let told = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(!told.contains("WARNING"), "\(told)")
    }

    @Test func `a transaction that the server has rolled back is not reported as committed`() throws {
        let connection = try Server.connection()
        try connection.command("BEGIN")
        expectThrows(PostgreSQLError.self) { try connection.command("SELECT 1 / 0") }
        // The code has ignored that error.
        let error = expectThrows(PostgreSQLError.self) { try connection.commit() }
        expectEqual(error?.kind, .server)
        expect(connection.isIdle && !connection.isBroken)
    }

    @Test func `a session sees the schema of its store, and nothing of others that is called the same`() throws {
        let pinned = try PinnedStack()
        try pinned.stack.insert("Rome")
        let pool = pinned.database.pool
        let path = try pool.withConnection { try $0.command("SHOW search_path")[0].string(0) }
        expectEqual(path, "\(pool.target.quotedSchema), pg_temp")
        // By default, temporary tables come first in a session's path.
        try pool.withConnection { connection -> Void in
            try connection.command(
                "CREATE TEMPORARY TABLE city (LIKE city INCLUDING ALL); CREATE TEMPORARY TABLE strata_store (uuid text)"
            )
        }
        try expectEqual(pinned.stack.cities(), ["Rome"])
        try pinned.stack.insert("Oslo")
        try expectEqual(
            pinned.direct().query("SELECT name FROM city ORDER BY 1").rows.map { $0.string(0) },
            ["Oslo", "Rome"]
        )
    }

    @Test func `a limit for the statements of a role ends neither a migration nor the making of foreign keys`() throws {
        let server = try PrivateServer()
        func open(_ version: Int, _ url: URL, _ options: [AnyHashable: Any]) throws {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: KeyedStore.atlas(version))
            let store = try coordinator.addPersistentStore(
                type: .postgreSQL,
                configuration: nil,
                at: url,
                options: options
            )
            try coordinator.remove(store)
        }
        try open(1, server.url, KeyedStore.withoutKeys)
        try server.slowDown()
        // The limit applies to everything else that the role does.
        let session = try Connection.open(ConnectionTarget(server.limitedURL), timeout: 60)
        let error = expectThrows(PostgreSQLError.self) {
            try session.command("ALTER TABLE shop.city ADD COLUMN more text")
        }
        expectEqual(error?.sqlState, "57014")
        try open(1, server.limitedURL, KeyedStore.withKeys)
        try open(2, server.limitedURL, ChangingStore.migrating)
        try expectEqual(PostgreSQLStore.problems(at: server.url, KeyedStore.atlas(2)), [])
    }

    @Test func `a save goes on behind statements that the session's last user has left prepared`() throws {
        let pinned = try PinnedStack([NSPersistentStoreConnectionPoolMaxSizeKey: 1])
        try pinned.database.pool.withConnection { connection -> Void in
            try connection.command(
                """
                DO $$ BEGIN FOR number IN 1..300 LOOP
                IF NOT EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE name = 'strata_' || number) THEN
                EXECUTE 'PREPARE strata_' || number || ' AS SELECT 0'; END IF; END LOOP; END $$
                """
            )
        }
        try pinned.stack.insert("Rome")
        try expectEqual(pinned.stack.cities(), ["Rome"])
    }
}
