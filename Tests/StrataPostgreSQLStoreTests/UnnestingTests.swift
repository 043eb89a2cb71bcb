import Expectations
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

@Suite("Rows of arrays", .enabled(if: Server.isThere))
struct UnnestingTests {
    @Test func `each row has the values at its place`() throws {
        var (keys, names) = (PostgreSQLArray(.int8), PostgreSQLArray(.text))
        for key in 1...300 {
            keys.append(.int8(Int64(key)))
            names.append(key % 3 == 0 ? .null(.text) : .text("row \(key)"))
        }
        let rows = unnested([.int8, .text], from: 1)
        let found = try Server.connection().query(
            "SELECT u.key, u.name FROM \(rows) AS u (key, name) ORDER BY u.key",
            [.array(keys), .array(names)]
        )
        expectEqual(found.rowCount, 300)
        for row in found.rows {
            let key = row.int64(0)
            expectEqual(row.optionalString(1), key % 3 == 0 ? nil : "row \(key)")
        }
    }

    @Test func `the server makes no table of an array`() throws {
        let connection = try Server.connection()
        try connection.command("SET plan_cache_mode = force_generic_plan")
        let columns = unnestedColumns([.int8, .text], from: 1)
        for (name, rows) in [
            ("columns", "SELECT \(columns)"), ("rows", "SELECT * FROM \(unnested([.int8], from: 1)) AS u"),
        ] {
            try connection.command("PREPARE \(name) (bigint[], text[]) AS \(rows)")
            let lines = try connection.command("EXPLAIN EXECUTE \(name) ('{1}', '{a}')")
            let plan = lines.rows.map { $0.string(0) }.joined(separator: "\n")
            expect(plan.contains("ProjectSet") && !plan.contains("Function Scan"), "\(plan)")
        }
    }
}
