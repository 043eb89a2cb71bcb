import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport

@testable import StrataPostgreSQLStore

/// A proxy that makes the tests' server refuse what many engines of PostgreSQL's wire lack; see `Tests/postgresql-portable.c`.
///
/// It is a separate program, which also serves whole runs of tests and of `stress`.
final class PortableProxy: Sendable {
    /// What becomes of advisory locks.
    enum Locks: String, CaseIterable, Sendable { case missing, silent }

    /// The URL of a schema of the test, through the proxy.
    let url: URL
    /// The URL of the same schema, without the proxy.
    let direct: URL
    private let folder = PrivateServer.newFolder()
    let schema = "portable_" + String(UInt64.random(in: 0 ... .max), radix: 36)

    /// Starts a proxy.
    ///
    /// One COMMIT in `every` is answered by 40001; none if that is 0. With `nil`, each transaction is refused once.
    init(_ locks: Locks = .silent, every: Int? = 7) throws {
        let server = try require(TestDatabase.url)
        let items = URLComponents(url: server, resolvingAgainstBaseURL: true)?.queryItems ?? []
        let host = try require(items.first { $0.name == "host" }?.value)
        let proxied = try PrivateServer.run(
            ["portable", folder, host, every.map { "\($0)" } ?? "each"],
            ["STRATA_PORTABLE": locks.rawValue]
        )
        url = try require(URL(string: "\(proxied)&schema=\(schema)"))
        direct = try require(URL(string: "\(server.absoluteString)&schema=\(schema)"))
    }

    deinit {
        _ = try? Server.connection().command("DROP SCHEMA IF EXISTS \"\(schema)\" CASCADE")
        _ = try? PrivateServer.run(["stop", folder], [:])
    }

    /// A session that sees the schema, without the proxy.
    func session() throws -> Connection {
        let session = try Server.connection()
        try session.command("SET search_path TO \"\(schema)\"")
        return session
    }

    func number(_ sql: String) throws -> Int64? { try session().query(sql).firstInt64 }
}
