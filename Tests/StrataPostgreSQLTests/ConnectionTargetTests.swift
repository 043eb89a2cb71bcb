import Expectations
import Foundation
import Testing

@testable import StrataPostgreSQL

@Suite("URLs of PostgreSQL stores")
struct ConnectionTargetTests {
    private static func target(_ text: String, schema: String? = nil) throws -> ConnectionTarget {
        try ConnectionTarget(require(URL(string: text)), schema: schema)
    }

    @Test(arguments: [
        "postgresql://me:secret@host/db", "postgresql://host/db?password=secret", "postgresql://me:secret@/db",
        "postgresql:///db?sslpassword=secret", "postgresql://host/db?pass%77ord=secret",
        "postgresql://host/db?schema=a&password=secret&schema=b",
    ])
    func `a password in the URL is refused, and not repeated`(_ text: String) throws {
        let error = expectThrows(PostgreSQLError.self) { try Self.target(text) }
        expectEqual(error?.kind, .misuse)
        expect(error?.description.contains("PGPASSFILE") == true && error?.description.contains("secret") == false)
    }

    @Test(arguments: [
        "mysql://host/db", "file:///db", "//host/db", "postgresql://host/db?schema=",
        "postgresql://host/db?schema=pg_catalog",
        "postgresql://host/db?schema=\(String(repeating: "a", count: 64))", "postgresql://host/db?schema=a%00b",
        "postgresql://host/db?pooler=maybe",
    ])
    func `invalid URLs are refused`(_ text: String) {
        expectEqual(expectThrows(PostgreSQLError.self) { try Self.target(text) }?.kind, .misuse)
    }

    @Test func `what is said to the library does not reach libpq, and the rest does`() throws {
        let text =
            "postgres://me@db.example.org:5433/shop?schema=guide&prepare=0&sslmode=require&pooler=transaction&a=%26%2B"
        let target = try Self.target(text)
        expectEqual(target.schema, "guide")
        expect(!target.preparesStatements && target.isPooled == true && !target.namesSeveralHosts)
        expectEqual(target.place, "postgresql://me@db.example.org:5433/shop?schema=guide")
        for (text, place) in [
            ("postgresql:shop?host=localhost", "postgresql://localhost/shop?schema=strata"),
            ("postgresql:///shop?host=a.example,b.example", "postgresql://a.example,b.example/shop?schema=strata"),
            ("postgresql://localhost?dbname=shop", "postgresql://localhost/shop?schema=strata"),
            ("postgresql:///shop?host=/run/postgresql", "postgresql:///shop?host=/run/postgresql&schema=strata"),
        ] {
            try expectEqual(Self.target(text).place, place)
        }
        let components = try require(URLComponents(string: target.url))
        expect(components.host == "db.example.org" && components.port == 5433 && components.path == "/shop")
        expectEqual(components.queryItems?.map(\.name), ["sslmode", "a"])
        expectEqual(components.queryItems?.last?.value, "&+")
        expectEqual(target.parameters.first { $0.0 == "dbname" }?.1, target.url)

        let plain = try Self.target("postgresql:///shop")
        expect(plain.schema == "strata" && plain.preparesStatements && plain.isPooled == nil)
        try expectEqual(Self.target("postgresql:///shop?pooler=session").isPooled, false)
        try expectEqual(Self.target("postgresql:///shop?schema=a", schema: "b\"c").quotedSchema, "\"b\"\"c\"")
    }

    @Test(arguments: [
        ("postgresql://db.example.org/shop", true), ("postgresql://localhost/shop", false),
        ("postgresql://127.0.0.1/shop", false), ("postgresql://[::1]/shop", false),
        ("postgresql:///shop?host=/run/postgresql", false), ("postgresql://%2Frun%2Fpostgresql/shop", false),
        ("postgresql:///shop?host=@abstract", false), ("postgresql:///shop?host=localhost,db.example.org", true),
        ("postgresql://localhost/shop?host=db.example.org", true), ("postgresql://localhost.example.org/shop", true),
        ("postgresql://db.example.org/shop?sslmode=require", false), ("postgresql:///shop?service=shop", false),
    ])
    func `a server far away has to prove its identity`(_ text: String, _ verifies: Bool) throws {
        let target = try Self.target(text)
        expectEqual(target.verifiesServer, verifies)
        expectEqual(target.parameters.contains { $0 == ("sslmode", "verify-full") }, verifies)
    }

