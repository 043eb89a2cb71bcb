import CStrataSQLite
import StrataLocks
import Testing

@testable import StrataSQLite

@Suite("Commits of others")
struct CommitsOfOthersTests {
    private let folder: TemporaryFolder
    private let pool: ConnectionPool
    /// A program that takes no turn with the pool.
    private let stranger: Connection

    init() throws {
        folder = try TemporaryFolder()
        pool = try ConnectionPool.withNumbers(at: folder.file(), [1])
        var opening = pool.opening
        stranger = try opening.openWriter()
    }

    private func commitElsewhere() throws { try stranger.execute("UPDATE number SET n = n + 1") }

    /// After SQLite has ended a transaction, others may commit before the pool has noted that end.
    @Test(arguments: ["SELECT 1", "INSERT INTO number VALUES (5)", "CREATE TABLE more (n)", "PRAGMA user_version = 9"])
    func `a commit of another program right after one of the pool is seen at once`(_ own: String) throws {
        var lease: WriteLease? = try pool.writer()
        try lease?.connection.execute(own)
        let before = pool.commitsOfOthers
        var after = before
        try lease.commit {
            #expect(throws: Never.self) { try commitElsewhere() }
            after = pool.commitsOfOthers
        }
        #expect(after > before)
    }

    @Test func `a commit of another program right after a rollback of the pool is seen at once`() throws {
        let lease = try pool.writer()
        try lease.connection.execute("INSERT INTO number VALUES (5)")
        let before = pool.commitsOfOthers
        let after = Locked<UInt64>(0)
        let hook = Hook { [self] in
            #expect(throws: Never.self) { try commitElsewhere() }
            after.withLock { $0 = pool.commitsOfOthers }
        }
        let writer = lease.connection.handle
        let context = Unmanaged.passUnretained(hook).toOpaque()
        sqlite3_rollback_hook(writer, { Unmanaged<Hook>.fromOpaque($0!).takeUnretainedValue().run() }, context)
        lease.rollBack()
        sqlite3_rollback_hook(writer, nil, nil)
        #expect(after.withLock { $0 } > before)
    }

    private final class Hook {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    @Test(arguments: ["VACUUM", "PRAGMA user_version = 9", "INSERT INTO number VALUES (5)"])
    func `a look during a write without a transaction does not hide the next commit of another program`(
        _ own: String
    ) throws {
        var before: UInt64 = 0
        try pool.writeWithoutTransaction { connection in
            try connection.execute(own)
            before = pool.commitsOfOthers
        }
        try commitElsewhere()
        #expect(pool.commitsOfOthers > before)
    }

    @Test func `the pool's changes, rollbacks and empty transactions do not count`() throws {
        let before = pool.commitsOfOthers
        for _ in 0..<3 {
            try pool.write { try $0.insert([7]) }
            try pool.write { _ = try $0.sum() }
            let lease = try pool.writer()
            try lease.connection.insert([8])
            lease.rollBack()
            #expect(pool.commitsOfOthers == before)
        }
        try commitElsewhere()
        #expect(pool.commitsOfOthers == before + 1)
    }
}
