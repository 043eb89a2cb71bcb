import Expectations
import Foundation
import StrataLocks
import Synchronization
import Testing

@testable import StrataPostgreSQL

@Suite("Connections to PostgreSQL", .enabled(if: Server.isThere))
struct ConnectionTests {
    @Test func `a listener is notified by others, and not by itself`() throws {
        let channel = "channel_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let (listener, other) = (try Server.connection(), try Server.connection())
        try listener.command("LISTEN \(channel)")
        try listener.command("NOTIFY \(channel)")
        try expectEqual(listener.waitForNotification(orFor: -1, seconds: 0.2), 0)
        try other.command("NOTIFY \(channel)")
        try expectEqual(listener.waitForNotification(orFor: -1, seconds: 60), 1)
    }

    @Test(arguments: [
        "0", "1", "-1", "10000", "-9999", "0.1", "-0.0001", "123456789012345678901234567890.12345678", "1e-20",
        "12300000000",
        "99999999999999999999999999999999999999", "2.33333333333333333333333333333333333331", "1000e127", "1e-128",
        "340282366920938463463374607431768211455e127",
    ])
    func `a decimal comes back as it went`(_ text: String) throws {
        let number = try require(Decimal(string: text))
        let result = try Server.connection().query("SELECT $1, $1::text::numeric = $1", [.numeric(number)])
        expectEqual(result[0].decimal(0), number)
        expectEqual(result[0].int64(1), 1)
    }

    @Test func `values of every type come back as they went`() throws {
        let uuid = UUID()
        let result = try Server.connection().query(
            "SELECT $1, $2, $3, $4, $5, $6",
            [.int8(.min), .float8(-0.1), .text("naïve 😀"), .bytea(Data([0, 1, 255])), .uuid(uuid), .bool(true)]
        )
        let row = result[0]
        expectEqual(row.int64(0), .min)
        expectEqual(row.double(1), -0.1)
        expectEqual(row.string(2), "naïve 😀")
        expectEqual(row.data(3), Data([0, 1, 255]))
        expectEqual(row.uuid(4), uuid)
        expectEqual(row.int64(5), 1)
    }

    @Test func `arrays keep nulls and empty values apart`() throws {
        var texts = PostgreSQLArray(.text)
        for value in [PostgreSQLValue.text(""), .null(.text), .text("a")] { texts.append(value) }
        let result = try Server.connection().query("SELECT pg_catalog.unnest($1)", [.array(texts)])
        expectEqual(result.rows.map { $0.optionalString(0) }, ["", nil, "a"])
        try expect(
            Server.connection().query("SELECT pg_catalog.unnest($1)", [.array(PostgreSQLArray(.int8))]).rowCount
                == 0
        )
    }

    @Test func `a refused statement names its state, and no value`() throws {
        let connection = try Server.connection()
        try connection.command("CREATE TEMPORARY TABLE secrets (word text PRIMARY KEY)")
        try connection.query("INSERT INTO secrets VALUES ($1)", [.text("xyzzy")])
        let error = expectThrows(PostgreSQLError.self) {
            try connection.query("INSERT INTO secrets VALUES ($1)", [.text("xyzzy")])
        }
        expectEqual(error?.sqlState, "23505")
        expectEqual(error?.constraint, "secrets_pkey")
        expectEqual(error?.description.contains("xyzzy"), false)
        // The connection works as before.
        try expectEqual(connection.query("SELECT 1").firstInt64, 1)
    }

    @Test func `a pool does not hand out a connection whose session the server has ended`() throws {
        let pool = ConnectionPool(try Server.target(), size: 2, timeout: 30) { _ in }
        defer { pool.close() }
        let process = try pool.withConnection { $0.serverProcess }
        let other = try Server.connection()
        try other.query("SELECT pg_catalog.pg_terminate_backend($1::int)", [.int8(Int64(process))])
        let isThere = "SELECT 1 FROM pg_catalog.pg_stat_activity WHERE pid = $1"
        let end = ContinuousClock.now + .seconds(300)
        while try other.query(isThere, [.int8(Int64(process))]).rowCount > 0 {
            try require(.now < end, "the session does not end")
            usleep(1_000)
        }
        try expectEqual(pool.withConnection { try $0.query("SELECT 1").firstInt64 }, 1)
    }