    @Test(arguments: [
        ("postgresql:///shop?hostaddr=192.0.2.1", "verify-full"), ("postgresql:///shop?hostaddr=127.0.0.1", "prefer"),
        ("postgresql://localhost/shop?hostaddr=192.0.2.1", "verify-full"),
        ("postgresql:///shop?host=/tmp/nobody", "prefer"),
        ("postgresql:///shop?hostaddr=192.0.2.1&sslmode=require", "require"),
    ])
    func `an address says where a server is, whatever its name`(_ text: String, _ mode: String) throws {
        // The environment's mode would count.
        guard ProcessInfo.processInfo.environment["PGSSLMODE"] == nil else { return }
        try expectEqual(Connection.verification(of: Self.target(text)), mode)
    }

    @Test func `a machine that is gone is noticed within two minutes, unless the URL says otherwise`() throws {
        func keepalives(_ text: String) throws -> [String?] {
            let settings = try Connection.settings(of: Self.target(text))
            return ["idle", "interval", "count"].map { settings["keepalives_\($0)"] }
        }
        try expectEqual(keepalives("postgresql:///shop?host=/tmp/nobody"), ["60", "10", "3"])
        try expectEqual(keepalives("postgresql:///shop?host=/tmp/nobody&keepalives_idle=5"), ["5", "10", "3"])
    }

    @Test func `several replicas of one URL need not be writable`() throws {
        let url = try require(URL(string: "postgresql:///db?host=a.example,b.example"))
        let follower = try ConnectionTarget(url, isFollower: true)
        expectEqual(follower.parameters.first { $0.0 == "target_session_attrs" }?.1, "standby")
    }

    @Test func `several hosts are asked one after the other, and last those that were silent`() throws {
        func names(_ text: String) throws -> [String] {
            try HostChoices.of(Self.target(text)) { _ in [] }.map { $0.map { "\($0)=\($1)" }.joined(separator: " ") }
        }
        try expectEqual(names("postgresql://one.example/db"), [""])
        try expectEqual(names("postgresql:///db?host=a,b&port=1,2,3"), [""])
        try expectEqual(
            names("postgresql:///db?host=a.example,b.example&port=7"),
            ["host=a.example port=7", "host=b.example port=7"]
        )
        let several = "postgresql:///db?host=c.example,d.example&port=1,2&hostaddr=10.0.0.1,10.0.0.2"
        let all = ["host=c.example hostaddr=10.0.0.1 port=1", "host=d.example hostaddr=10.0.0.2 port=2"]
        try expectEqual(names(several), all)
        try expectEqual(Self.target(several).parameters.first { $0.0 == "target_session_attrs" }?.1, "read-write")
        try HostChoices.addSilent(HostChoices.of(Self.target(several))[0])
        HostChoices.addSilent([])
        try expectEqual(names(several), all.reversed())

        // Each address of a name is a choice. A socket and this machine need no look-up.
        func addresses(_ text: String) throws -> [String] {
            let choices = try HostChoices.of(Self.target(text)) {
                $0 == "one.example" ? ["10.1.0.1"] : ["10.1.0.2", "fd00::1"]
            }
            return choices.map { $0.map(\.1).joined(separator: " ") }
        }
        try expectEqual(
            addresses("postgresql://two.example:7/db"),
            ["two.example 7 10.1.0.2", "two.example 7 fd00::1"]
        )
        try expectEqual(addresses("postgresql://one.example:7/db"), [""])
        try expectEqual(addresses("postgresql://localhost/db"), [""])
        try expectEqual(addresses("postgresql:///db?host=/tmp"), [""])
        try expectEqual(addresses("postgresql://two.example/db?hostaddr=10.1.0.3"), [""])
        try expectEqual(
            addresses("postgresql:///db?host=two.example,one.example"),
            ["two.example 10.1.0.2", "two.example fd00::1", "one.example"]
        )

        let standby = "postgresql:///db?host=e.example,f.example&target_session_attrs=prefer-standby"
        let attributes = try names(standby).map { $0.replacing(/host=(.).*=/) { "\($0.1) " } }
        expectEqual(attributes, ["e standby", "f standby", "e any", "f any"])
    }
}
