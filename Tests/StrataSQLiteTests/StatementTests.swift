import Expectations
import Foundation
import Testing

@testable import StrataSQLite

@Suite("Statements and their values")
struct StatementTests {
    let connection: Connection

    init() throws {
        connection = try Connection(path: ":memory:", access: .readWriteCreate)
        try connection.execute("CREATE TABLE t (i INTEGER, d FLOAT, s VARCHAR, b BLOB)")
    }

    @Test func `every type survives the way through a row`() throws {
        let uuid = UUID()
        let insert = try connection.statement("INSERT INTO t VALUES (?, ?, ?, ?)")
        try insert.bind(Int64.min, at: 1)
        try insert.bind(0.1, at: 2)
        try insert.bind("naïve 🐘\0tail", at: 3)
        try insert.bind(uuid, at: 4)
        try insert.run()

        let select = try connection.statement("SELECT i, d, s, b, length(b) FROM t")
        try require(try select.step())

        expectEqual(select[0].int64, .min)
        expectEqual(select[1].double, 0.1)
        expectEqual(select[2].string, "naïve 🐘\0tail")
        expectEqual(select[3].uuid, uuid)
        expectEqual(select[4].int64, 16)
        expectEqual([0, 1, 2, 3].map { select[$0].kind }, [.integer, .real, .text, .blob])
        try expect(!select.step())
    }

    @Test(arguments: [
        "SELECT i FROM t", "SELECT i, s FROM t", "SELECT s, i FROM t ORDER BY s DESC",
        "SELECT i, d, s, b, i + 1, d * 2, upper(s), length(b), NULL, 'x', i, d, s, b FROM t",
        "SELECT i, s FROM t UNION SELECT i + 10, s FROM t", "SELECT count(*), max(s), min(i) FROM t GROUP BY b",
        "SELECT a.i, b.s, a.d FROM t AS a JOIN t AS b ON a.i <= b.i",
    ])
    func `the columns of a row are those that SQLite returns one by one`(_ query: String) throws {
        try connection.execute(
            "INSERT INTO t VALUES (1, 0.5, 'one', x'01'), (2, 1.5, NULL, x'0203'), (3, NULL, hex(zeroblob(500)), NULL)"
        )
        for _ in 1...2 {
            let select = try connection.statement(SQL(query))
            var count = 0
            while try select.step() {
                count += 1
                let columns = select.columns
                // The way for a library that places them otherwise.
                let oneByOne = Columns(handle: select.handle, stride: -1)
                for column in 0..<select.columnCount {
                    expectEqual(columns[column].raw, select[column].raw)
                    expectEqual(oneByOne[column].raw, select[column].raw)
                    expectEqual(columns[column].kind, select[column].kind)
                    expectEqual(columns[column].string, select[column].string)
                }
                expect(columns.stride > 0)
            }
            expect(count > 0)
        }
    }

    @Test func `the columns of a statement are right after the table has got another one`() throws {
        try connection.execute("INSERT INTO t VALUES (1, 0.5, 'one', x'01')")
        for expected in [["1", "0.5", "one"], ["1", "0.5", "one"]] {
            let select = try connection.statement("SELECT i, d, s FROM t")
            try require(try select.step())
            expectEqual((0..<3).map { select.columns[$0].string }, expected)
            select.reset()
            try connection.execute("ALTER TABLE t ADD COLUMN x\(Int.random(in: 0..<Int.max))")
        }
    }

    @Test func `columns that were asked for before the first row are right in each row`() throws {
        try connection.execute("INSERT INTO t (i, d, s) VALUES (1, 0.5, 'one'), (2, 1.5, 'two')")
        let select = try connection.statement("SELECT i, d, s FROM t")
        expect(select.columns[0].isNull && select.columns[2].isNull)
        for expected in [["1", "0.5", "one"], ["2", "1.5", "two"]] {
            try require(try select.step())
            expectEqual((0..<3).map { select.columns[$0].string }, expected)
        }
    }

    @Test func `an empty text and an empty blob are not null`() throws {
        let insert = try connection.statement("INSERT INTO t (s, b) VALUES (?, ?)")
        try insert.bind("", at: 1)
        try insert.bind(Data(), at: 2)
        try insert.run()
        try insert.bindUncopied(utf8: UnsafeRawBufferPointer(start: nil, count: 0), at: 1)
        try insert.bindUncopied(blob: UnsafeRawBufferPointer(start: nil, count: 0), at: 2)
        try insert.run()

        let select = try connection.statement("SELECT i, s, b FROM t")
        for _ in 0..<2 {
            try require(try select.step())
            expect(select[0].isNull && select[0].optionalString == nil && select[0].optionalInt64 == nil)
            expectEqual(select[1].optionalString, "")
            expectEqual(select[2].optionalData, Data())
        }
    }

    @Test(arguments: [15, 2047, 2048, 2049, 100_000])
    func `texts and blobs of any length arrive whole`(length: Int) throws {
        let text = String(repeating: "ü", count: length / 2)
        let data = Data((0..<length).map { UInt8(truncatingIfNeeded: $0) })
        let insert = try connection.statement("INSERT INTO t (s, b) VALUES (?, ?)")
        try insert.bind(text, at: 1)
        try insert.bind(data, at: 2)
        try insert.run()

        let select = try connection.statement("SELECT s, b FROM t")
        try require(try select.step())
        expectEqual(select[0].string, text)
        expectEqual(select[1].data, data)
        expectEqual(Data(select[1].bytes), data)
    }

