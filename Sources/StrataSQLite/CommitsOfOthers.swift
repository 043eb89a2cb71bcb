import CStrataSQLite
import StrataLocks

/// Counts how often a database was found changed by writers outside its pool.
///
/// These are other processes, and other pools of this process.
///
/// In WAL mode SQLite counts all commits to a database in the index of its log, which is memory that all processes
/// share (the change counter of the [WAL-index header](https://www.sqlite.org/walformat.html#the_wal_index_header)).
/// Reading that word takes some nanoseconds, while `PRAGMA data_version` needs a lease, a transaction and its locks.
/// The pool counts its own commits. While it commits, the word may have either of two values. At any other time a
/// difference comes from another writer.
///
/// With another journal, and in memory, the count is always 0.
///
/// Any thread may call any member. The lock is a leaf, held for a few instructions.
final class CommitsOfOthers: Sendable {
    fileprivate struct State: @unchecked Sendable {
        // @unchecked Sendable: the word is memory of SQLite, which others write to at any time. It is read as an
        // atomic.

        /// Keeps the index of the log mapped.
        ///
        /// It reads nothing after it was opened.
        var connection: Connection?
        /// The word; `nil` after the pool was closed, and if there is none.
        var word: UnsafePointer<UInt32>?
        /// The value of the word, unless another writer has committed.
        var expected: UInt32 = 0
        /// Whether the pool holds the write lock, and may be committing.
        var isWriting = false
        var count: UInt64 = 0
    }

    private let state = Locked(State())

    init() {}

    /// Starts to count, with a connection that is kept for that until ``close()``.
    ///
    /// - Throws: Errors of SQLite.
    func open(_ connection: Connection) throws(SQLiteError) {
        // This makes SQLite open the index.
        _ = try connection.dataVersion()
        let word = UnsafePointer<UInt32>(strata_sqlite3_commit_counter(connection.handle))
        guard let word else { return connection.close() }
        state.withLock { state in
            state.connection = connection
            state.word = word
            state.expected = strata_load(word)
        }
    }

    /// Stops counting.
    func close() {
        let connection = state.withLock { state in
            defer { (state.connection, state.word) = (nil, nil) }
            return state.connection
        }
        connection?.close()
    }

    /// The number of times that commits of other writers were found, including this time.
    ///
    /// It counts all commits before the call began; several may count as one.
    var count: UInt64 {
        state.withLock { state in
            state.look()
            return state.count
        }
    }

    /// Notes that the pool has got the write lock of the database.
    func beginWrite() {
        state.withLock { state in
            state.look()
            state.isWriting = true
        }
    }

    /// Notes that a write of the pool has ended.
    ///
    /// - Parameter commits: The number of its commits that have changed the database.
    func endWrite(_ commits: UInt32) {
        state.withLock { state in
            state.isWriting = false
            state.expected &+= commits
        }
    }
}

extension CommitsOfOthers.State {
    fileprivate mutating func look() {
        guard let word else { return }
        let found = strata_load(word)
        guard found != expected, !isWriting || found != expected &+ 1 else { return }
        count += 1
        // A commit that the pool has just made still has to be counted.
        if !isWriting { expected = found }
    }
}