    @Test func `a pool does not hand out a connection on which the server has sent a notification`() throws {
        // The server does this when it ends a session, some time before it closes the connection.
        let pool = ConnectionPool(try Server.target(), size: 2, timeout: 30) { _ in }
        defer { pool.close() }
        let process = try pool.withConnection { connection in
            try connection.query("LISTEN unasked")
            return connection.serverProcess
        }
        try Server.connection().query("NOTIFY unasked")
        let end = ContinuousClock.now + .seconds(60)
        var isSame = true
        while isSame, ContinuousClock.now < end {
            isSame = try pool.withConnection { $0.serverProcess } == process
            usleep(1_000)
        }
        expect(!isSame)
    }

    @Test func `a pool closes idle connections, but for one`() throws {
        let pool = ConnectionPool(try Server.target(), size: 3, timeout: 30, rest: 0.1) { _ in }
        defer { pool.close() }
        let all = try (0..<3).map { _ in try pool.lease() }
        let processes = all.map { Int64($0.serverProcess) }
        for connection in all { pool.give(back: connection) }
        let end = ContinuousClock.now + .seconds(60)
        while pool.idleCount > 1, ContinuousClock.now < end { usleep(1_000) }
        expectEqual(pool.idleCount, 1)
        // The last connection that came back stays open.
        try expectEqual(pool.withConnection { Int64($0.serverProcess) }, processes[2])
    }

    @Test func `a connection that was used for long makes way for another`() throws {
        let other = try Server.connection()
        func isThere(_ process: Int32) throws -> Bool {
            let sql = "SELECT 1 FROM pg_catalog.pg_stat_activity WHERE pid = $1"
            return try other.query(sql, [.int8(Int64(process))]).rowCount > 0
        }
        let pool = ConnectionPool(try Server.target(), size: 1, timeout: 30, life: 0.2) { _ in }
        defer { pool.close() }
        let process = try pool.withConnection { $0.serverProcess }
        let end = ContinuousClock.now + .seconds(60)
        while try pool.withConnection({ $0.serverProcess }) == process, .now < end { usleep(1_000) }
        while try isThere(process), .now < end { usleep(1_000) }
        try expect(!isThere(process))
    }

    @Test func `connections that were opened together do not all make way at once`() throws {
        let lives = try (0..<5).map { _ in try Server.connection().endurance }
        expect(lives.allSatisfy((0.8...1.2).contains) && Set(lives).count == 5, "\(lives)")
    }

    @Test func `the child of a fork has separate connections, and leaves those of its parent alone`() throws {
        let process = ProcessNumber()
        let pool = ConnectionPool(try Server.target(), size: 1, timeout: 30, process: { process.value }) { _ in }
        defer { pool.close() }
        let session = try pool.withConnection { inherited in
            try inherited.query("SELECT pg_catalog.pg_advisory_lock(7281)")
            process.value = 2
            defer { process.value = 1 }
            let error = expectThrows(PostgreSQLError.self) { try inherited.query("SELECT 1") }
            expectEqual(error?.kind, .misuse)
            return inherited.serverProcess
        }
        process.value = 2
        try expect(pool.withConnection { $0.serverProcess } != session)
        // The parent's session got no message to end: it has its lock, and keeps it.
        let other = try Server.connection()
        try other.command("SET lock_timeout = 1000")
        let refusal = expectThrows(PostgreSQLError.self) { try other.query("SELECT pg_catalog.pg_advisory_lock(7281)") }
        expectEqual(refusal?.sqlState, "55P03")
        try other.query("SELECT pg_catalog.pg_terminate_backend($1::int)", [.int8(Int64(session))])
    }

