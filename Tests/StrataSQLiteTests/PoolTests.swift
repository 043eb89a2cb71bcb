import Expectations
import Foundation
import StrataLocks
import Synchronization
import Testing

@testable import StrataSQLite

@Suite("Readers and the writer of a pool")
struct PoolTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    // MARK: - Transactions

    @Test func `a write that throws leaves nothing`() throws {
        struct Unrelated: Error {}
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1])

        expectThrows(Unrelated.self) {
            try pool.write { connection in
                try connection.insert([10])
                throw Unrelated()
            }
        }
        do {
            let lease = try pool.writer()
            try lease.connection.insert([100])
        }
        do {
            let lease = try pool.writer()
            try lease.connection.insert([1000])
            lease.rollBack()
            try expectEqual(pool.sum(), 1, "rolled back at once")
        }

        try expectEqual(pool.sum(), 1)
    }

    @Test func `a commit that fails is rolled back and the pool goes on`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1])
        try pool.write { connection in
            try connection.execute(
                """
                CREATE TABLE parent (id INTEGER PRIMARY KEY);
                CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED)
                """
            )
        }
        _ = try pool.writeWithoutTransaction { try $0.setPragma("foreign_keys", "ON") }

        let error = try failure {
            try pool.write { connection in
                try connection.insert([10])
                try connection.run("INSERT INTO child VALUES (7)")
            }
        }

        expect(error.code == .constraint && error.operation == .commit)
        try expectEqual(pool.sum(), 1)
        try pool.write { try $0.insert([2]) }
        try expectEqual(pool.sum(), 3)
    }

    @Test func `a connection with an input or output error is replaced`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1])
        let first = try pool.write { connection in
            // A failed sync would be reported like this.
            let error = connection.failure(ResultCode.inputOutput.rawValue, .commit, sql: nil)
            expectEqual(error.code, .inputOutput)
            return connection
        }

        let second = try pool.write { connection in
            try connection.insert([2])
            return connection
        }

        expect(first !== second)
        try expectEqual(pool.sum(), 3)
    }

    @Test func `a second write inside a write is refused at once`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1])
        let twin = try ConnectionPool(.file(folder.file()))
        try pool.write { _ in
            let errors = [try failure { try pool.write { _ in } }, try failure { try twin.write { _ in } }]
            expectEqual(errors.map(\.code), [.misuse, .misuse])
        }
        try twin.write { try $0.insert([2]) }
        try expectEqual(pool.sum(), 3)
    }

    @Test func `a statement that outlives its lease traps`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            struct Keep: ~Copyable {
                let statement: Statement
            }
            let pool = try ConnectionPool(.memory)
            func leak() throws -> Keep {
                let lease = try pool.reader()
                return Keep(statement: try lease.connection.statement("SELECT 1"))
            }
            _ = try leak()
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(message.contains("a Statement outlived the lease of its connection"))
    }

    // MARK: - Readers beside a writer

    // reader                          writer
    //                                 begin, insert 10
    // sum = 1
    // begin, sum = 1
    //                                 commit
    // sum = 1 (same transaction)
    // end; sum = 11
    @Test func `a reader sees the last commit, a snapshot keeps it`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1])
        let writer = try pool.writer()
        try writer.connection.insert([10])
        try expectEqual(pool.sum(), 1)
        do {
            let snapshot = try pool.reader(isSnapshot: true)
            try expectEqual(snapshot.connection.sum(), 1)
            try writer.commit()
            try expectEqual(snapshot.connection.sum(), 1)
        }
        try expectEqual(pool.sum(), 11)
    }

    @Test func `readers never wait for a writer that does not end`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1])
        let writer = try pool.writer()
        try writer.connection.insert([10])

        let threads = (0..<pool.options.maximumReaders).map { _ in
            onThread {
                for _ in 0..<50 {
                    let sum = try pool.read(isSnapshot: true, timeout: 0) { try $0.sum() }
                    expectEqual(sum, 1)
                }
            }
        }
        for thread in threads { try thread.join() }
    }

    @Test func `readers beyond the limit wait their turn, and not for ever`() throws {
        var options = PoolOptions()
        options.maximumReaders = 2
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1], options: options)
        let journal = Journal()
        var waiting: [JoinableThread] = []
        do {
            let first = try pool.reader()
            let second = try pool.reader()
            expect(first.connection !== second.connection)

            let error = try failure { _ = try pool.read(timeout: 0.01) { try $0.sum() } }
            expect(error.code == .busy && error.operation == .waitForReader)
            expectEqual(error.wait?.blocker, .otherThread)
            expect((error.wait?.seconds ?? 0) >= 0.01)

            for name in ["a", "b", "c"] {
                let queued = waiting.count
                waiting.append(
                    onThread {
                        try pool.read { _ in journal.add(name) }
                    }
                )
                try wait { pool.readers.waiterCount == queued + 1 }
            }
            expectEqual(journal.all, [])
            // One connection comes back, so the waiting threads read one after the other.
            _ = consume second
            for thread in waiting { try thread.join() }
        }
        expectEqual(journal.all, ["a", "b", "c"])
    }

    // MARK: - Writers

    @Test func `threads write in the order of their coming, over all pools of the file`() throws {
        let pools = [
            try ConnectionPool.withNumbers(at: folder.file()), try ConnectionPool(.file(folder.file())),
        ]
        let journal = Journal()
        var threads: [JoinableThread] = []
        do {
            let writer = try pools[0].writer()
            for index in 0..<6 {
                let pool = pools[index % 2]
                threads.append(
                    onThread {
                        try pool.write { connection in
                            journal.add("\(index)")
                            try connection.insert([Int64(index)])
                        }
                    }
                )
                try wait { pools[0].turn.waiterCount == index + 1 }
            }
            expectEqual(journal.all, [])
            try writer.commit()
        }
        for thread in threads { try thread.join() }
        expectEqual(journal.all, ["0", "1", "2", "3", "4", "5"])
        try expectEqual(pools[1].sum(), 15)
    }

    @Test func `a writer that waits too long for a thread says so`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file())
        let writer = try pool.writer()
        let thread = onThread {
            let error = try failure { try pool.write(timeout: 0.02) { _ in } }
            expect(error.code == .busy && error.operation == .waitForWriter)
            expectEqual(error.wait?.blocker, .otherThread)
            expect(error.message.contains("another thread"))
            expect((0.02..<10).contains(error.wait?.seconds ?? 0))
        }
        try thread.join()
        try writer.connection.insert([1])
        try writer.commit()
        try expectEqual(pool.sum(), 1)
    }

    @Test func `a writer that waits too long for another process says so, and succeeds once that is done`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file())
        // A connection outside of every pool stands for another process: to SQLite's locks both are alike.
        let foreign = try Connection(path: folder.file(), access: .readWrite)
        try foreign.run("BEGIN IMMEDIATE")

        let error = try failure { try pool.write(timeout: 0.05) { _ in } }

        expect(error.code == .busy && error.operation == .begin)
        expectEqual(error.wait?.blocker, .otherConnection)
        expect(error.message.contains("another process"))
        expect((0.05..<10).contains(error.wait?.seconds ?? 0))
        try expectEqual(pool.sum(), 0, "reading goes on meanwhile")

        let thread = onThread { try pool.write { try $0.insert([2]) } }
        try wait { pool.state.withLock { $0.writer?.busyWait.isWaiting } == true }
        try foreign.run("COMMIT")
        try thread.join()
        try expectEqual(pool.sum(), 2)
    }

    @Test func `many threads on several pools lose nothing`() throws {
        let pools = [
            try ConnectionPool.withNumbers(at: folder.file()), try ConnectionPool(.file(folder.file())),
            try ConnectionPool(.file(folder.file())),
        ]
        let threads = (0..<8).map { index in
            onThread {
                for round in 0..<25 {
                    try pools[(index + round) % 3].write { connection in
                        let sum = try connection.sum()
                        try connection.insert([1])
                        try expectEqual(connection.sum(), sum + 1)
                    }
                    _ = try pools[index % 3].sum()
                }
            }
        }
        for thread in threads { try thread.join() }
        try expectEqual(pools[0].sum(), 200)
        for pool in pools { try pool.close() }
        try expectEqual(folder.names(), ["store.sqlite"])
    }

    @Test func `several may make one database at the same time`() throws {
        let folder = try TemporaryFolder()
        for round in 0..<40 {
            let path = folder.file("\(round).sqlite")
            let start = DispatchSemaphore(value: 0)
            let threads = (0..<4).map { _ in
                onThread {
                    start.wait()
                    let pool = try ConnectionPool(.file(path))
                    expect(pool.isWriteAheadLogged)
                    try pool.close()
                }
            }
            for _ in threads { start.signal() }
            for thread in threads { try thread.join() }
        }
    }

    @Test func `with a rollback journal readers and the writer wait for each other`() throws {
        var options = PoolOptions()
        options.pragmas = ["journal_mode": "DELETE"]
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1], options: options)
        do {
            let snapshot = try pool.reader(isSnapshot: true)
            try expectEqual(snapshot.connection.sum(), 1)
            let error = try failure { try pool.write(timeout: 0.02) { try $0.insert([1]) } }
            expect(error.code == .busy && error.operation == .commit && error.wait != nil)
        }
        try pool.write { try $0.insert([2]) }
        try expectEqual(pool.sum(), 3)
        try expectEqual(failure { _ = try pool.pinSnapshot() }.code, .misuse)
    }

    // MARK: - Cancelling

    private static let endless: SQL =
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"

    @Test func `a running statement can be cancelled, and the connection goes on`() throws {
        var options = PoolOptions()
        options.maximumReaders = 1
        let isRunning = Atomic(false)
        options.functions = [
            ScalarFunction("announce", argumentCount: 0, isDeterministic: false) { _ in
                isRunning.store(true, ordering: .releasing)
            }
        ]
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1], options: options)
        let cancellation = Cancellation()
        let thread = onThread {
            let error = try failure {
                try pool.read(cancellation: cancellation) { connection in
                    try connection.run("SELECT announce()")
                    try connection.run(Self.endless)
                }
            }
            expectEqual(error.code, .interrupt)
        }
        try wait { isRunning.load(ordering: .acquiring) }

        cancellation.cancel()

        try thread.join()
        try expectEqual(pool.sum(), 1, "the next operation on the same connection is not hit")
        try expectEqual(failure { _ = try pool.read(cancellation: cancellation) { _ in } }.code, .interrupt)
        try expectEqual(failure { _ = try pool.write(cancellation: cancellation) { _ in } }.code, .interrupt)
    }

    /// A query that runs long enough to look at its cancellation several times.
    private static let long: SQL =
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 20000) SELECT count(*) FROM c"

    @Test(arguments: [true, false], [true, false])
    func `a cancellation that comes after its operation does not stop the next one, however long that is`(
        _ isWritten: Bool,
        _ isNextWritten: Bool
    ) throws {
        var options = PoolOptions()
        options.maximumReaders = 1
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1], options: options)
        let cancellation = Cancellation()
        if isWritten {
            try pool.write(cancellation: cancellation) { try $0.insert([10]) }
        } else {
            try pool.read(cancellation: cancellation) { _ = try $0.sum() }
        }
        cancellation.cancel()
        // The operation after that has a cancellation as well, or none.
        for other in [nil, Cancellation()] {
            let count =
                try isNextWritten
                ? pool.write(cancellation: other) { try $0.firstInt64(Self.long) }
                : pool.read(cancellation: other) { try $0.firstInt64(Self.long) }
            expectEqual(count, 20_000)
        }
        try expectEqual(pool.sum(), isWritten ? 11 : 1)
    }

    @Test func `a cancellation that comes after an operation that failed does not stop the next one`() throws {
        struct Failure: Error {}
        var options = PoolOptions()
        options.maximumReaders = 1
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1], options: options)
        let cancellation = Cancellation()
        expectThrows(Failure.self) { try pool.read(cancellation: cancellation) { _ in throw Failure() } }
        expectThrows(Failure.self) { try pool.write(cancellation: cancellation) { _ in throw Failure() } }
        cancellation.cancel()
        try expectEqual(pool.read { try $0.firstInt64(Self.long) }, 20_000)
        try expectEqual(pool.write { try $0.firstInt64(Self.long) }, 20_000)
    }

    @Test func `a cancellation between two statements is not lost`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1])
        let cancellation = Cancellation()
        let error = try failure {
            try pool.write(cancellation: cancellation) { connection in
                try connection.insert([10])
                cancellation.cancel()
                try connection.run(Self.endless)
            }
        }
        expectEqual(error.code, .interrupt)
        try expectEqual(pool.sum(), 1)
    }

    @Test func `waiting can be cancelled`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1])
        let byTurn = Cancellation()
        do {
            let writer = try pool.writer()
            let thread = onThread {
                let error = try failure { try pool.write(cancellation: byTurn) { _ in } }
                expectEqual(error.code, .interrupt)
            }
            try wait { pool.turn.waiterCount == 1 }
            byTurn.cancel()
            try thread.join()
            writer.rollBack()
        }

        let foreign = try Connection(path: folder.file(), access: .readWrite)
        try foreign.run("BEGIN IMMEDIATE")
        let byLock = Cancellation()
        let thread = onThread {
            let error = try failure { try pool.write(cancellation: byLock) { _ in } }
            expectEqual(error.code, .interrupt)
        }
        try wait { pool.state.withLock { $0.writer?.busyWait.isWaiting } == true }
        byLock.cancel()
        try thread.join()
    }

    // MARK: - Snapshots

    @Test func `a pinned snapshot outlives deletes, checkpoints and its pool's other readers`() throws {
        var options = PoolOptions()
        options.maximumReaders = 1
        options.maximumSnapshots = 2
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1, 2, 3], options: options)
        let first = try pool.pinSnapshot()
        try pool.write { try $0.run("DELETE FROM number") }
        let second = try pool.pinSnapshot()
        try pool.write { try $0.insert([7]) }
        try pool.checkpoint(.passive)
        try expectEqual(failure { try pool.checkpoint(.truncate, timeout: 0.01) }.code, .busy)

        try expectEqual(first.read { try $0.sum() }, 6)
        try expectEqual(second.read { try $0.sum() }, 0)
        try expectEqual(pool.sum(), 7)
        let error = try failure { _ = try pool.pinSnapshot() }
        expect(error.code == .full && error.message.contains("2 snapshots"))
        _ = consume first
        #expect(throws: Never.self) { _ = try pool.pinSnapshot() }
    }

    // MARK: - The log

    @Test func `the log stays bounded, also beside steady readers`() throws {
        var options = PoolOptions()
        options.checkpointPages = 20
        options.restartPages = 60
        let pool = try ConnectionPool.withNumbers(at: folder.file(), options: options)
        let isDone = Atomic(false)
        let readers = (0..<2).map { _ in
            onThread {
                while !isDone.load(ordering: .relaxed) { _ = try pool.read(isSnapshot: true) { try $0.sum() } }
            }
        }
        var largest = 0
        for round in 0..<300 {
            try pool.write { try $0.insert([Int64(round), 1, 2]) }
            largest = max(largest, try folder.size("store.sqlite-wal"))
        }
        isDone.store(true, ordering: .relaxed)
        for reader in readers { try reader.join() }

        expect((4120..<200 * 4120).contains(largest), "the log grew to \(largest) bytes")
    }

    @Test func `a checkpoint on demand empties the log`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1, 2])
        try expect(folder.size("store.sqlite-wal") > 0)
        try expect(pool.checkpoint(.truncate))
        try expectEqual(folder.size("store.sqlite-wal"), 0)
        try expectEqual(pool.sum(), 3)
    }

    // MARK: - In memory

    @Test func `a database in memory is private, shared by the threads of its pool, and consistent`() throws {
        let pool = try ConnectionPool(.memory)
        let other = try ConnectionPool(.memory)
        try pool.write { try $0.execute("CREATE TABLE number (n INTEGER)") }
        let threads = (0..<4).map { _ in
            onThread {
                for _ in 0..<50 {
                    try pool.write { try $0.insert([1, -1]) }
                    try expectEqual(pool.read(isSnapshot: true) { try $0.sum() }, 0)
                }
            }
        }
        for thread in threads { try thread.join() }

        try expectEqual(pool.read { try $0.firstInt64("SELECT count(*) FROM number") }, 400)
        try expectEqual(failure { _ = try other.sum() }.code, .error)
        try expectEqual(failure { _ = try pool.pinSnapshot() }.code, .misuse)
        try expectEqual(failure { try pool.read { _ in try pool.write { _ in } } }.code, .misuse)
        try pool.close()
        try expectEqual(failure { _ = try pool.sum() }.code, .misuse)
    }

    // MARK: - Everywhere

    @Test func `functions and the trace reach every connection`() throws {
        var options = PoolOptions()
        options.functions = [ScalarFunction("seven", argumentCount: 0) { $0.return(7 as Int64) }]
        let pool = try ConnectionPool.withNumbers(at: folder.file(), options: options)
        let statements = Locked<[String]>([])
        pool.setTrace { event in statements.withLock { $0.append(event.sql) } }
        try expectEqual(pool.read { try $0.firstInt64("SELECT seven()") }, 7)
        try pool.write { try $0.run("INSERT INTO number VALUES (seven())") }
        pool.setTrace(nil)
        try expectEqual(pool.sum(), 7)

        let heard = ["SELECT seven()", "BEGIN IMMEDIATE", "INSERT INTO number VALUES (seven())", "COMMIT"]
        expectEqual(statements.withLock { $0 }, heard)
    }

    @Test(arguments: ["", "-wal", "-shm"])
    func `a file that is removed during a transaction keeps it from being committed`(_ suffix: String) throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1])
        let error = try failure {
            try pool.write { connection in
                try connection.insert([2])
                try FileManager.default.removeItem(atPath: folder.file() + suffix)
            }
        }
        expectEqual(error.extendedCode, .readOnlyMoved)
        expectEqual(error.operation, .commit)
        expect(error.message.contains("was removed"))
        try expectEqual(failure { try pool.write { _ in } }.operation, .begin)
        expectEqual(try failure { try pool.requireFilesInPlace() }.extendedCode, .readOnlyMoved)
    }
}
