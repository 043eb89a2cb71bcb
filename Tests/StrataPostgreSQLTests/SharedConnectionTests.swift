import Expectations
import Foundation
import StrataLocks
import Synchronization
import Testing

@testable import StrataPostgreSQL

/// Pools of several schemas whose connections belong to one budget.
struct SharingPools {
    let budget: ConnectionBudget

    init(most: Int) { budget = ConnectionBudget(most: most) }

    func pool(_ schema: String, at url: URL? = nil, timeout: Double = 30) throws -> ConnectionPool {
        let target = try ConnectionTarget(url ?? Server.url(), schema: schema)
        let showSchema: @Sendable (Connection) throws -> Void = { connection in
            try connection.query(
                "SELECT pg_catalog.set_config('search_path', $1, false)",
                [.text(target.quotedSchema)]
            )
        }
        return ConnectionPool(
            target,
            size: 8,
            timeout: timeout,
            sharing: ConnectionPool.Sharing(budget, takeOver: showSchema),
            prepare: showSchema
        )
    }
}

@Suite("Connections that PostgreSQL pools share", .enabled(if: Server.isThere))
struct SharedConnectionTests {
    @Test func `a pool takes the connection that it, or its schema, has used last, and else the one idle for longest`()
        throws
    {
        let shared = SharingPools(most: 3)
        let pools = try ["a", "b", "c"].map { try shared.pool($0) }
        let all = try pools.map { try $0.lease() }
        let processes = all.map(\.serverProcess)
        expectEqual(Set(processes).count, 3)
        // The pool "b" comes first, and "c" last.
        for index in [1, 0, 2] { pools[index].give(back: all[index]) }
        try expectEqual(pools[0].withConnection { $0.serverProcess }, processes[0])
        let later = try shared.pool("c")
        try expectEqual(later.withConnection { $0.serverProcess }, processes[2])
        let new = try shared.pool("d")
        try expectEqual(
            new.withConnection { connection in
                expectEqual(connection.schema, "d")
                try expectEqual(connection.command("SHOW search_path")[0].string(0), "\"d\"")
                return connection.serverProcess
            },
            processes[1]
        )
        // All work at the same time again, and nobody has opened a fourth.
        let again = try [pools[0], later, new].map { try $0.lease() }
        expectEqual(again.map(\.serverProcess), [processes[0], processes[2], processes[1]])
        expectEqual(shared.budget.usedCount, 3)
        for (pool, connection) in zip([pools[0], later, new], again) { pool.give(back: connection) }
        expectEqual([shared.budget.usedCount, shared.budget.idleCount], [0, 3])
    }

    @Test func `a statement is prepared for each schema by itself, and reads the tables of no other`() throws {
        let mark = "shared_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let other = try Server.connection()
        try other.command(
            """
            CREATE SCHEMA \(mark)_x; CREATE TABLE \(mark)_x.t AS SELECT 1::bigint AS v;
            CREATE SCHEMA \(mark)_y; CREATE TABLE \(mark)_y.t AS SELECT 2::bigint AS v
            """
        )
        defer { _ = try? other.command("DROP SCHEMA \(mark)_x CASCADE; DROP SCHEMA \(mark)_y CASCADE") }
        let shared = SharingPools(most: 1)
        let (x, y) = (try shared.pool("\(mark)_x"), try shared.pool("\(mark)_y"))
        for _ in 0..<3 {
            try expectEqual(x.withConnection { try $0.query("SELECT v FROM t").firstInt64 }, 1)
            try expectEqual(y.withConnection { try $0.query("SELECT v FROM t").firstInt64 }, 2)
        }
        let prepared = try x.withConnection {
            try $0.command("SELECT name FROM pg_prepared_statements WHERE statement = 'SELECT v FROM t'").rowCount
        }
        expectEqual(prepared, 2)
    }

    @Test func `a session keeps the statements of the schemas that it has served last`() throws {
        let shared = SharingPools(most: 1)
        let pools = try (0..<100).map { try shared.pool("schema \($0)") }
        for pool in pools {
            try pool.withConnection { connection in
                for number in 1...10 {
                    try expectEqual(connection.query("SELECT $1 + \(number)", [.int8(1)]).firstInt64, Int64(1 + number))
                }
            }
        }
        try pools[99].withConnection { connection in
            let names = try connection.command("SELECT name FROM pg_prepared_statements").rows.map { $0.string(0) }
            expect((10...311).contains(names.count), "\(names.count)")
            try connection.query("SELECT $1 + 1", [.int8(1)])
            // Nothing was prepared anew.
            let after = try connection.command("SELECT name FROM pg_prepared_statements").rows.map { $0.string(0) }
            expectEqual(names.sorted(), after.sorted())
        }
    }

    @Test func `callers of several pools get a connection in the order of asking`() throws {
        let shared = SharingPools(most: 1)
        let pools = try (0..<4).map { try shared.pool("s\($0)") }
        let held = try pools[0].lease()
        let order = Locked<[Int]>([])
        var threads: [JoinableThread] = []
        for index in [2, 1, 3] {
            threads.append(
                onThread { try pools[index].withConnection { _ in order.withLock { $0.append(index) } } }
            )
            try wait { shared.budget.waiterCount == threads.count }
        }
        pools[0].give(back: held)
        for thread in threads { try thread.join() }
        expectEqual(order.withLock { $0 }, [2, 1, 3])
        let error = try pools[0].withConnection { _ in
            expectThrows(PostgreSQLError.self) { try shared.pool("s4", timeout: 0.2).lease() }
        }
        expectEqual(error?.kind, .deadline)
        expect(error?.message.contains("all 1 connections that the stores of this server may have") == true)
    }

