import Expectations
import Foundation
import StrataLocks
import Testing

@testable import StrataSQLite

@Suite("Lists of values and aggregate functions")
struct ValueListTests {
    private let connection: Connection

    init() throws {
        var options = Connection.Options()
        options.aggregates = [AggregateFunction("product") { Product() }]
        connection = try Connection(path: ":memory:", access: .readWriteCreate, options: options)
        try connection.execute(
            """
            CREATE TABLE number (id INTEGER PRIMARY KEY, value INTEGER, word VARCHAR, bytes BLOB, size FLOAT);
            CREATE INDEX number_value ON number (value);
            INSERT INTO number VALUES (1, 10, 'ten', x'0A', 10.5), (2, 20, 'twenty', x'1400', 1e300), (3, NULL, NULL, NULL, NULL),
                (4, 40, 'FORTY', x'', -0.5);
            """
        )
    }

    private func keys(_ condition: String, _ lists: ValueList...) throws -> [Int64] {
        let statement = try connection.statement(SQL("SELECT id FROM number WHERE \(condition) ORDER BY id"))
        for (index, list) in lists.enumerated() { try statement.bind(list, at: index + 1) }
        var keys: [Int64] = []
        while try statement.step() { keys.append(statement[0].int64) }
        return keys
    }

    @Test func `each kind of value is found as it is`() throws {
        let test = "IN (SELECT value FROM strata_values(?))"

        try expectEqual(keys("value \(test)", ValueList([.integer(40), .integer(10), .integer(99)])), [1, 4])
        try expectEqual(keys("value \(test)", ValueList([.double(20), .double(10.5)])), [2])
        try expectEqual(keys("word \(test)", ValueList([.text("ten"), .text("forty"), .text("")])), [1])
        try expectEqual(keys("word COLLATE NOCASE \(test)", ValueList([.text("TEN"), .text("forty")])), [1, 4])
        try expectEqual(keys("bytes \(test)", ValueList([.blob(Data()), .blob(Data([0x14, 0]))])), [2, 4])
        try expectEqual(keys("size \(test)", ValueList([.double(1e300), .double(-0.5)])), [2, 4])
    }

    @Test func `tens of thousands of values take one parameter and the index`() throws {
        let list = ValueList((0..<50_000).map { .integer(Int64($0) * 20) })

        try expectEqual(keys("value IN (SELECT value FROM strata_values(?))", list), [2, 4])
        let details = try connection.statement(
            "EXPLAIN QUERY PLAN SELECT id FROM number WHERE value IN (SELECT value FROM strata_values(?))"
        )
        try expect(details.step())
        expect(details[3].string.contains("number_value"))
    }

    @Test func `two lists in one statement do not meet`() throws {
        let condition =
            "value IN (SELECT value FROM strata_values(?)) AND id NOT IN (SELECT value FROM strata_values(?))"

        try expectEqual(keys(condition, ValueList([.integer(10), .integer(20)]), ValueList([.integer(1)])), [2])
        try expectEqual(keys(condition, ValueList([.integer(10), .integer(20)]), ValueList([])), [1, 2])
    }

    @Test func `without a list there are no values`() throws {
        try expectEqual(keys("value IN (SELECT value FROM strata_values(?))"), [])
        try expectEqual(keys("value IN (SELECT value FROM strata_values(10))"), [])
        try expectEqual(keys("value IN (SELECT value FROM strata_values)"), [])
    }

    @Test func `a list lives as long as its binding`() throws {
        weak var released: ValueList?
        do {
            let list = ValueList([.integer(10)])
            released = list
            let statement = try connection.statement("SELECT value FROM strata_values(?)")
            try statement.bind(list, at: 1)
            try expect(statement.step())
            expectEqual(statement[0].int64, 10)
        }

        expectEqual(released, nil)
    }

    @Test func `an aggregate function sees each group, and an empty one`() throws {
        let groups = try connection.statement(
            "SELECT product(value) FROM number WHERE value IS NOT NULL GROUP BY value > 15 ORDER BY 1"
        )
        try expect(groups.step())
        expectEqual(groups[0].int64, 10)
        try expect(groups.step())
        expectEqual(groups[0].int64, 800)
        try expectEqual(connection.firstInt64("SELECT product(value) FROM number WHERE id > 100"), 1)
    }

    @Test func `a statement that is given up lets its accumulators go`() throws {
        let living = Locked(0)
        let made = Locked(0)
        let counted = AggregateFunction("counted") {
            living.withLock { $0 += 1 }
            made.withLock { $0 += 1 }
            return Product { living.withLock { $0 -= 1 } }
        }
        try connection.register(counted)
        do {
            let statement = try connection.statement("SELECT counted(value) FROM number GROUP BY id")
            try expect(statement.step())
        }

        expect(made.withLock { $0 } >= 1)
        expectEqual(living.withLock { $0 }, 0)
    }

    private final class Product: AggregateFunction.Accumulator {
        private var product: Int64 = 1
        private let atEnd: () -> Void

        init(atEnd: @escaping () -> Void = {}) {
            self.atEnd = atEnd
        }

        deinit { atEnd() }

        func add(_ call: FunctionCall) { product *= call[0].isNull ? 1 : call[0].int64 }

        func finish(_ call: FunctionCall) { call.return(product) }
    }
}
