import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL
import Synchronization

/// A store engine for a PostgreSQL database.
///
/// Any thread may use it. Reads and saves run on separate connections. No read waits for the transaction of a save, but a
/// read may wait for a connection. Saves wait for a connection too, for others that change the same rows, and for a store
/// that is being replaced (``WriterGate``).
package final class PostgreSQLEngine: RowStore, PostgreSQLSource {
    private let database: Locked<OpenPostgreSQLStore?>
    package let place: String
    private struct Metadata {
        var current: StoreMetadata
        /// Whether the next save has to write it.
        var isNew = false
    }

    private let metadataState: Locked<Metadata>
    private let readOnly: AtomicCell<Bool>
    /// Whether another store has replaced this one.
    private let isRetired = AtomicCell(false)
    /// Keeps the writers of this process out while the store is replaced.
    let gate = WriterGate()
    /// The transactions of the history that this engine has written.
    let ownTransactions = Locked(OwnTransactions())
    private let changesOfOthers = ChangesOfOthers()
    /// The number of times that the history went back.
    let setBacks = AtomicCell<UInt64>(0)
    let watcher = Locked<ChangeWatcher?>(nil)
    /// The function that the watcher calls after changes; the watcher may begin later than the store is opened.
    let changeHandler = Locked<(@Sendable () -> Void)?>(nil)

    /// Opens a store, or makes it if there is none.
    ///
    /// - Throws: The errors of ``NSPersistentStoreCoordinator/addPersistentStore(type:configuration:at:options:)``.
    package init(_ request: PostgreSQLStoreRequest) throws {
        let opened = try OpenPostgreSQLStore.open(request)
        database = Locked(opened)
        place = opened.place
        metadataState = Locked(Metadata(current: opened.metadata))
        readOnly = AtomicCell(request.isReadOnly)
        // This is needed with a history and without, because nothing else reports that cached rows no longer exist.
        opened.onSetBack.withLock { $0 = { [weak self] in self?.addChangesOfOthers() } }
    }

    /// Whether saves are refused.
    package var isReadOnly: Bool {
        get { readOnly.load(ordering: .acquiring) }
        set { readOnly.store(newValue, ordering: .releasing) }
    }

    /// The open database.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if the store was removed.
    func openDatabase() throws -> OpenPostgreSQLStore {
        if let database = database.withLock({ $0 }) { return database }
        throw closedError
    }

    package func close() {
        watcher.withLock { watcher in
            defer { watcher = nil }
            return watcher
        }?.stop()
        let database = database.withLock { database in
            defer { database = nil }
            return database
        }
        // Connections that versions give back after this are closed at once.
        database?.close()
        database?.versions.endAll()
    }

    package var wasMade: Bool? { database.withLock { $0?.wasMade ?? false } }

    package func retire(_ body: () throws -> Void) throws {
        let database = try openDatabase()
        try gate.alone(timeout: database.pool.timeout) {
            // The pool does not count this connection, so `body` can use the connections of the pool to read. A store
            // that is opened for reading only takes no lock.
            let connection =
                try isReadOnly
                ? nil
                : PostgreSQLBoundary.run(.reading, at: place) {
                    let connection = try database.pool.open()
                    try database.requireSame(connection)
                    try database.lockOutWriters(connection)
                    return connection
                }
            try body()
            // A writer that has waited checks this before it begins.
            isRetired.store(true, ordering: .releasing)
            try? connection?.rollback()
        }
    }

    /// Runs `body`, which writes, unless another store replaces this one.
    func asWriter<R>(to database: OpenPostgreSQLStore, _ body: () throws -> R) throws -> R {
        try gate.asWriter(timeout: database.pool.timeout) {
            try PostgreSQLBoundary.run(.saving, at: database.place) {
                guard database.form == .portable else { return try body() }
                return try MigrationUnderWay.waiting(for: database.pool, body)
            }
        }
    }

    /// Refuses to write to a store that another one has replaced.
    ///
    /// - Throws: `persistentStoreOperation` (134070).
    func requireNotRetired() throws {
        if isRetired.load(ordering: .acquiring) { throw closedError }
    }

    var readOnlyError: CocoaError {
        CocoaError.described(
            .persistentStoreSave,
            userInfo: [NSLocalizedDescriptionKey: "The store \(place) is read-only."]
        )
    }

    // MARK: - Metadata

    /// The UUID and the property list, as they are in the database or will be after the next save.
    package var metadata: (uuid: String, values: [String: Any]) {
        let current = metadataState.withLock { $0.current }
        return (current.uuid, current.dictionary)
    }

    /// Sets the metadata, which the next save writes.
    package func setMetadata(_ values: [String: Any], uuid: String) {
        let new = StoreMetadata(dictionary: values, uuid: uuid)
        database.withLock { $0?.mayBecome(uuid) }
        metadataState.withLock { $0 = Metadata(current: new, isNew: true) }
    }

    /// Writes the metadata without a save, if it has changed since it was read.
    package func saveMetadata() throws {
        guard metadataState.withLock({ $0.isNew }) else { return }
        let database = try openDatabase()
        try asWriter(to: database) {
            try database.pool.writing { connection in
                try requireNotRetired()
                try database.requireSame(connection)
                try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
                let isWritten = try writeNewMetadata(on: connection)
                do { try connection.commit() } catch {
                    if isWritten { keepMetadataUnwritten() }
                    throw error
                }
            }
        }
    }

    /// Writes the metadata if it has changed, in the transaction that has begun.
    ///
    /// - Returns: Whether it has; if the transaction is not committed, then ``keepMetadataUnwritten()`` has to follow.
    func writeNewMetadata(on connection: Connection) throws -> Bool {
        let new = metadataState.withLock { state -> StoreMetadata? in
            guard state.isNew else { return nil }
            state.isNew = false
            return state.current
        }
        guard let new else { return false }
        do { try openDatabase().write(new, connection) } catch {
            keepMetadataUnwritten()
            throw error
        }
        return true
    }

    /// Lets the next save write the metadata, because the transaction that has written it was not committed.
    func keepMetadataUnwritten() { metadataState.withLock { $0.isNew = true } }

    // MARK: - Reading

    package var commitsOfOthers: UInt64 { changesOfOthers.number }

    package func rowsChangedByOthers(since commits: UInt64) -> ChangedRows? { changesOfOthers.rows(since: commits) }

    /// Adds rows that another process has changed, so that cached rows are read again.
    ///
    /// - Parameter rows: The rows, if they are known; otherwise all are read again.
    func addChangesOfOthers(_ rows: ChangedRows? = nil) {
        database.withLock { $0 }?.countCommit()
        changesOfOthers.add(rows)
    }

    /// Reads the current state of the database.
    var reading: PostgreSQLReading {
        get throws { PostgreSQLReading(try openDatabase()) }
    }

    // MARK: - Versions that contexts are pinned to

    package var keepsVersions: Bool { true }

    package var versionForm: RowVersion.Form { .marked }

    package func pinnedVersion(mayBeReplica: Bool) throws -> (any RowSource)? {
        let database = try openDatabase()
        return try database.versions.hold(
            database,
            mayBeReplica: mayBeReplica,
            ageLimit: database.request.pinnedVersions.age
        )
    }

    // MARK: - Writing

    package func reserveKeys(_ counts: [Int: Int]) throws -> [Int: [Range<Int64>]] {
        let database = try openDatabase()
        // If the store was replaced, then its keys would also be given out by the new store.
        return try asWriter(to: database) {
            try database.pool.withConnection { connection in
                try requireNotRetired()
                var result: [Int: [Range<Int64>]] = [:]
                for (root, count) in counts { result[root] = try database.keys.reserve(count, root: root, connection) }
                return result
            }
        }
    }

    package func reserveKeys(upTo highest: [Int: Int64]) throws -> Set<Int> {
        let database = try openDatabase()
        return try PostgreSQLBoundary.run(.saving, at: place) {
            try database.pool.withConnection { connection in
                try requireNotRetired()
                let unused = try highest.filter { try database.keys.last(root: $0.key, connection) == 0 }
                try database.keys.advance(past: unused, on: connection)
                return Set(unused.keys)
            }
        }
    }

    package func lastKeys(_ roots: [Int]) throws -> [Int: Int64] {
        let database = try openDatabase()
        return try PostgreSQLBoundary.run(.reading, at: place) {
            try database.pool.withConnection { connection in
                var last: [Int: Int64] = [:]
                for root in roots { last[root] = try database.keys.last(root: root, connection) }
                return last
            }
        }
    }

    package func save(
        _ changes: StoreChanges,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws -> [StoreConflict] {
        let database = try openDatabase()
        guard !isReadOnly else { throw readOnlyError }
        let start = OperationTally.startTiming()
        defer { OperationTally.stopTiming(start) }
        defer { followHistory(of: database) }
        if let kept = changes.keptKeys {
            try PostgreSQLBoundary.run(.saving, at: place) {
                try database.pool.withConnection { try database.keys.advance(past: kept, on: $0) }
            }
        }
        var write = StoreWrite(of: RepeatableSave(changes), by: self, to: database)
        return try write.run(willCommit: willCommit, didCommit: didCommit)
    }

    package var takesBatches: Bool { true }

    package func execute(_ batch: Batch, willCommit: (BatchChanges) -> Void, didCommit: (BatchChanges) -> Void) throws {
        let database = try openDatabase()
        guard !isReadOnly else { throw readOnlyError }
        let work = try RepeatableBatch(batch)
        let start = OperationTally.startTiming()
        defer { OperationTally.stopTiming(start) }
        defer { followHistory(of: database) }
        var write = StoreWrite(of: work, by: self, to: database)
        try write.run(willCommit: willCommit, didCommit: didCommit)
    }
}