    @Test func `a caller that is cancelled while it waits for the budget leaves the queue`() throws {
        let shared = SharingPools(most: 1)
        let (a, b) = (try shared.pool("a"), try shared.pool("b", timeout: 300))
        let held = try a.lease()
        let cancellation = Cancellation()
        let kind = Locked<PostgreSQLError.Kind?>(nil)
        let thread = onThread {
            do { b.give(back: try b.lease(cancellation)) } catch let error as PostgreSQLError {
                kind.withLock { $0 = error.kind }
            }
        }
        try wait { shared.budget.waiterCount == 1 }
        cancellation.cancel(throwing: CancellationError())
        try thread.join()
        expectEqual(kind.withLock { $0 }, .cancelled)
        a.give(back: held)
        try expectEqual(b.withConnection { try $0.query("SELECT 1").firstInt64 }, 1)
        expectEqual(shared.budget.usedCount, 0)
    }

    @Test func `a connection that was lost in a transaction makes room, and an open transaction ends with its user`()
        throws
    {
        let shared = SharingPools(most: 1)
        let (a, b) = (try shared.pool("a"), try shared.pool("b"))
        let first = try a.withConnection { connection in
            try connection.command("BEGIN")
            try connection.query("SELECT pg_catalog.pg_advisory_xact_lock(7282)")
            return connection.serverProcess
        }
        try b.withConnection { connection in
            expectEqual(connection.serverProcess, first)
            expect(connection.isIdle)
            let locks = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            try expectEqual(connection.query(locks).rowCount, 0)
        }
        let error = expectThrows(PostgreSQLError.self) {
            try a.withConnection { connection in
                try connection.command("BEGIN")
                try connection.query("SELECT pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())")
            }
        }
        expectEqual(error?.kind, .connection)
        expectEqual([shared.budget.usedCount, shared.budget.idleCount], [0, 0])
        try expect(b.withConnection { $0.serverProcess } != first)
        // A session that ends while nobody uses it is not given to another pool.
        let second = try b.withConnection { $0.serverProcess }
        try Server.connection().query("SELECT pg_catalog.pg_terminate_backend($1::int)", [.int8(Int64(second))])
        try expectEqual(a.withConnection { try $0.query("SELECT 1").firstInt64 }, 1)
    }

    @Test func `a cancel that comes late hits no statement of another store`() throws {
        let shared = SharingPools(most: 1)
        let (a, b) = (try shared.pool("a"), try shared.pool("b"))
        for _ in 0..<50 {
            try a.withConnection { $0.canceller.cancel() }
            try expectEqual(b.withConnection { try $0.query("SELECT 1").firstInt64 }, 1)
        }
        expectEqual(shared.budget.idleCount, 1)
    }

    @Test func `connections of other settings make room, and all are closed with the last pool that can use them`()
        throws
    {
        let shared = SharingPools(most: 1)
        let elsewhere = try Server.url("application_name=strata-elsewhere")
        let (a, b) = (try shared.pool("a"), try shared.pool("b"))
        let other = try shared.pool("a", at: elsewhere)
        let first = try a.withConnection { $0.serverProcess }
        try expect(other.withConnection { try $0.command("SHOW application_name")[0].string(0) } == "strata-elsewhere")
        expectEqual([other.idleCount, a.idleCount, shared.budget.idleCount], [1, 0, 1])
        try expect(b.withConnection { $0.serverProcess } != first)
        other.close()
        expectEqual(shared.budget.idleCount, 1)
        b.close()
        // The other pool can use what this one has left.
        expectEqual(shared.budget.idleCount, 1)
        a.close()
        expectEqual(shared.budget.idleCount, 0)
    }

    @Test func `plans that were outdated meanwhile are dropped when a connection comes back to their pool`() throws {
        let shared = SharingPools(most: 1)
        let (a, b) = (try shared.pool("a"), try shared.pool("b"))
        let statements = Locked<[String]>([])
        func dropsPlans(_ pool: ConnectionPool) throws -> Bool {
            statements.withLock { $0 = [] }
            try pool.withConnection { connection in
                connection.onStatement = { sql in statements.withLock { $0.append(sql) } }
                try connection.query("SELECT 1")
            }
            return statements.withLock { $0.contains("DISCARD PLANS") }
        }
        try expect(!dropsPlans(a))
        a.outdatePlans()
        try expect(!dropsPlans(b))
        try expect(dropsPlans(a))
        try expect(!dropsPlans(b))
        try expect(!dropsPlans(a))
        // A later pool of the same schema uses none of the statements that these plans are for.
        try expect(!dropsPlans(shared.pool("a")))
    }

    @Test func `a later pool of a schema uses no statement that was prepared for earlier tables`() throws {
        let schema = "shared_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let other = try Server.connection()
        try other.command("CREATE SCHEMA \(schema); CREATE TABLE \(schema).t AS SELECT 1::integer AS v")
        defer { _ = try? other.command("DROP SCHEMA \(schema) CASCADE") }
        let shared = SharingPools(most: 1)
        let earlier = try shared.pool(schema)
        for _ in 0..<3 {
            try earlier.withConnection { _ = try $0.query("SELECT v FROM t") }
        }
        try other.command("ALTER TABLE \(schema).t ALTER v TYPE bigint")
        let later = try shared.pool(schema)
        for _ in 0..<2 {
            // Inside of a transaction a statement cannot be prepared anew after an error.
            try later.withConnection { connection in
                try connection.command("BEGIN ISOLATION LEVEL REPEATABLE READ")
                try expectEqual(connection.query("SELECT v FROM t").firstInt64, 1)
                try connection.rollback()
            }
        }
        withExtendedLifetime(earlier) {}
    }
}