    @Test func `a pool whose sessions are silent asks one of them only, and opens another`() throws {
        let pool = ConnectionPool(try Server.target(), size: 3, timeout: 4) { _ in }
        defer { pool.close() }
        let statements = Locked<[String]>([])
        let all = try (0..<3).map { _ in try pool.lease() }
        for connection in all { connection.onStatement = { sql in statements.withLock { $0.append(sql) } } }
        let processes = all.map(\.serverProcess)
        for connection in all { pool.give(back: connection) }
        pool.outdatePlans()
        for process in processes { kill(process, SIGSTOP) }
        defer { for process in processes { kill(process, SIGCONT) } }
        try expect(!processes.contains(pool.withConnection { $0.serverProcess }))
        expectEqual(statements.withLock { $0 }, ["DISCARD PLANS"])
        expectEqual(pool.idleCount, 1)
    }

    @Test func `statements that the session's last user has left prepared do no harm`() throws {
        func stranger(_ count: Int) throws -> Connection {
            let connection = try Server.connection()
            for number in 1...count { try connection.command("PREPARE strata_\(number) AS SELECT 0") }
            return connection
        }
        try expectEqual(stranger(3).query("SELECT $1 + 0", [.int8(1)]).firstInt64, 1)
        var rows: [Int64] = []
        try stranger(3).each("SELECT $1 + 0", [.int8(1)]) { row in
            rows.append(row.int64(0))
            return true
        }
        expectEqual(rows, [1])
        // The error ends a transaction, and the code that has begun it begins it again.
        let connection = try stranger(3)
        try connection.command("BEGIN")
        let error = expectThrows(PostgreSQLError.self) { try connection.query("SELECT $1 + 0", [.int8(1)]) }
        expectEqual(error?.isStale, true)
        try connection.rollback()
        try connection.post("BEGIN")
        try expectEqual(connection.query("SELECT $1 + 0", [.int8(1)]).firstInt64, 1)
    }

    @Test func `a silent server is not waited for`() throws {
        let connection = try Server.connection()
        connection.patience = 0.2
        let error = expectThrows(PostgreSQLError.self) { try connection.query("SELECT pg_catalog.pg_sleep(60)") }
        expectEqual(error?.kind, .deadline)
        expect(connection.isBroken)
        // The server does not go on with work that no client awaits.
        let other = try Server.connection()
        let end = ContinuousClock.now + .seconds(20)
        let sleeping = "SELECT 1 FROM pg_catalog.pg_stat_activity WHERE pid = $1 AND state = 'active'"
        func isSleeping() throws -> Bool {
            try other.query(sleeping, [.int8(Int64(connection.serverProcess))]).rowCount > 0
        }
        while try isSleeping(), ContinuousClock.now < end { usleep(2_000) }
        try expect(!isSleeping())
    }

    @Test func `a cancelled call on a server that stands still does not wait for the time-out`() throws {
        let connection = try Server.connection()
        connection.patience = 120
        let process = connection.serverProcess
        let canceller = connection.canceller
        try connection.query("SELECT 1")
        kill(process, SIGSTOP)
        defer { kill(process, SIGCONT) }
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { canceller.cancel() }
        let start = ContinuousClock.now
        let error = expectThrows(PostgreSQLError.self) { try connection.query("SELECT 1") }
        expectEqual(error?.kind, .cancelled)
        connection.awaitCancel()
        expect(.now - start < .seconds(60))
        expect(connection.isBroken)
    }

    @Test func `a statement ends when another thread cancels it`() throws {
        let connection = try Server.connection()
        let canceller = connection.canceller
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { canceller.cancel() }
        let error = expectThrows(PostgreSQLError.self) { try connection.query("SELECT pg_catalog.pg_sleep(60)") }
        expectEqual(error?.sqlState, "57014")
        connection.awaitCancel()
        try expectEqual(connection.query("SELECT 1").firstInt64, 1)
    }

