#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
import StrataPostgreSQL
import StrataPostgreSQLStore

/// The database that the tests of stores use, if there is one: see `make test-postgresql`.
package enum TestDatabase {
    /// The URL of the server, from the environment.
    package static let url = ProcessInfo.processInfo.environment["STRATA_TEST_POSTGRESQL"].flatMap { URL(string: $0) }

    package static var isThere: Bool { url != nil }

    /// The URL of the schema that stands for a file.
    package static func url(for file: URL) -> URL {
        guard file.isFileURL, let url, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            return file
        }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in file.standardizedFileURL.path.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        parts.queryItems =
            (parts.queryItems ?? []) + [URLQueryItem(name: "schema", value: "t" + String(hash, radix: 16))]
        return parts.url ?? file
    }

    /// Removes the schema that stands for a file, together with objects that a test has added to it.
    package static func drop(_ file: URL) {
        guard isThere else { return }
        do {
            guard try PostgreSQLEngine.destroy(at: url(for: file), timeout: 30) != nil else { return }
        } catch {
            // Other objects depend on the store's tables, so they are removed as well.
        }
        guard let target = try? ConnectionTarget(url(for: file)),
            let connection = try? Connection.open(target, timeout: 10)
        else { return }
        _ = try? connection.command("SET lock_timeout = 10000")
        _ = try? connection.command("DROP SCHEMA IF EXISTS \(target.quotedSchema) CASCADE")
    }

    /// A session that sees the schema that stands for a file.
    package static func session(_ file: URL) throws -> Connection {
        let target = try ConnectionTarget(url(for: file))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        return connection
    }

    /// Runs SQL in the schema that stands for a file.
    package static func run(_ sql: String, in file: URL) throws { try session(file).command(sql) }

    /// The first column of an answer to SQL in the schema that stands for a file, as texts.
    package static func texts(_ sql: String, in file: URL) throws -> [String] {
        try session(file).query(sql).rows.map { $0.string(0) }
    }

    /// The type of the tests' stores: each has a separate schema in the server's database, under the URL of a file.
    ///
    /// A test of all stores therefore need not know which kind it uses.
    package static let storeType: NSPersistentStore.StoreType = {
        PostgreSQLStore.translateURLs { TestDatabase.url(for: $0) }
        if ProcessInfo.processInfo.environment["STRATA_FOREIGN_KEYS"] == "1" { PostgreSQLStore.addForeignKeys() }
        if ProcessInfo.processInfo.environment["STRATA_SCATTERED_KEYS"] == "1" { PostgreSQLStore.scatterKeys() }
        return .postgreSQL
    }()
}
#endif
