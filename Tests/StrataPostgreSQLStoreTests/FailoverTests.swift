import CoreData
import CoreDataPostgreSQL
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

/// A server that a test has for itself, as it crashes it.
private final class PrivateServer {
    let folder = "/tmp/strata-own-\(UInt32.random(in: 0 ... .max))"

    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("postgresql-server.sh").path

    /// One that keeps what it has acknowledged.
    init() throws { try Self.run("start", folder, "fsync=on", "synchronous_commit=on", "full_page_writes=on") }

    /// A streaming replica of another one.
    init(of primary: PrivateServer) throws { try Self.run("replica", folder, primary.folder) }

    deinit { stop() }

    func promote() throws { try Self.run("promote", folder) }

    /// At once, as a power switch would.
    func stop() { try? Self.run("stop", folder) }

    func connection() throws -> Connection {
        let url = try #require(URL(string: "postgresql:///strata?host=\(folder)&user=strata"))
        return try Connection.open(ConnectionTarget(url), timeout: 10)
    }

    private static func run(_ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/bash")
        process.arguments = [script] + arguments
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(arguments[0])")
    }
}

@Suite("PostgreSQL servers that crash and hand over", .enabled(if: Server.isThere), .serialized)
struct FailoverTests {
    private func open(_ hosts: String, history: Bool = false) throws -> NSManagedObjectContext {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try coordinator.addPersistentStore(
            type: .postgreSQL,
            configuration: nil,
            at: #require(URL(string: "postgresql:///strata?host=\(hosts)&user=strata&target_session_attrs=read-write")),
            options: [NSPersistentStoreTimeoutOption: 10, NSPersistentHistoryTrackingKey: history]
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    private func close(_ context: NSManagedObjectContext) {
        guard let coordinator = context.persistentStoreCoordinator else { return }
        for store in coordinator.persistentStores { try? coordinator.remove(store) }
    }

    private func insert(_ name: String, _ context: NSManagedObjectContext) {
        context.performAndWait {
            NSEntityDescription.insertNewObject(forEntityName: "City", into: context).setValue(name, forKey: "name")
        }
    }

    private func names(_ context: NSManagedObjectContext) throws -> [String] {
        try context.performAndWait {
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City"))
                .compactMap { $0.value(forKey: "name") as? String }.sorted()
        }
    }

    /// Saves as soon as there is a server again.
    private func saveInTime(_ context: NSManagedObjectContext) throws {
        let end = ContinuousClock.now + .seconds(60)
        while true {
            do {
                return try context.performAndWait { try context.save() }
            } catch  where ContinuousClock.now < end {
                usleep(100_000)
            }
        }
    }

    @Test func `what was saved survives a crash of the server, and contexts go on`() throws {
        let server = try PrivateServer()
        let context = try open(server.folder)
        defer { close(context) }
        insert("Rome", context)
        try context.performAndWait { try context.save() }
        // One process that dies takes the others with it, and the server recovers.
        let victim = try server.connection()
        #expect(kill(victim.serverProcess, SIGKILL) == 0)
        insert("Oslo", context)
        try saveInTime(context)
        #expect(try names(context) == ["Oslo", "Rome"])
    }

    @Test func `after a promotion contexts go on with the new server, and keys do not meet`() throws {
        let primary = try PrivateServer()
        let context = try open(primary.folder)
        insert("Rome", context)
        try context.performAndWait { try context.save() }
        close(context)
        let replica = try PrivateServer(of: primary)
        let second = try open("\(primary.folder),\(replica.folder)", history: true)
        defer { close(second) }
        insert("Oslo", second)
        try second.performAndWait { try second.save() }
        let position = try primary.connection().query("SELECT pg_current_wal_lsn()::text")[0].string(0)
        let end = ContinuousClock.now + .seconds(60)
        while try replica.connection().query(
            "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn",
            [.text(position)]
        ).firstInt64 != 1, ContinuousClock.now < end { usleep(20_000) }
        primary.stop()
        try replica.promote()
        insert("Bern", second)
        try saveInTime(second)
        #expect(try names(second) == ["Bern", "Oslo", "Rome"])
        let keys = try replica.connection().query("SELECT count(DISTINCT strata_id) FROM strata.city")
        #expect(keys.firstInt64 == 3)
    }
}
