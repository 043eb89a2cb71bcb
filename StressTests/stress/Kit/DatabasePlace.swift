import CoreData
import StrataLocks

#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
import StrataPostgreSQL
#endif

/// The place of stores that are no files: schemas of the database that the environment names.
///
/// `Tests/postgresql-server.sh run COMMAND` sets the variable.
enum DatabasePlace {
    private static let chosen = Locked(ProcessInfo.processInfo.environment["STRATA_TEST_POSTGRESQL"])
    private static var server: String? { chosen.withLock { $0 } }

    /// Whether there is a server.
    static var isThere: Bool { server != nil }

    /// Runs `body` while the stores are in another server's database.
    static func using<R>(_ url: String, _ body: () throws -> R) rethrows -> R {
        let former = chosen.withLock { chosen in
            defer { chosen = url }
            return chosen
        }
        defer { chosen.withLock { $0 = former } }
        return try body()
    }

    /// The type of the stores.
    ///
    /// They have foreign keys with `STRATA_FOREIGN_KEYS=1` in the environment, and scattered keys with
    /// `STRATA_SCATTERED_KEYS=1`, like those of the tests.
    static let type: NSPersistentStore.StoreType = {
        #if canImport(CoreDataPostgreSQL)
        let environment = ProcessInfo.processInfo.environment
        if environment["STRATA_FOREIGN_KEYS"] == "1" { PostgreSQLStore.addForeignKeys() }
        if environment["STRATA_SCATTERED_KEYS"] == "1" { PostgreSQLStore.scatterKeys() }
        return .postgreSQL
        #else
        return NSPersistentStore.StoreType(rawValue: "PostgreSQL")
        #endif
    }()

    /// The options of a store with a replica.
    ///
    /// Its reads wait for the replica as long as a slow machine needs.
    static func options(replica url: URL) -> [AnyHashable: Any] {
        #if canImport(CoreDataPostgreSQL)
        [NSPostgreSQLReplicasOption: [url], NSPostgreSQLReplicaWaitOption: 30]
        #else
        [:]
        #endif
    }

    /// Refuses to run without a server.
    ///
    /// - Throws: A ``StressError``.
    static func requireServer() throws {
        #if canImport(CoreDataPostgreSQL)
        guard server != nil else {
            throw StressError(
                "--store postgresql needs a server: Tests/postgresql-server.sh run \(CommandLine.arguments[0]) …"
            )
        }
        #else
        throw StressError("this was built without libpq")
        #endif
    }

    /// The problems that `strata verify` finds in a store.
    static func problems(at url: URL, _ model: NSManagedObjectModel) throws -> [String] {
        #if canImport(CoreDataPostgreSQL)
        try PostgreSQLStore.problems(at: url, model)
        #else
        []
        #endif
    }

    /// The states of this program's other sessions, without those that are idle outside a transaction.
    static func busySessions() throws -> [String] {
        try texts(
            """
            SELECT state || ' in ' || COALESCE(wait_event, 'nothing') FROM pg_catalog.pg_stat_activity
            WHERE \(isOurs) AND state <> 'idle'
            """
        )
    }

    /// The number of transactions that the server has ended because of deadlocks.
    ///
    /// A session reports its deadlocks when it ends, so this waits until no other session of this program is left.
    static func deadlocks() throws -> Int {
        let end = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < end,
            try !texts("SELECT '' FROM pg_catalog.pg_stat_activity WHERE \(isOurs)").isEmpty
        {
            usleep(10_000)
        }
        let told = try texts(
            "SELECT deadlocks::text FROM pg_catalog.pg_stat_database WHERE datname = pg_catalog.current_database()"
        )
        return told.first.flatMap { Int($0) } ?? 0
    }

    private static let isOurs =
        """
        backend_type = 'client backend' AND datname = pg_catalog.current_database() AND pid <> pg_catalog.pg_backend_pid()
        AND application_name = pg_catalog.current_setting('application_name')
        """

    /// Opens a transaction that reads, and holds it for as long as the returned object exists.
    static func openRead() throws -> AnyObject? {
        #if canImport(CoreDataPostgreSQL)
        let connection = try connection()
        try connection.command("BEGIN; SELECT 1")
        return connection
        #else
        return nil
        #endif
    }

    /// The number of this program's sessions that wait for a lock.
    static func waitingSessions() throws -> Int {
        try texts("SELECT '' FROM pg_catalog.pg_stat_activity WHERE \(isOurs) AND wait_event_type = 'Lock'").count
    }

    /// A transaction of a user who writes with SQL.
    final class Transaction {
        #if canImport(CoreDataPostgreSQL)
        fileprivate let connection: Connection

        fileprivate init(_ connection: Connection) { self.connection = connection }

        func commit() throws { try connection.command("COMMIT") }
        #else
        func commit() throws {}
        #endif
    }

    /// Begins a transaction with a statement, in the schema that stands for a file.
    static func openTransaction(_ sql: String, at file: URL) throws -> Transaction? {
        #if canImport(CoreDataPostgreSQL)
        let target = try ConnectionTarget(url(for: file))
        let connection = try Connection.open(target, timeout: 30)
        // The proxy of the portable lane refuses some COMMITs, but none of a transaction that begins with a plain BEGIN.
        try connection.command("BEGIN; SET LOCAL search_path TO \(target.quotedSchema); \(sql)")
        return Transaction(connection)
        #else
        return nil
        #endif
    }

    #if canImport(CoreDataPostgreSQL)
    private static func connection() throws -> Connection {
        guard let server, let url = URL(string: server) else { throw StressError("there is no server") }
        return try Connection.open(ConnectionTarget(url), timeout: 30)
    }
    #endif

    /// The first column of the rows that a statement returns.
    private static func texts(_ sql: String) throws -> [String] {
        #if canImport(CoreDataPostgreSQL)
        try connection().query(sql).rows.map { $0.string(0) }
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
