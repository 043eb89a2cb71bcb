import CoreData

#if canImport(CoreDataPostgreSQL)
import StrataPostgreSQL
#endif

/// A private PostgreSQL server of a run, which can crash without harm to the tests of others.
///
/// The environment of `Tests/postgresql-server.sh run` names the script that starts one.
final class DatabaseServer: Sendable {
    /// The URL of its database.
    let url: String
    private let folder: String
    private let script: String

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - folder: The folder for its files.
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

    /// Starts a replica of another server.
    ///
    /// - Parameters:
    ///   - primary: The server that it follows.
    ///   - folder: The folder for its files.
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

    /// Stops the server at once, as if it had crashed, and starts it again.
    ///
    /// - Parameter isForgetful: A sabotage: whether its files go back to their state at its last crash.
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

    /// Stops the server, and removes its files.
    func stop() { _ = try? Self.run(script, ["stop", folder]) }

    /// Ends the sessions of clients, with the server's own function.
    ///
    /// - Returns: How many were ended.
    func endSessions() throws -> Int {
        #if canImport(CoreDataPostgreSQL)
        try sessions(connection(), "pg_catalog.pg_terminate_backend(pid)").rowCount
        #else
        0
        #endif
    }

    /// Kills the process of one session, so that the server ends all others and recovers; returns when that has
    /// begun.
    ///
    /// - Returns: How many processes were killed: 0 if there is no session.
    func killSession() throws -> Int {
        #if canImport(CoreDataPostgreSQL)
        let connection = try connection()
        let processes = try sessions(connection, "pid::bigint").rows.map { $0.int64(0) }
        guard let process = processes.first, kill(pid_t(process), SIGKILL) == 0 else { return 0 }
        // Wait until this session is ended too.
        let end = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < end, (try? connection.query("SELECT 1")) != nil { usleep(1_000) }
        return 1
        #else
        return 0
        #endif
    }

    /// The number of transactions committed in its database, as far as sessions have reported them by now.
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

    /// Selects something about all sessions of clients except this one, the oldest first.
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
