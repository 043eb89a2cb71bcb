import Expectations
import Testing

@testable import StrataPostgreSQL

@Suite("Errors of PostgreSQL")
struct PostgreSQLErrorTests {
    @Test(arguments: [
        ("42P01", "relation \"x\" does not exist"), ("53300", "too many clients"), ("57014", "cancelled"),
        ("08006", "lost"),
    ])
    func `what a server says of itself or of a statement is reported`(_ state: String, _ message: String) {
        expectEqual(PostgreSQLError.harmless(message, sqlState: state), message)
    }

    @Test(arguments: [
        "23505", "23503", "23502", "23514", "22003", "22021", "22008", "22P02", "P0001", "01000", "23", "",
    ])
    func `what can repeat a value is not reported, but its meaning is`(_ state: String) {
        let told = PostgreSQLError.harmless("Key (word)=(xyzzy) already exists", sqlState: state)
        expect(!told.contains("xyzzy") && !told.isEmpty)
    }

    @Test(arguments: [
        ("server closed the connection unexpectedly", "server closed the connection unexpectedly"),
        ("FATAL:  57P01: terminating connection", "FATAL:  57P01: terminating connection"), ("", nil),
        ("ERROR:  P0001: bad value xyzzy", nil), ("FEHLER:  23505: Key (word)=(xyzzy)", nil),
        ("ERROR:  xyzzy", nil), ("ERROR:  P0001: ", nil), ("ERROR:  42xyzzy: 5", nil),
    ])
    func `for a lost connection, what cannot repeat a value is reported`(_ line: String, _ told: String?) {
        expectEqual(PostgreSQLError.reportedLoss(line), told)
    }

    @Test func `what a state means for the next attempt`() {
        func error(_ state: String) -> PostgreSQLError { PostgreSQLError(.server, sqlState: state, "x") }
        let states = ["40001", "40P01", "0A000", "26000", "42P05", "23505", "42P01", ""]
        expectEqual(states.filter { error($0).isTransient }, ["40001", "40P01"])
        expectEqual(states.filter { error($0).isStale }, ["0A000", "26000", "42P05"])
        expectEqual(states.filter { error($0).isUniqueViolation }, ["23505"])
        expectEqual(error("40001").description, "PostgreSQL, SQLSTATE 40001: x")
        expectEqual(PostgreSQLError(.deadline, "x").description, "PostgreSQL: x")
    }

    @Test func `a foreign key that was broken is named`() {
        let error = PostgreSQLError(.server, sqlState: "23503", "a row is not there", constraint: "a_key")
        expect(error.isForeignKeyViolation)
        expectEqual(
            error.description,
            "PostgreSQL, SQLSTATE 23503: a row is not there, by the foreign key a_key"
        )
    }
}
