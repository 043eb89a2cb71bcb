import Foundation
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

/// The database of a store: its connections, and the reports of its triggers.
///
/// Any thread may use it.
final class SQLiteDatabase: Sendable {
    let pool: ConnectionPool
    let reports: TriggerReports

    /// Opens a database.
    ///
    /// One in memory is made anew, whatever `access` is.
    init(_ location: ConnectionPool.Location, _ options: PoolOptions, access: Connection.Access) throws(SQLiteError) {
        let reports = TriggerReports()
        var options = options
        options.access = access
        options.functions += PredicateFunctions.all + reports.functions
        options.functions += [BatchAssignments.refuseRange, BatchAssignments.refuseNoNumber]
        options.aggregates += PredicateFunctions.aggregates
        options.collations += PredicateCollations.all
        self.reports = reports
        pool = try ConnectionPool(location, options: options)
        SQLDebug.ofProcess?.follow(pool)
    }

    /// Makes all commits up to now survive a loss of power.
    ///
    /// - Parameter synchronous: How commits are synced.
    /// - Throws: Errors of the disk.
    func makeCommitsDurable(_ synchronous: SQLiteOptions.Synchronous) throws(SQLiteError) {
        guard synchronous != .off, case .file(let path) = pool.location else { return }
        if pool.isWriteAheadLogged {
            // With FULL the commit itself has synced the log. Closing it here cannot drop a lock: SQLite has none on
            // that file.
            if synchronous == .normal { try DiskFile.synchronize(path + "-wal") }
        } else {
            // The commit has ended the journal by a change of the folder or file. A loss of power may undo that change.
            if access(path + "-journal", F_OK) == 0 { try DiskFile.synchronize(path + "-journal") }
            try DiskFile.synchronize(folder: (path as NSString).deletingLastPathComponent)
        }
    }

    // MARK: - Shared databases in memory

    private struct Weak {
        weak var database: SQLiteDatabase?
    }

    private static let shared = Locked<[String: Weak]>([:])

    /// The database in memory of that name, which lives as long as a store uses it.
    static func shared(named name: String, _ options: PoolOptions) throws(SQLiteError) -> SQLiteDatabase {
        try shared.withLock { databases throws(SQLiteError) in
            if let found = databases[name]?.database { return found }
            databases = databases.filter { $0.value.database != nil }
            let database = try SQLiteDatabase(.memory, options, access: .readWriteCreate)
            databases[name] = Weak(database: database)
            return database
        }
    }
}

/// The rows that the triggers of derived attributes have changed during a save.
///
/// The set is filled on the thread that saves. The mutex is only there because the compiler cannot know that.
final class TriggerReports: Sendable {
    struct Entry: Hashable {
        let entity: Int64
        let key: Int64
    }

    private let entries = Locked<Set<Entry>>([])

    /// The functions that the triggers call, with table, entity, key, attribute and value.
    var functions: [ScalarFunction] {
        [DerivedTriggers.updateCallback, DerivedTriggers.insertCallback].map { name in
            ScalarFunction(name, argumentCount: 5, isDeterministic: false) { [self] call in
                let entry = Entry(entity: call[1].int64, key: call[2].int64)
                _ = entries.withLock { $0.insert(entry) }
                call.returnNull()
            }
        }
    }

    /// Removes and returns the entries so far.
    func removeAll() -> Set<Entry> {
        entries.withLock { entries in
            defer { entries = [] }
            return entries
        }
    }
}
