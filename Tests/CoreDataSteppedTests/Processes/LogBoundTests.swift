import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import StrataSQLite

@Suite("The log of several processes")
struct LogBoundTests {
    private static func options() -> PoolOptions {
        var options = PoolOptions()
        options.access = .readWrite
        options.checkpointPages = 20
        options.restartPages = 60
        return options
    }

    private static let row = "INSERT INTO number (n) VALUES (zeroblob(3000))"

    @Test func `the log stays bounded while processes write and long reads overlap`() async throws {
        let folder = try SharedFolder(.sqlite, signals: "reading", "stop")
        let store = folder.store
        let pool = try ConnectionPool(.file(store.url.path))
        try pool.write { try $0.execute("CREATE TABLE number (n BLOB)") }

        // One of two readers is always reading, each for longer than many commits take.
        async let readers = #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let pool = try ConnectionPool(.file(store.url.path), options: Self.options())
            let stop = open(store.folder + "/stop.pipe", O_RDWR)
            var entry = pollfd(fd: stop, events: Int16(POLLIN), revents: 0)
            var older = try pool.pinSnapshot()
            store.signal("reading")
            while poll(&entry, 1, 10) == 0 {
                let younger = try pool.pinSnapshot()
                _ = try older.read { try $0.firstInt64("SELECT count(*) FROM number") }
                older = younger
            }
        }
        await store.arrival(of: "reading")
        let largest = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    await #expect(processExitsWith: .success) { [store = store as SharedStore] in
                        let pool = try ConnectionPool(.file(store.url.path), options: Self.options())
                        for _ in 0..<1500 { try pool.write { try $0.run(SQL(Self.row)) } }
                    }
                    return 0
                }
            }
            await group.waitForAll()
            return store.size("-wal")
        }
        store.signal("stop")
        _ = await readers

        // 3,000 rows fill 3,000 pages or more. The log's file never shrinks while it is in use.
        expect(largest > 0 && largest < 1200 * 4120, "the log grew to \(largest) bytes")
        try expectEqual(pool.read { try $0.firstInt64("SELECT count(*) FROM number") }, 3000)
        try expectEqual(pool.read { try $0.integrityFaults() }, [])
    }

    @Test func `a copy of the log keeps others from writing meanwhile, and gives up if another one writes`() throws {
        let folder = try SharedFolder(.sqlite)
        let path = folder.store.url.path
        var options = Self.options()
        options.access = .readWriteCreate
        options.checkpointPages = 1
        let pool = try ConnectionPool(.file(path), options: options)
        try pool.write { try $0.execute("CREATE TABLE number (n BLOB)") }
        // The guardian's lock is available unless another connection writes.
        let foreign = try Connection(path: path, access: .readWrite)
        try foreign.execute("BEGIN IMMEDIATE; INSERT INTO number VALUES (1)")

        expectThrows(SQLiteError.self) { try pool.checkpoint(.passive, timeout: 0.02) }
        expectThrows(SQLiteError.self) { try pool.checkpoint(.restart, timeout: 0.02) }
        try foreign.execute("COMMIT")
        try expect(pool.checkpoint(.passive))
        try expect(pool.checkpoint(.truncate) && folder.store.size("-wal") == 0)
    }

    @Test func `patience with readers doubles, and then waits for the log to double`() {
        var upkeep = LogUpkeep()
        var waits: [Double?] = []
        for pages in stride(from: Int32(1000), through: 9000, by: 1000) {
            waits.append(upkeep.restartPatience(pages, limit: 2000, timeout: 0.8))
        }
        expectEqual(waits, [nil, 0.05, 0.1, 0.2, nil, nil, nil, 0.2, nil])
        upkeep.noteCopy(9000)
        // The log is smaller than at the last copy: it has started over, and so does patience.
        let isDue = [9500, 10_000, 5, 1005].map { upkeep.isCopyDue($0, step: 1000) }
        expectEqual(isDue, [false, true, false, true])
        let patience = upkeep.restartPatience(2000, limit: 2000, timeout: 0.8)
        expectEqual(patience, 0.05)
    }
}
