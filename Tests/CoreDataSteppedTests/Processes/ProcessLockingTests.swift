import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLite

@Suite("Locking between processes")
struct ProcessLockingTests {
    @Test func `a save that waits for another process in vain names both, and the time, and changes nothing`()
        async throws
    {
        let folder = try SharedFolder(.sqlite, signals: "holds", "release")
        let store = folder.store
        let context = try await store.contextWithCity("import", options: [NSPersistentStoreTimeoutOption: 0.1])
        async let holder = #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let connection = try Connection(path: store.url.path, access: .readWrite)
            try connection.execute("BEGIN IMMEDIATE")
            store.signal("holds")
            store.wait(for: "release")
            try connection.execute("ROLLBACK")
        }
        await store.arrival(of: "holds")

        try await context.perform {
            let city = try context.city()
            city.population = 7
            context.makeCity("Ulm")
            let new = try require(context.insertedObjects.first)
            let error = expectThrows(CocoaError.self) { try context.save() }

            expectEqual(error?.code, .persistentStoreTimeout)
            let text = error?.localizedDescription ?? ""
            expect(text.contains("context \"import\" of process \(getpid()) waited 0.1"), "\(text)")
            #if os(Linux)
            let wait = try require((error?.userInfo[NSUnderlyingErrorKey] as? SQLiteError)?.wait)
            let holder = try require(wait.holder)
            expect(holder.processID != getpid() && text.contains("for \(holder)"), "\(text)")
            expect(wait.seconds >= 0.1 && wait.seconds < 30)
            #endif
            expect(context.insertedObjects == [new] && new.objectID.isTemporaryID)
            expect(context.updatedObjects == [city] && city.population == 7)
            store.signal("release")
        }
        _ = await holder
        try await context.perform {
            try context.save()
            expect(!context.hasChanges)
        }
    }

    @Test func `a process that writes without a break lets another have its turn`() async throws {
        let folder = try SharedFolder(.sqlite, signals: "busy", "stop")
        let store = folder.store
        let pool = try ConnectionPool(.file(store.url.path))
        try pool.write { try $0.execute("CREATE TABLE number (n INTEGER); INSERT INTO number VALUES (0)") }
        async let other = #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let pool = try ConnectionPool(.file(store.url.path))
            let stop = open(store.folder + "/stop.pipe", O_RDWR)
            var entry = pollfd(fd: stop, events: Int16(POLLIN), revents: 0)
            var count = 0
            while poll(&entry, 1, 0) == 0 {
                try pool.write { connection in
                    // Each turn takes some milliseconds with the lock, and almost no time without it.
                    let work = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 30000)"
                    _ = try connection.firstInt64(SQL("\(work) SELECT count(*) FROM r"))
                    try connection.run("UPDATE number SET n = n + 1")
                }
                count += 1
                if count == 10 { store.signal("busy") }
            }
        }
        await store.arrival(of: "busy")

        func writesOfOther() throws -> Int64 { try pool.read { try $0.firstInt64("SELECT n FROM number") } ?? 0 }
        let before = try writesOfOther()
        for _ in 0..<20 { try pool.write { try $0.run("INSERT INTO number VALUES (0)") } }
        let between = try writesOfOther() - before
        store.signal("stop")
        _ = await other

        // By chance alone, this process would find the lock free about once in a hundred writes of the other.
        expect(between < 20 * 25, "\(between) writes of the other to 20 here")
        try expect(
            FileManager.default.contentsOfDirectory(atPath: store.folder).contains("store.sqlite-next") == false
        )
    }

    /// The most turns that others may have between two turns of one process, or while it waits.
    ///
    /// The number is several times what fair locking takes: a turn lasts longer than a waiter's pause, and the sign
    /// goes round. If chance decided who gets the lock, then a process would wait for more than a hundred turns.
    private static let longestAbsence = 50

    @Test func `among three busy processes and one that comes now and then none waits for many turns`()
        async throws
    {
        let folder = try SharedFolder(.sqlite, signals: "busy", "come", "stop")
        let store = folder.store
        let pool = try ConnectionPool(.file(store.url.path))
        try pool.write { try $0.execute("CREATE TABLE turn (number INTEGER PRIMARY KEY, process INTEGER)") }
        // The visitor has a separate thread, since each process that the test awaits may hold a thread of the task
        // pool.
        let seen = Shared<Result<(waits: [Int], turns: [Int]), any Error>?>(nil)
        Thread.detachNewThread {
            let result = Result { try Self.visit(store, pool) }
            seen.update { $0 = result }
            store.signal("stop")
        }
        await withTaskGroup(of: Void.self) { group in
            for process in 1...3 {
                group.addTask {
                    await #expect(processExitsWith: .success) {
                        [store = store as SharedStore, process = process as Int] in
                        let pool = try ConnectionPool(.file(store.url.path))
                        let stop = open(store.folder + "/stop.pipe", O_RDWR)
                        var entry = pollfd(fd: stop, events: Int16(POLLIN), revents: 0)
                        var count = 0
                        // If the test ends early, then this process gets no signal to stop.
                        let parent = getppid()
                        while poll(&entry, 1, 0) == 0, getppid() == parent {
                            // Each turn takes some milliseconds with the lock, and almost no time without it.
                            let turn = try Self.takeTurn(process, 30_000, pool)
                            count += 1
                            if count == 10 { store.signal("busy") }
                            if turn.isMultiple(of: 20) { store.signal("come") }
                        }
                    }
                }
            }
        }
        let (waits, turns) = try require(seen.current).get()

        expect(waits.allSatisfy { $0 <= Self.longestAbsence }, "turns of others before one now and then: \(waits)")
        for process in 1...3 {
            let absences = turns.split(separator: process, omittingEmptySubsequences: false).map(\.count)
            expect((absences.max() ?? 0) <= Self.longestAbsence, "turns without process \(process): \(absences)")
            let share = turns.count { $0 == process }
            expect(share * 10 >= turns.count, "\(share) of \(turns.count) turns were of process \(process)")
        }
    }

    /// Takes a turn each time that it is called.
    ///
    /// - Returns: For each of its turns, the number of turns that others had while it waited; and all turns since it
    ///   began.
    private static func visit(_ store: SharedStore, _ pool: ConnectionPool) throws -> (waits: [Int], turns: [Int]) {
        for _ in 1...3 { store.wait(for: "busy") }
        let first = try lastTurn(pool)
        var waits: [Int] = []
        for _ in 1...20 {
            store.wait(for: "come")
            let before = try lastTurn(pool)
            waits.append(try takeTurn(0, 1, pool) - before - 1)
        }
        return (waits, try turns(after: first, pool))
    }

    /// Takes a turn: counts up to `steps` with the lock, and stores which process had it.
    ///
    /// - Returns: The number of the turn; they are numbered in the order in which the lock was given.
    private static func takeTurn(_ process: Int, _ steps: Int, _ pool: ConnectionPool) throws -> Int {
        try pool.write { connection in
            let work = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < \(steps))"
            _ = try connection.firstInt64(SQL("\(work) SELECT count(*) FROM r"))
            try connection.run(SQL("INSERT INTO turn (process) VALUES (\(process))"))
            return Int(connection.lastInsertedKey)
        }
    }

    private static func lastTurn(_ pool: ConnectionPool) throws -> Int {
        Int(try pool.read { try $0.firstInt64("SELECT max(number) FROM turn") } ?? 0)
    }

    /// The processes that have had the turns after one, in order.
    private static func turns(after number: Int, _ pool: ConnectionPool) throws -> [Int] {
        try pool.read { connection in
            let statement = try connection.statement(
                SQL("SELECT process FROM turn WHERE number > \(number) ORDER BY number")
            )
            var processes: [Int] = []
            while try statement.step() { processes.append(Int(statement[0].int64)) }
            return processes
        }
    }

    @Test func `the sign of a process that has died, or does not go on, holds no other up`() async throws {
        let folder = try SharedFolder(.sqlite)
        let store = folder.store
        let pool = try ConnectionPool(.file(store.url.path))
        try pool.write { try $0.execute("CREATE TABLE number (n INTEGER)") }
        let path = store.url.path + "-next"

        await #expect(processExitsWith: .signal(SIGKILL)) { [store = store as SharedStore] in
            let sign = WaitSign(database: store.url.path)
            sign.putUp()
            precondition(sign.isUp)
            kill(getpid(), SIGKILL)
        }
        expect(FileManager.default.fileExists(atPath: path))
        try pool.write { try $0.run("INSERT INTO number VALUES (1)") }
        expect(!FileManager.default.fileExists(atPath: path))

        let stopped = WaitSign(database: store.url.path)
        stopped.putUp()
        let second = WaitSign(database: store.url.path)
        second.putUp()
        expect(stopped.isUp && !second.isUp)
        try pool.write { try $0.run("INSERT INTO number VALUES (2)") }
        expect(FileManager.default.fileExists(atPath: path))
        stopped.takeDown()
        expect(!FileManager.default.fileExists(atPath: path))
    }
}
