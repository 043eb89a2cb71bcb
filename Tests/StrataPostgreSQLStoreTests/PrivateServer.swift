import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

/// A server for one test, so that other tests do not suffer from it; see `Tests/postgresql-server.sh`.
///
/// It is stopped and removed when it is released.
final class PrivateServer: Sendable {
    /// The folder with the server's files and its socket.
    let folder: String
    /// Leads to the schema `shop`.
    let url: URL

    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("postgresql-server.sh").path

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - settings: The server's settings, as `name=value`.
    ///   - environment: Variables of the script's environment.
    ///   - port: The port that it listens on, which its socket uses too; `nil` for the usual socket alone.
    /// - Throws: An error if the server does not start.
    init(_ settings: [String] = [], environment: [String: String] = [:], port: Int? = nil) throws {
        folder = Self.newFolder()
        guard let port else {
            url = try Self.start(["start", folder] + settings, environment)
            return
        }
        let all = settings + ["port=\(port)", "listen_addresses=127.0.0.1"]
        let socket = try Self.start(["start", folder] + all, environment.merging(["PGPORT": "\(port)"]) { $1 })
        url = try require(URL(string: "\(socket.absoluteString)&port=\(port)"))
    }

    /// Starts a server that follows another.
    init(following primary: PrivateServer, _ settings: [String] = []) throws {
        folder = Self.newFolder()
        url = try Self.start(["replica", folder, primary.folder] + settings, [:])
    }

    deinit { _ = try? Self.run(["stop", folder], [:]) }

    /// A short path, since a socket's path has at most 107 bytes.
    static func newFolder() -> String { "\(place)/strata-own." + String(UInt64.random(in: 0 ... .max), radix: 36) }

    /// The parent of the servers' folders: in memory if there is room for some servers, since each has a thousand
    /// files.
    private static let place: String = {
        var told = statvfs()
        let isThere = statvfs("/dev/shm", &told) == 0 && access("/dev/shm", W_OK) == 0
        return isThere && told.f_bavail * told.f_frsize > 4 << 30 ? "/dev/shm" : "/tmp"
    }()

    private static func start(_ words: [String], _ environment: [String: String]) throws -> URL {
        try require(URL(string: try run(words, environment) + "&schema=shop"))
    }