    @Test func `bytes bound in place are read at the step`() throws {
        let bytes = Array("in place".utf8)
        let insert = try connection.statement("INSERT INTO t (s) VALUES (?)")
        try bytes.withUnsafeBytes { bytes in
            try insert.bindUncopied(utf8: bytes, at: 1)
            try insert.run()
        }

        try expectEqual(connection.firstString("SELECT s FROM t"), "in place")
    }

    @Test func `invalid utf8 in a file is repaired, and available raw`() throws {
        try connection.execute("INSERT INTO t (s) VALUES (CAST(x'61FF62' AS TEXT))")

        let select = try connection.statement("SELECT s FROM t")
        try require(try select.step())
        expectEqual(select[0].string, "a\u{FFFD}b")
        expectEqual(Array(select[0].utf8), [0x61, 0xFF, 0x62])
    }

    @Test func `a blob of another length is no uuid`() throws {
        let select = try connection.statement("SELECT x'0011', NULL, 5")
        try require(try select.step())
        expect(select[0].uuid == nil && select[1].uuid == nil && select[2].uuid == nil)
        expect(select[7].isNull, "a column beyond the last")
    }

    @Test func `a number that is not one becomes null`() throws {
        let select = try connection.statement("SELECT ?")
        try select.bind(Double.nan, at: 1)
        try require(try select.step())
        expect(select[0].isNull)
    }

    @Test func `run drops the bindings`() throws {
        let insert = try connection.statement("INSERT INTO t (s) VALUES (?)")
        try insert.bind("first", at: 1)
        try insert.run()
        try insert.run()

        try expectEqual(connection.firstInt64("SELECT count(*) FROM t WHERE s IS NULL"), 1)
    }

    @Test func `a parameter out of range throws`() throws {
        let insert = try connection.statement("INSERT INTO t (s) VALUES (?)")
        let error = expectThrows(SQLiteError.self) { try insert.bind(1, at: 2) }
        expect(error?.code == .range && error?.operation == .bind)
    }

    @Test func `errors name the statement but no bound value`() throws {
        try connection.execute("CREATE UNIQUE INDEX u ON t (s)")
        let insert = try connection.statement("INSERT INTO t (s) VALUES (?)")
        try insert.bind("secret", at: 1)
        try insert.run()
        try insert.bind("secret", at: 1)
        let error = try failure { try insert.run() }

        expect(error.code == .constraint && error.extendedCode == .constraintUnique)
        expectEqual(error.message, "UNIQUE constraint failed: t.s")
        expect(error.description.contains("INSERT INTO t"))
        expect(!error.description.contains("secret"))
    }

    @Test(arguments: ["SELEC 1", "SELECT 1; SELECT 2", "", "SELECT \"misspelt\" FROM t", "SELECT nothing FROM t"])
    func `what is not one sound statement is refused`(text: String) throws {
        let error = try failure { try connection.run(SQL(text)) }
        expectEqual(error.operation, .prepare)
        expectEqual(error.sql, text)
    }
}

@Suite("The statement cache")
struct StatementCacheTests {
    private func connection(limit: Int) throws -> Connection {
        var options = Connection.Options()
        options.statementCacheLimit = limit
        return try Connection(path: ":memory:", access: .readWriteCreate, options: options)
    }

    @Test func `a text is prepared once`() throws {
        let connection = try connection(limit: 8)
        var handles: Set<OpaquePointer> = []
        for _ in 0..<3 {
            let statement = try connection.statement(SQL("SELECT " + "1"))
            handles.insert(statement.handle)
        }

        expectEqual(handles.count, 1)
        expect(connection.cachedStatementCount == 1 && connection.lentStatementCount == 0)
    }

    @Test func `nested uses of a text do not disturb each other`() throws {
        let connection = try connection(limit: 8)
        let sql: SQL = "VALUES (1), (2)"
        let outer = try connection.statement(sql)
        var pairs: [[Int64]] = []
        while try outer.step() {
            let inner = try connection.statement(sql)
            while try inner.step() { pairs.append([outer[0].int64, inner[0].int64]) }
        }

        expectEqual(pairs, [[1, 1], [1, 2], [2, 1], [2, 2]])
        expect(connection.cachedStatementCount == 1 && connection.lentStatementCount == 1)
    }

    @Test func `the least recently used goes, and none that is in use`() throws {
        let connection = try connection(limit: 2)
        let busy = try connection.statement("SELECT 'busy'")
        try connection.run("SELECT 'a'")
        try connection.run("SELECT 'b'")
        try connection.run("SELECT 'c'")

        expectEqual(connection.cachedStatementCount, 2)
        try expect(busy.step())
        expectEqual(busy[0].string, "busy")
    }

    @Test func `a scope that throws gives its statement back, reset`() throws {
        let connection = try connection(limit: 8)
        struct Unrelated: Error {}
        func readOne() throws {
            let statement = try connection.statement("VALUES (?), (2)")
            try statement.bind(1, at: 1)
            _ = try statement.step()
            throw Unrelated()
        }

        expectThrows(Unrelated.self) { try readOne() }
        expectEqual(connection.lentStatementCount, 0)
        let again = try connection.statement("VALUES (?), (2)")
        try expect(again.step())
        expect(again[0].isNull, "the binding of the last use is gone")
    }

    @Test func `a statement follows a change of the schema`() throws {
        let connection = try connection(limit: 8)
        try connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        try expectEqual(connection.firstInt64("SELECT count(*) FROM t"), 1)
        try connection.execute("DROP TABLE t; CREATE TABLE t (a, b)")
        try expectEqual(connection.firstInt64("SELECT count(*) FROM t"), 0)
    }
}