    @Test func `rows that are no longer wanted are not read`() throws {
        let connection = try Server.connection()
        var seen: [Int64] = []
        try connection.each("SELECT pg_catalog.generate_series(1, 1000000000)") { row in
            seen.append(row.int64(0))
            return seen.count < 3
        }
        expectEqual(seen, [1, 2, 3])
        try expectEqual(connection.query("SELECT 1").firstInt64, 1)
    }

    @Test func `a session keeps the statements prepared that were used last`() throws {
        let connection = try Server.connection()
        let often = "SELECT $1 + 0"
        func prepared(_ condition: String) throws -> Int64? {
            try connection.command("SELECT count(*) FROM pg_catalog.pg_prepared_statements WHERE \(condition)")[0]
                .string(0).int64
        }
        for number in 1...1_000 {
            try expectEqual(connection.query("SELECT $1 + \(number)", [.int8(1)]).firstInt64, Int64(1 + number))
            try expectEqual(connection.query(often, [.int8(1)]).firstInt64, 1)
            if number % 100 == 0 { try expect(require(prepared("true")) <= 302) }
        }
        // The statement was prepared once, whatever other statements came.
        try expectEqual(prepared("statement = '\(often)' AND name = 'strata_2'"), 1)
        try expectEqual(connection.query("SELECT $1 + 1", [.int8(1)]).firstInt64, 2)

        connection.forgetPrepared()
        try expectEqual(connection.query(often, [.int8(1)]).firstInt64, 1)
        try expectEqual(prepared("true"), 1)
    }

    @Test func `a transaction that prepares many statements goes on, and the session keeps the last of them`() throws {
        let connection = try Server.connection()
        try connection.command("BEGIN")
        for number in 1...700 {
            try expectEqual(connection.query("SELECT $1 + \(number)", [.int8(1)]).firstInt64, Int64(1 + number))
        }
        try connection.command("COMMIT")
        try expectEqual(connection.query("SELECT $1 + 0", [.int8(1)]).firstInt64, 1)
        let count = try connection.command("SELECT count(*) FROM pg_catalog.pg_prepared_statements")
        expectEqual(count[0].string(0).int64, 151)
    }

    @Test func `statements that another has dropped are no error when they are to be dropped`() throws {
        let connection = try Server.connection()
        try expectEqual(connection.query("SELECT $1 + 0", [.int8(1)]).firstInt64, 1)
        try connection.command("DEALLOCATE ALL")
        connection.forgetPrepared()
        try expectEqual(connection.query("SELECT $1 + 0", [.int8(1)]).firstInt64, 1)
    }

    @Test func `a pool replaces a connection whose server process was killed`() throws {
        let pool = ConnectionPool(try Server.target(), size: 1, timeout: 10) { _ in }
        let process = try pool.withConnection { $0.serverProcess }
        try Server.connection().query("SELECT pg_catalog.pg_terminate_backend($1::int)", [.int8(Int64(process))])
        try expectEqual(pool.reading { try $0.query("SELECT 1").firstInt64 }, 1)
        try expect(pool.withConnection { $0.serverProcess } != process)
    }

    @Test func `a wait for a connection that takes too long says that the pool is busy`() throws {
        let pool = ConnectionPool(try Server.target(), size: 1, timeout: 0.2) { _ in }
        let taken = try pool.lease()
        defer { pool.give(back: taken) }
        let error = expectThrows(PostgreSQLError.self) { try pool.lease() }
        expectEqual(error?.kind, .deadline)
        expectEqual(error?.message.contains("pool"), true)
    }
}

/// The number of a process, which tests change.
private final class ProcessNumber: Sendable {
    private let number = Atomic<Int32>(1)

    var value: Int32 {
        get { number.load(ordering: .acquiring) }
        set { number.store(newValue, ordering: .releasing) }
    }
}

extension String {
    /// The whole number that this text shows; answers to statements without parameters are text.
    fileprivate var int64: Int64? { Int64(self) }
}
