import CStrataSQLite
import StrataLocks

/// Counts how often a database was found changed by others than its pool: other processes, and other pools of this one.
///
/// In WAL mode SQLite counts all commits to a database in the index of its log, which is memory that all processes share
/// (the change counter of the [WAL-index header](https://www.sqlite.org/walformat.html#the_wal_index_header)). A look at that word costs
/// some nanoseconds, where `PRAGMA data_version` takes a lease, a transaction and its locks. The pool counts its own commits. While it
/// commits, the word may have either of two values; at any other time a difference is somebody else's work.
///
/// With another journal, and in memory, nothing is found.
///
/// Any thread may call any member. The lock is a leaf, held for a few instructions.
final class CommitsOfOthers: Sendable {
    fileprivate struct State: @unchecked Sendable {
        // @unchecked Sendable: the word is memory of SQLite's, which others write to at any time, and which is read as an atomic.

        /// Keeps the index of the log where it is; reads nothing after it has been opened.
        var connection: Connection?
        /// The word; `nil` once the pool was closed, and where there is none.
        var word: UnsafePointer<UInt32>?
        /// What the word is, unless somebody else has committed.
        var expected: UInt32 = 0
        /// Whether the pool holds the write lock, and may be committing.
        var isWriting = false
        var count: UInt64 = 0
    }

    private let state = Locked(State())

    init() {}

    /// Begins to look, through a connection that is kept for that until ``close()``.
    ///
    /// - Throws: Errors of SQLite.
    func open(_ connection: Connection) throws(SQLiteError) {
        // Makes SQLite open the index.
        _ = try connection.dataVersion()
        let word = UnsafePointer<UInt32>(strata_sqlite3_commit_counter(connection.handle))
        guard let word else { return connection.close() }
        state.withLock { state in
            state.connection = connection
            state.word = word
            state.expected = strata_load(word)
        }
    }

    /// Ends all looks.
    func close() {
        let connection = state.withLock { state in
            defer { (state.connection, state.word) = (nil, nil) }
            return state.connection
        }
        connection?.close()
    }

    /// How often others were found to have committed, now or before.
    ///
    /// What was committed when the call begins is counted, several commits perhaps as one.
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

    /// Notes that a write of the pool has ended, with so many commits that have changed the database.
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
        // A write of the pool that has just been committed is still to be counted.
        if !isWriting { expected = found }
    }
}
