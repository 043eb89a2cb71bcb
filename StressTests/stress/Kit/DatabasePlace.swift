import CoreData

#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
#endif

/// Where stores lie that are no files: in schemas of the database that the environment names.
///
/// `Tests/postgresql-server.sh run COMMAND` sets it.
enum DatabasePlace {
    private static let chosen = Mutex(ProcessInfo.processInfo.environment["STRATA_TEST_POSTGRESQL"])
    private static var server: String? { chosen.withLock { $0 } }

    /// Whether there is a server.
    static var isThere: Bool { server != nil }

    /// Runs `body` with the stores in another server's database.
    static func using<R>(_ url: String, _ body: () throws -> R) rethrows -> R {
        let former = chosen.withLock { chosen in
            defer { chosen = url }
            return chosen
        }
        defer { chosen.withLock { $0 = former } }
        return try body()
    }

    /// The type of the stores, which have foreign keys with `STRATA_FOREIGN_KEYS=1` in the environment, as those of the tests.
    static let type: NSPersistentStore.StoreType = {
        #if canImport(CoreDataPostgreSQL)
        if ProcessInfo.processInfo.environment["STRATA_FOREIGN_KEYS"] == "1" { PostgreSQLStore.addForeignKeys() }
        return .postgreSQL
        #else
        return NSPersistentStore.StoreType(rawValue: "PostgreSQL")
        #endif
    }()

    /// Refuses to run without a server.
    ///
    /// - Throws: A ``StressError``.
    static func requireServer() throws {
        #if canImport(CoreDataPostgreSQL)
        let isBuiltIn = true
        #else
        let isBuiltIn = false
        #endif
        guard isBuiltIn else { throw StressError("this was built without libpq") }
        guard server != nil else {
            throw StressError(
                "--store postgresql needs a server: Tests/postgresql-server.sh run \(CommandLine.arguments[0]) …"
            )
        }
    }

    /// What `strata verify` finds in a store.
    static func problems(at url: URL, _ model: NSManagedObjectModel) throws -> [String] {
        #if canImport(CoreDataPostgreSQL)
        try PostgreSQLStore.problems(at: url, model)
        #else
        []
        #endif
    }

    /// The schema that stands for a file, the same in every process.
    static func url(for file: URL) -> URL {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in file.standardizedFileURL.path.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return URL(string: "\(server ?? "postgresql:///")&schema=stress_\(String(hash, radix: 16))") ?? file
    }
}
