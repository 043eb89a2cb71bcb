import Expectations
import Foundation
import StrataLocks
import Synchronization
import Testing

@testable import StrataSQLite

@Suite("Functions, collations, tracing, plans")
struct ExtensionTests {
    let connection: Connection

    init() throws {
        connection = try Connection(path: ":memory:", access: .readWriteCreate)
    }

    @Test func `a function gets its arguments and gives its result`() throws {
        try connection.register(
            ScalarFunction("describe", argumentCount: nil) { call in
                guard call.count > 0 else { return call.fail("describe() needs an argument") }
                switch call[0].kind {
                case .integer: call.return(call[0].int64 + 1)
                case .real: call.return(call[0].double / 2)
                case .text: call.return(call[0].string.uppercased())
                case .blob: call.return(blob: UnsafeRawBufferPointer(rebasing: call[0].bytes.dropFirst()))
                case .null: call.returnNull()
                }
            }
        )

        let select = try connection.statement(
            "SELECT describe(1), describe(3.0), describe('é'), describe(x'0102'), describe(NULL)"
        )
        try require(try select.step())
        expectEqual(select[0].int64, 2)
        expectEqual(select[1].double, 1.5)
        expectEqual(select[2].string, "É")
        expectEqual(select[3].data, Data([2]))
        expect(select[4].isNull)
        let error = try failure { try connection.run("SELECT describe()") }
        expectEqual(error.message, "describe() needs an argument")
    }

    @Test func `what a function compiles from a constant is made once a statement`() throws {
        final class Pattern {
            let text: String
            init(_ text: String) { self.text = text }
        }
        let made = Atomic(0)
        try connection.register(
            ScalarFunction("matches", argumentCount: 2) { call in
                let pattern = call.compiled(1) { value in
                    made.add(1, ordering: .relaxed)
                    return Pattern(value.string)
                }
                call.return(call[0].string.contains(pattern.text))
            }
        )

        try expect(
            connection.firstInt64(
                "WITH t(s) AS (VALUES ('ab'), ('b'), ('cb')) SELECT count(*) FROM t WHERE matches(s, 'b')"
            ) == 3
        )
        expectEqual(made.load(ordering: .relaxed), 1)
    }

    @Test func `functions of a foreign program can be stood in for, in its triggers too`() throws {
        let names = [
            "NSCoreDataDATriggerUpdatedAffectedObjectValue", "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue",
        ]
        try connection.execute(
            """
            CREATE TABLE a (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, c INTEGER); CREATE TABLE b (x INTEGER);
            CREATE TRIGGER t AFTER INSERT ON b BEGIN
                UPDATE a SET c = IFNULL(c, 0) + 1;
                SELECT \(names[0])('a', Z_ENT, Z_PK, 'c', c) FROM a;
                SELECT \(names[1])('a', Z_ENT, Z_PK, 'c', c) FROM a;
            END;
            INSERT INTO a (Z_PK) VALUES (1);
            """
        )
        expectThrows(SQLiteError.self) { try connection.run("INSERT INTO b VALUES (1)") }
        for name in names { try connection.register(.noOperation(name, argumentCount: 5)) }

        try connection.run("INSERT INTO b VALUES (1)")

        try expectEqual(connection.firstInt64("SELECT c FROM a"), 1)
    }

    @Test func `a collation orders texts`() throws {
        try connection.register(
            Collation("backwards") { left, right in
                left.lexicographicallyPrecedes(right) ? .orderedDescending : .orderedAscending
            }
        )
        try expect(
            connection.strings(
                "WITH t(s) AS (VALUES ('a'), ('c'), ('b')) SELECT s FROM t ORDER BY s COLLATE backwards"
            )
                == ["c", "b", "a"]
        )
    }

    @Test func `the trace has statement and rows, but no values`() throws {
        let events = Locked<[TraceEvent]>([])
        connection.setTrace { event in events.withLock { $0.append(event) } }
        let statement = try connection.statement("SELECT value FROM (VALUES (1), (2), (3)) AS v, (SELECT ? AS value)")
        try statement.bind("secret", at: 1)
        try statement.run()
        try statement.run()
        connection.setTrace(nil)
        try connection.run("SELECT 'unheard'")

        let heard = events.withLock { $0 }
        expectEqual(heard.map(\.rows), [3, 3])
        expect(heard.allSatisfy { $0.sql == statement.sql && $0.duration >= .zero })
    }

    @Test func `the plan names the index`() throws {
        try connection.execute("CREATE TABLE t (a, b); CREATE INDEX t_a ON t (a)")

        let plan = try connection.queryPlan("SELECT b FROM t WHERE a = 1 UNION ALL SELECT b FROM t")

        expect(plan.contains { $0.hasPrefix("  ") && $0.contains("USING INDEX t_a") })
        expect(plan.contains { $0.contains("SCAN t") })
    }

    @Test(arguments: ["cache_size; DROP TABLE t", "", "cache size"])
    func `a pragma's name is a name`(name: String) throws {
        try expectEqual(failure { try connection.setPragma(name, "1") }.code, .misuse)
        try expectEqual(failure { _ = try connection.pragma(name) }.code, .misuse)
    }

    @Test func `a pragma's value is never code`() throws {
        try connection.execute("CREATE TABLE t (a)")
        try connection.setPragma("user_version", "7")
        try connection.setPragma("temp_store", "2); DROP TABLE t; --'")
        try expectEqual(connection.pragma("user_version"), "7")
        try expectEqual(connection.firstInt64("SELECT count(*) FROM t"), 0)
        try expectEqual(connection.pragma("no_such_pragma"), nil)
    }
}