    @discardableResult
    static func run(_ words: [String], _ environment: [String: String]) throws -> String {
        let program = try Program(running: [script] + words, environment: environment, withErrors: false)
        try require(program.hasSucceeded, "the server does not \(words.first ?? "")")
        return program.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Ends a replica's following, so that it accepts writes.
    func promote() throws { try Self.run(["promote", folder], [:]) }

    /// Stops the server at once, as if it had crashed.
    func halt() throws { try Self.run(["halt", folder], [:]) }

    /// Stops the server and all of its processes temporarily.
    ///
    /// - Returns: The processes, which go on after ``thaw(_:)``. The server cannot be ended before that.
    /// - Throws: An error if the server does not run.
    func freeze() throws -> [pid_t] {
        let file = try String(contentsOfFile: folder + "/data/postmaster.pid", encoding: .utf8)
        let first = try require(file.split(separator: "\n").first.flatMap { pid_t($0) })
        kill(first, SIGSTOP)
        let all = try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { pid_t($0) }
        let others = all.filter { process in
            // After the name in brackets come the state and the parent.
            let told = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
            return told?.split(separator: ")").last?.split(separator: " ").dropFirst().first.flatMap { pid_t($0) }
                == first
        }
        for process in others { kill(process, SIGSTOP) }
        return [first] + others
    }

    /// Continues processes that were stopped temporarily.
    func thaw(_ processes: [pid_t]) { for process in processes { kill(process, SIGCONT) } }

    /// Makes the first change of a table in each transaction take more than a second, as if the table were large.
    func slowDown() throws {
        try connection().command(
            """
            CREATE FUNCTION public.take_time() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
            IF pg_catalog.current_setting('shop.slow', true) IS DISTINCT FROM 'seen' THEN
            PERFORM pg_catalog.set_config('shop.slow', 'seen', true), pg_catalog.pg_sleep(1.5); END IF; END $$;
            CREATE EVENT TRIGGER slow ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION public.take_time()
            """
        )
    }

    /// The URL for a session whose statements may take one second.
    var limitedURL: URL {
        get throws { try require(URL(string: url.absoluteString + "&options=-c%20statement_timeout%3D1000")) }
    }

    /// Starts the server again.
    func resume() throws { try Self.run(["resume", folder], [:]) }

    /// Waits until a replica shows everything that its primary has.
    func catchUp(with primary: PrivateServer) throws {
        let position = try require(try primary.text("SELECT pg_current_wal_insert_lsn()::text"))
        let sql = "SELECT 1 WHERE pg_last_wal_replay_lsn() >= $1::text::pg_lsn"
        var session = try connection()
        try waitUntil {
            do {
                return try session.query(sql, [.text(position)]).rowCount > 0
            } catch let error as PostgreSQLError where error.message.contains("conflict with recovery") {
                // The read's snapshot was in the way of the changes that the replica applies, which ends the session
                // too.
                session = try connection()
                return false
            }
        }
    }

    /// A session that sees the schema.
    func connection() throws -> Connection {
        let target = try ConnectionTarget(url)
        let connection = try Connection.open(target, timeout: 60)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        return connection
    }

    /// The first column of the first row of a statement's answer.
    func text(_ sql: String) throws -> String? {
        let result = try connection().command(sql)
        return result.rowCount > 0 ? result[0].optionalString(0) : nil
    }
}

/// A program's stack on a private server.
final class ServerStack: Sendable {
    let coordinator: NSPersistentStoreCoordinator

    init(_ url: URL, history: Bool = false, _ options: [String: Any] = [:]) throws {
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        var all: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: history]
        for (key, value) in options { all[key] = value }
        try coordinator.addPersistentStore(type: .postgreSQL, configuration: nil, at: url, options: all)
    }

    deinit {
        for store in coordinator.persistentStores { try? coordinator.remove(store) }
    }

    func context(readsFromReplicas: Bool = false) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.readsFromReplicas = readsFromReplicas
        return context
    }

    /// The cities that a new context sees.
    ///
    /// The store is removed with the stack, so the stack has to stay until the answer is there.
    func cities() throws -> [String] { try withExtendedLifetime(self) { try Cities.fetched(context()) } }

    /// Saves a new city.
    func insert(_ name: String) throws {
        let context = context()
        try withExtendedLifetime(self) {
            try context.performAndWait {
                NSEntityDescription.insertNewObject(forEntityName: "City", into: context).setValue(name, forKey: "name")
                try context.save()
            }
        }
    }
}

/// The cities that a context sees, by three ways of fetching.
enum Cities {
    private static var request: NSFetchRequest<NSManagedObject> { NSFetchRequest(entityName: "City") }

    private static func names(_ cities: [NSManagedObject]) -> [String] {
        cities.compactMap { $0.value(forKey: "name") as? String }.sorted()
    }

    /// The cities by a fetch that blocks.
    static func fetched(_ context: NSManagedObjectContext) throws -> [String] {
        try context.performAndWait { names(try context.fetch(request)) }
    }

    /// The cities by an asynchronous fetch.
    static func awaited(_ context: NSManagedObjectContext) async throws -> [String] {
        try await context.fetch(request, progress: nil) { names($0) }
    }

    /// The cities by a loop over rows.
    static func looped(_ context: NSManagedObjectContext) async throws -> [String] {
        var found: [String] = []
        for try await batch in context.rows(for: request, batchSize: 2) {
            found += batch.compactMap { $0["name"] as? String }
        }
        return found.sorted()
    }
}
