import CoreData
import Expectations
import StrataLocks
import Synchronization
import TestSupport
import Testing

@testable import StrataSQLite

extension FailingDiskTests {
    private static func options(step: Int32 = 20, restart: Int32 = 10_000) -> PoolOptions {
        var options = PoolOptions()
        options.checkpointPages = step
        options.restartPages = restart
        return options
    }

    /// Opens a database whose files are watched.
    private static func open(_ url: URL, _ options: PoolOptions) throws -> (ConnectionPool, Watch) {
        let watch = Watch(url)
        let pool = try ConnectionPool(.file(url.path), options: options)
        try pool.write { try $0.execute("CREATE TABLE number (n BLOB)") }
        watch.own.store(0, ordering: .relaxed)
        watch.others.store(0, ordering: .relaxed)
        return (pool, watch)
    }

    /// Makes the log some pages longer.
    private static func commit(_ pool: ConnectionPool, _ count: Int = 1) throws {
        for _ in 0..<count { try pool.write { try $0.run("INSERT INTO number (n) VALUES (zeroblob(3000))") } }
    }

    private static func rows(_ pool: ConnectionPool) throws -> Int64? {
        try pool.read { try $0.firstInt64("SELECT count(*) FROM number") }
    }

    private static func logSize(_ url: URL) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: url.path + "-wal")
        return attributes?[.size] as? Int ?? 0
    }

    /// Counts what is done to the database file, by this thread and by others, and lets others wait at its gate.
    private final class Watch: Sendable {
        let own = Atomic(0)
        let others = Atomic(0)
        /// Whether a thread that writes to the file has to wait.
        let isShut = Atomic(false)
        /// The number of writes of others that are to fail.
        let failures = Atomic(0)
        /// The number of threads that wait.
        let waiting = Atomic(0)
        private let path: String
        private let thread = pthread_self()

        init(_ url: URL) {
            path = url.path
            FailingDisk.observe(url.path) { [self] in see($0) }
        }

        private func see(_ event: FailingDisk.Event) -> Bool {
            guard event.path == path else { return false }
            guard pthread_equal(pthread_self(), thread) == 0 else {
                own.add(1, ordering: .relaxed)
                return false
            }
            others.add(1, ordering: .relaxed)
            waiting.add(1, ordering: .relaxed)
            while isShut.load(ordering: .relaxed) { usleep(500) }
            waiting.subtract(1, ordering: .relaxed)
            guard failures.load(ordering: .relaxed) > 0 else { return false }
            failures.subtract(1, ordering: .relaxed)
            return true
        }
    }

    /// Starts a copy that stops at its first write to the file.
    ///
    /// - Returns: The number of commits that it took.
    private static func beginCopy(_ pool: ConnectionPool, _ watch: Watch) throws -> Int {
        let copier = try require(pool.copier)
        watch.isShut.store(true, ordering: .relaxed)
        var count = 0
        while copier.isIdle {
            try commit(pool)
            count += 1
        }
        try wait { watch.waiting.load(ordering: .relaxed) == 1 }
        return count
    }

    @Test func `commits neither write to the file nor sync it`() throws {
        try withStore { url in
            let (pool, watch) = try Self.open(url, Self.options())
            let copier = try require(pool.copier)
            for _ in 0..<10 { try Self.commit(pool, 30) }
            try wait { copier.ends.load(ordering: .relaxed) > 0 }
            expectEqual(watch.own.load(ordering: .relaxed), 0)
            expect(watch.others.load(ordering: .relaxed) > 100)
            // When all was copied, the log has started over.
            try Self.commit(pool)
            try expectEqual(Self.rows(pool), 301)
            try expectEqual(pool.read { try $0.integrityFaults() }, [])
        }
    }

    @Test func `commits and reads go on while a copy takes long`() throws {
        try withStore { url in
            let (pool, watch) = try Self.open(url, Self.options())
            let count = try Self.beginCopy(pool, watch)
            try Self.commit(pool, 100)
            try expectEqual(Self.rows(pool), Int64(count) + 100)
            expectEqual(watch.own.load(ordering: .relaxed), 0)
            watch.isShut.store(false, ordering: .relaxed)
            let copier = try require(pool.copier)
            try wait { copier.ends.load(ordering: .relaxed) > 0 }
            try expectEqual(pool.read { try $0.integrityFaults() }, [])
        }
    }

    @Test func `a commit waits for a copy when the log has twice the pages at which it should start over`() throws {
        try withStore { url in
            let (pool, watch) = try Self.open(url, Self.options(restart: 50))
            let count = try Self.beginCopy(pool, watch)
            let done = Atomic(0)
            let thread = onThread {
                for _ in 0..<200 {
                    try Self.commit(pool)
                    done.add(1, ordering: .relaxed)
                }
            }
            let copier = try require(pool.copier)
            try wait { copier.isKeepingWriters && Self.logSize(url) > 100 * 4120 }
            let before = done.load(ordering: .relaxed)
            usleep(200_000)
            expect(before < 200 && done.load(ordering: .relaxed) <= before + 1)
            watch.isShut.store(false, ordering: .relaxed)
            try thread.join()
            try expectEqual(Self.rows(pool), Int64(count) + 200)
        }
    }

    @Test(arguments: [true, false])
    func `a long log is ended before the writers that wait, and a short one only without writers`(isLong: Bool) throws {
        try withStore { url in
            let (pool, watch) = try Self.open(url, Self.options(restart: isLong ? 20 : 10_000))
            let copier = try require(pool.copier)
            let count = try Self.beginCopy(pool, watch)
            let endsBefore = Atomic(-1)
            let writer = try pool.writeWithoutTransaction { _ in
                let writer = onThread {
                    try pool.write { connection in
                        endsBefore.store(copier.ends.load(ordering: .relaxed), ordering: .relaxed)
                        try connection.run("INSERT INTO number (n) VALUES (zeroblob(3000))")
                    }
                }
                try wait { pool.turn.waiterCount == 1 }
                watch.isShut.store(false, ordering: .relaxed)
                // The copy beside writers ends. Then the copier waits for the turn before the writer, or gives it up.
                try wait { isLong ? pool.turn.waiterCount == 2 : copier.isIdle }
                return writer
            }
            try writer.join()
            expectEqual(endsBefore.load(ordering: .relaxed), isLong ? 1 : 0)
            try expectEqual(Self.rows(pool), Int64(count) + 1)
            try expectEqual(pool.read { try $0.integrityFaults() }, [])
        }
    }

    @Test func `a pool that is closed gives up the copy, and leaves no log`() throws {
        try withStore { url in
            let (pool, watch) = try Self.open(url, Self.options())
            let count = try Self.beginCopy(pool, watch)
            let thread = onThread { try pool.close() }
            try wait { pool.copier?.isStopped == true }
            watch.isShut.store(false, ordering: .relaxed)
            try thread.join()
            expect(!FileManager.default.fileExists(atPath: url.path + "-wal"))
            let again = try ConnectionPool(.file(url.path))
            try expectEqual(Self.rows(again), Int64(count))
            try expectEqual(again.read { try $0.integrityFaults() }, [])
        }
    }

    @Test func `a pool that is released during a copy leaves no log`() throws {
        try withStore { url in
            var opened: (pool: ConnectionPool, watch: Watch)? = try Self.open(url, Self.options())
            let watch = try require(opened).watch
            let copier = try require(opened?.pool.copier)
            _ = try Self.beginCopy(try require(opened).pool, watch)
            let opener = onThread {
                try wait { copier.isStopped }
                watch.isShut.store(false, ordering: .relaxed)
            }
            opened = nil
            try opener.join()
            expect(!FileManager.default.fileExists(atPath: url.path + "-wal"))
        }
    }

    @Test func `a checkpoint on demand does not meet the copy`() throws {
        try withStore { url in
            let (pool, watch) = try Self.open(url, Self.options())
            _ = try Self.beginCopy(pool, watch)
            let copier = try require(pool.copier)
            let opener = onThread {
                try wait { copier.isKeepingWriters }
                watch.isShut.store(false, ordering: .relaxed)
            }
            pool.emptyLogIfUnread()
            try opener.join()
            expectEqual(Self.logSize(url), 0)
            // Copies go on afterwards.
            let copies = watch.others.load(ordering: .relaxed)
            try Self.commit(pool, 50)
            try wait { watch.others.load(ordering: .relaxed) > copies }
        }
    }

    @Test func `a copy syncs both files beside a writer, so that its end has little to sync`() throws {
        try withStore { url in
            let (pool, watch) = try Self.open(url, Self.options())
            let copier = try require(pool.copier)
            _ = try Self.beginCopy(pool, watch)
            // This commit comes too late for the copy. So SQLite does not sync the file by itself.
            try Self.commit(pool)
            let ends = copier.ends.load(ordering: .relaxed)
            let before = FailingDisk.events.count
            try pool.write { _ in
                watch.isShut.store(false, ordering: .relaxed)
                try wait { copier.isIdle }
            }
            let synced = FailingDisk.events.dropFirst(before).filter { $0.kind == .sync }.map(\.path)
            expectEqual(Set(synced), [url.path, url.path + "-wal"])
            expectEqual(copier.ends.load(ordering: .relaxed), ends)
        }
    }

    @Test func `a copy that fails loses nothing, and is tried again`() throws {
        try withStore { url in
            let (pool, watch) = try Self.open(url, Self.options())
            watch.failures.store(1, ordering: .relaxed)
            try Self.commit(pool, 30)
            let failure = Locked<SQLiteError?>(nil)
            try wait {
                if let found = pool.takeCheckpointFailure() { failure.withLock { $0 = found } }
                return failure.withLock { $0 } != nil
            }
            expectEqual(failure.withLock { $0?.code }, .inputOutput)
            expect(pool.takeCheckpointFailure() == nil)
            try Self.commit(pool, 50)
            let copier = try require(pool.copier)
            try wait { copier.ends.load(ordering: .relaxed) > 0 }
            expect(pool.takeCheckpointFailure() == nil)
            try expectEqual(Self.rows(pool), 80)
            try expectEqual(pool.read { try $0.integrityFaults() }, [])
        }
    }

    @Test func `a pinned version is kept while the log is copied, and the log starts over after it`() throws {
        try withStore { url in
            let (pool, watch) = try Self.open(url, Self.options())
            try Self.commit(pool, 5)
            let copier = try require(pool.copier)
            // Without a pin a copy may have ended.
            try wait { copier.isIdle }
            var pin: PinnedSnapshot? = try pool.pinSnapshot()
            let ends = copier.ends.load(ordering: .relaxed)
            try pool.write { try $0.run("DELETE FROM number") }
            try Self.commit(pool, 100)
            try wait { copier.isIdle }
            try expectEqual(pin?.read { try $0.firstInt64("SELECT count(*) FROM number") }, 5)
            expectEqual(copier.ends.load(ordering: .relaxed), ends)
            pin = nil
            try Self.commit(pool, 50)
            try wait { copier.ends.load(ordering: .relaxed) > ends }
            try expectEqual(Self.rows(pool), 150)
            expectEqual(watch.own.load(ordering: .relaxed), 0)
        }
    }

    @Test func `the log stays bounded under eight writers that never pause, beside a reader`() throws {
        try withStore { url in
            let (pool, _) = try Self.open(url, Self.options(restart: 160))
            let isDone = Atomic(false)
            let reader = onThread {
                while !isDone.load(ordering: .relaxed) { _ = try Self.rows(pool) }
            }
            let largest = Atomic(0)
            let writers = (0..<8).map { _ in
                onThread {
                    for _ in 0..<250 {
                        try Self.commit(pool)
                        let size = Self.logSize(url)
                        if size > largest.load(ordering: .relaxed) { largest.store(size, ordering: .relaxed) }
                    }
                }
            }
            for writer in writers { try writer.join() }
            isDone.store(true, ordering: .relaxed)
            try reader.join()
            // 2,000 commits have written twice as many pages or more. A read that takes long on a busy machine may keep the
            // log for a while.
            let pages = largest.load(ordering: .relaxed) / 4120
            expect((20..<1000).contains(pages), "the log had \(pages) pages")
            try expectEqual(Self.rows(pool), 2000)
            try expectEqual(pool.read { try $0.integrityFaults() }, [])
        }
    }

    @Test func `commits copy the log if the user says so, and nothing copies where there is no log`() throws {
        try withStore { url in
            var options = Self.options()
            options.pragmas = ["wal_autocheckpoint": "20"]
            do {
                let (pool, watch) = try Self.open(url, options)
                expect(pool.copier == nil)
                try Self.commit(pool, 30)
                expect(watch.own.load(ordering: .relaxed) > 0)
                expectEqual(watch.others.load(ordering: .relaxed), 0)
            }
            options.pragmas = ["journal_mode": "DELETE"]
            try expect(ConnectionPool(.file(url.path), options: options).copier == nil)
            options.pragmas = [:]
            try expect(ConnectionPool(.memory, options: options).copier == nil)
            options.access = .readOnly
            try expect(ConnectionPool(.file(url.path), options: options).copier == nil)
        }
    }

    @Test func `the next save reports a copy, and the error of one that failed`() throws {
        try withStore { url in
            let log = EventLog()
            let watch = Watch(url)
            let coordinator = try open(url, synchronous: "NORMAL")
            coordinator.instrument = log
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            watch.failures.store(1, ordering: .relaxed)
            for isFailure in [true, false] {
                try wait {
                    context.performAndWait {
                        for number in 0..<4 {
                            let name = String(repeating: "n", count: 500_000 + number)
                            NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                                .setValue(name, forKey: "name")
                        }
                        try? context.save()
                    }
                    return log.events.contains { $0.kind == .checkpoint && ($0.errorCode != nil) == isFailure }
                }
            }
            try close(coordinator)
        }
    }

    @Test func `a log may have as many pages as its first transaction needs before writers wait`() {
        let pace = LogPace(step: 1000, restart: 8000)
        let waits = [7999, 8000, 15_999, 16_000].map { pace.wait($0, first: 1000, 60) }
        expectEqual(waits, [nil, LogPace.shortWait, LogPace.shortWait, LogUpkeep.longestPatience])
        let large = [99_999, 100_000, 199_999, 200_000].map { pace.wait($0, first: 50_000, 2) }
        expectEqual(large, [nil, LogPace.shortWait, LogPace.shortWait, 0.5])
    }

    private final class EventLog: CoreDataInstrument {
        private let all = Locked<[CoreDataEvent]>([])
        var events: [CoreDataEvent] { all.withLock { $0 } }
        func record(_ event: CoreDataEvent) { all.withLock { $0.append(event) } }
    }
}
