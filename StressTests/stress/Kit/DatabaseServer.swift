import CoreData

#if canImport(CoreDataPostgreSQL)
import StrataPostgreSQL
#endif

/// A server of PostgreSQL of a run's own, that can crash without anybody else's tests.
///
/// `Tests/postgresql-server.sh run` says where the script is that starts one.
final class DatabaseServer: Sendable {
    /// What leads to its database.
    let url: String
    private let folder: String
    private let script: String

    /// Starts one.
    ///
    /// - Parameters:
    ///   - folder: Where its files are to be.
    ///   - settings: Its settings, as `name=value`.
    /// - Throws: `StressError` if it does not start.
    init(_ folder: URL, _ settings: [String]) throws {
        guard let script = ProcessInfo.processInfo.environment["STRATA_POSTGRESQL_SCRIPT"] else {
            throw StressError(
                "this needs a server of its own: Tests/postgresql-server.sh run \(CommandLine.arguments[0]) …"
            )
        }
        (self.script, self.folder) = (script, folder.path)
        url = try Self.run(script, ["start", folder.path] + settings)
    }

    /// Starts one that follows another.
    ///
    /// - Parameters:
    ///   - primary: The one that it follows.
    ///   - folder: Where its files are to be.
    ///   - settings: Its settings, as `name=value`.
    /// - Throws: `StressError` if it does not start.
    init(following primary: DatabaseServer, _ folder: URL, _ settings: [String]) throws {
        (script, self.folder) = (primary.script, folder.path)
        url = try Self.run(script, ["replica", folder.path, primary.folder] + settings)
    }

    private static func run(_ script: String, _ words: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: script)
        process.arguments = words
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let told = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw StressError("the server does not \(words[0])") }
        return String(decoding: told, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Stops it at once, as if it had crashed, and starts it again.
    ///
    /// - Parameter isForgetful: A sabotage: whether its files are then as they were at its last crash.
    /// - Throws: `StressError` if it does not start.
    func crash(isForgetful: Bool = false) throws {
        _ = try Self.run(script, ["halt", folder])
        if isForgetful {
            let (files, former) = (folder + "/data", folder + "/former")
            if FileManager.default.fileExists(atPath: former) {
                _ = try Self.run("/bin/rm", ["-rf", files])
                _ = try Self.run("/bin/cp", ["-a", former, files])
            } else {
                _ = try Self.run("/bin/cp", ["-a", files, former])
            }
        }
        _ = try Self.run(script, ["resume", folder])
    }

    /// Stops it, and removes its files.
    func stop() { _ = try? Self.run(script, ["stop", folder]) }

    /// Ends sessions of clients, in the server's way.
    ///
    /// - Returns: How many.
    func endSessions() throws -> Int {
        #if canImport(CoreDataPostgreSQL)
        try sessions(connection(), "pg_catalog.pg_terminate_backend(pid)").rowCount
        #else
        0
        #endif
    }

    /// Kills the process of one session, so that the server ends all others and recovers; returns when it has begun to.
    ///
    /// - Returns: How many were killed: 0 if there is no session.
    func killSession() throws -> Int {
        #if canImport(CoreDataPostgreSQL)
        let connection = try connection()
        let processes = try sessions(connection, "pid::bigint").rows.map { $0.int64(0) }
        guard let process = processes.first, kill(pid_t(process), SIGKILL) == 0 else { return 0 }
        // Until this session is ended too.
        let end = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < end, (try? connection.query("SELECT 1")) != nil { usleep(1_000) }
        return 1
        #else
        return 0
        #endif
    }

    /// How many transactions it has carried out in its database, as far as sessions have told by now.
    func transactions() throws -> Int64 {
        #if canImport(CoreDataPostgreSQL)
        try connection().query(
            "SELECT xact_commit FROM pg_catalog.pg_stat_database WHERE datname = pg_catalog.current_database()"
        ).firstInt64 ?? 0
        #else
        0
        #endif
    }

    #if canImport(CoreDataPostgreSQL)
    private func connection() throws -> Connection {
        guard let url = URL(string: url) else { throw StressError("\(url) is no URL") }
        return try Connection.open(ConnectionTarget(url), timeout: 30)
    }

    /// Selects something of the sessions of clients but this one, the oldest first.
    private func sessions(_ connection: Connection, _ selection: String) throws -> QueryResult {
        try connection.query(
            """
            SELECT \(selection) FROM pg_catalog.pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_catalog.pg_backend_pid() ORDER BY backend_start
            """
        )
    }
    #endif
}
