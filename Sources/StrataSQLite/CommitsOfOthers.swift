import CStrataSQLite
import StrataLocks

/// Counts how often a database was found changed by writers outside its pool.
///
/// These are other processes, and other pools of this process.
///
/// In WAL mode SQLite counts all commits to a database in the index of its log, which is memory that all processes
/// share (the change counter of the [WAL-index header](https://www.sqlite.org/walformat.html#the_wal_index_header)).
/// Reading that word takes some nanoseconds, while `PRAGMA data_version` needs a lease, a transaction and its locks.
/// The pool counts its own commits. While it commits changes, the word may have either of two values. At any other time a
/// difference comes from another writer. A commit whose transaction has changed no row, and a rollback, leave the word as
/// it is: once SQLite has ended them, another writer may commit before the pool has noted the end.
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
        /// Whether the pool is committing changes.
        var isCommitting = false
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

    /// Notes that the pool is about to commit changes, with the write lock of the database.
    func beginCommit() {
        state.withLock { state in
            state.look()
            state.isCommitting = true
        }
    }

    /// Notes that the commit has ended.
    ///
    /// - Parameter commits: The number of commits that have changed the database: 1, or 0 if it has failed.
    func endCommit(_ commits: UInt32) {
        state.withLock { state in
            state.isCommitting = false
            state.expected &+= commits
        }
    }
}

extension CommitsOfOthers.State {
    fileprivate mutating func look() {
        guard let word else { return }
        let found = strata_load(word)
        guard found != expected, !isCommitting || found != expected &+ 1 else { return }
        count += 1
        // A commit that the pool has just made still has to be counted.
        if !isCommitting { expected = found }
    }
}
