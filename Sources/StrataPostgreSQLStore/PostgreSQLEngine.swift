import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL
import Synchronization

/// A store engine for a PostgreSQL database.
///
/// Any thread may use it. Reads and saves run on separate connections, and wait only for others that change the same
/// rows.
package final class PostgreSQLEngine: RowStore, PostgreSQLSource {
    private let database: Locked<OpenDatabase?>
    package let place: String
    private struct Metadata {
        var current: StoreMetadata
        /// Whether the next save has to write it.
        var isNew = false
    }

    private let metadataState: Locked<Metadata>
    private let readOnly: Atomic<Bool>
    /// Whether another store has replaced this one.
    private let isRetired = Atomic(false)
    /// Keeps the writers of this process out while the store is replaced.
    let gate = WriterGate()
    /// The transactions of the history that this engine has written.
    let own = Locked(OwnTransactions())
    private let changesOfOthers = ChangesOfOthers()
    /// The number of times that the history went back.
    let setBacks = Atomic<UInt64>(0)
    let watcher = Locked<ChangeWatcher?>(nil)
    /// The function that the watcher calls after changes; the watcher may begin later than the store is opened.
    let changeHandler = Locked<(@Sendable () -> Void)?>(nil)

    /// Opens a store, or makes it if there is none.
    ///
    /// - Throws: The errors of ``NSPersistentStoreCoordinator/addPersistentStore(type:configuration:at:options:)``.
    package init(_ request: PostgreSQLStoreRequest) throws {
        let opened = try OpenDatabase.open(request)
        database = Locked(opened)
        place = opened.place
        metadataState = Locked(Metadata(current: opened.metadata))
        readOnly = Atomic(request.isReadOnly)
        // This is needed with a history and without, because nothing else reports that cached rows no longer exist.
        opened.onSetBack.withLock { $0 = { [weak self] in self?.noteChangesOfOthers() } }
    }

    /// Whether saves are refused.
    package var isReadOnly: Bool {
        get { readOnly.load(ordering: .acquiring) }
        set { readOnly.store(newValue, ordering: .releasing) }
    }

    /// The open database.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if the store was removed.
    func openDatabase() throws -> OpenDatabase {
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
                : PostgreSQLBoundary.run(.reading, place) {
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
    private func writing<R>(_ database: OpenDatabase, _ body: () throws -> R) throws -> R {
        do {
            return try gate.writing(timeout: database.pool.timeout) {
                try PostgreSQLBoundary.run(.saving, database.place, body)
            }
        } catch let doubt as SaveInDoubt {
            own.withLock { $0.forget(doubt.identifier) }
            noteChangesOfOthers()
            throw doubt
        }
    }

    private func requireNotRetired() throws {
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
        try writing(database) {
            try database.pool.withConnection { connection in
                try requireNotRetired()
                try database.requireSame(connection)
                try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
                try writingMetadata(connection) { try connection.commit() }
            }
        }
    }

    /// Writes the metadata if it has changed, in the transaction that `commit` ends.
    private func writingMetadata(_ connection: Connection, _ commit: () throws -> Void) throws {
        let new = metadataState.withLock { state -> StoreMetadata? in
            guard state.isNew else { return nil }
            state.isNew = false
            return state.current
        }
        do {
            if let new { try openDatabase().write(new, connection) }
            try commit()
        } catch {
            if new != nil { metadataState.withLock { $0.isNew = true } }
            throw error
        }
    }

    // MARK: - Reading

    package var commitsOfOthers: UInt64 { changesOfOthers.number }

    package func rowsChangedByOthers(since commits: UInt64) -> ChangedRows? { changesOfOthers.rows(since: commits) }

    /// Notes that another process has changed rows, so that cached rows are read again.
    ///
    /// - Parameter rows: The rows, if they are known; otherwise all are read again.
    func noteChangesOfOthers(_ rows: ChangedRows? = nil) {
        database.withLock { $0 }?.noteCommit()
        changesOfOthers.note(rows)
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
        return try writing(database) {
            try database.pool.withConnection { connection in
                try requireNotRetired()
                var result: [Int: [Range<Int64>]] = [:]
                for (root, count) in counts { result[root] = try database.keys.reserve(count, root: root, connection) }
                return result
            }
        }
    }

    package func lastKeys(_ roots: [Int]) throws -> [Int: Int64] {
        let database = try openDatabase()
        return try PostgreSQLBoundary.run(.reading, place) {
            try database.pool.withConnection { connection in
                var last: [Int: Int64] = [:]
                for root in roots { last[root] = try database.keys.last(root: root, connection) }
                return last
            }
        }
    }

    package func save(_ changes: StoreChanges, didCommit: (StoreSaveResult) -> Void) throws -> [StoreConflict] {
        let database = try openDatabase()
        guard !isReadOnly else { throw readOnlyError }
        let start = OperationTally.startTiming()
        defer { OperationTally.stopTiming(start) }
        let identifier = UUID.random()
        defer { followHistory(of: database) }
        if let kept = changes.keptKeys {
            try PostgreSQLBoundary.run(.saving, place) {
                try database.pool.withConnection { try database.keys.take(over: kept, changes.inserted, $0) }
            }
        }
        return try writing(database) {
            try database.writing(requireNotRetired) { connection in
                var keys = try database.keys(for: changes.inserted, connection)
                return try database.transaction(connection, identifier, looksUpKeys: true, isLarge: changes.isLarge) {
                    connection,
                    attempt -> TransactionEnd<[StoreConflict], StoreSaveResult> in
                    if attempt.needsKeys { keys = try database.keys(for: changes.inserted, connection) }
                    let transaction = SaveTransaction(
                        changes,
                        keys: keys,
                        database,
                        connection,
                        identifier: identifier,
                        locksOrders: attempt.number > 1
                    )
                    let conflicts = try transaction.run()
                    guard conflicts.isEmpty else {
                        // The conflicting rows are read again anyway. A history reports the other changes a little
                        // later.
                        noteChangesOfOthers(database.recordsHistory ? ChangedRows() : nil)
                        return .refused(conflicts)
                    }
                    let isRecorded = transaction.history?.isWritten == true
                    if isRecorded { own.withLock { $0.note(identifier) } }
                    return .written([], transaction.result, isRecorded: isRecorded, witness: transaction.witness)
                } commit: { commit in
                    try writingMetadata(connection, commit)
                } didCommit: { result in
                    didCommit(result)
                    watcher.withLock { $0 }?.announce()
                }
            }
        }
    }

    package var takesBatches: Bool { true }

    package func execute(_ batch: Batch, didCommit: (BatchChanges) -> Void) throws {
        let database = try openDatabase()
        guard !isReadOnly else { throw readOnlyError }
        // The rows are made by code of the user, which must not keep others from writing.
        let given = try batch.rowsMade()
        let start = OperationTally.startTiming()
        defer { OperationTally.stopTiming(start) }
        let identifier = UUID.random()
        let earlier = EarlierAttempts(of: batch)
        defer { followHistory(of: database) }
        try writing(database) {
            try database.writing(requireNotRetired) { connection in
                try database.transaction(connection, identifier, looksUpKeys: false, isLarge: true) {
                    connection,
                    _ -> TransactionEnd<Void, BatchChanges> in
                    // Each attempt of the transaction begins with the rows as they were given.
                    let work = BatchWork(batch, database, connection, earlier)
                    let isRecorded = try work.run(batch.changesGivenRows ? given.copied : given, identifier: identifier)
                    if isRecorded { own.withLock { $0.note(identifier) } }
                    return .written((), work.changes, isRecorded: isRecorded, witness: nil)
                } commit: { commit in
                    try commit()
                } didCommit: { changes in
                    didCommit(changes)
                    watcher.withLock { $0 }?.announce()
                }
            }
        }
    }
}

extension Batch {
    /// All rows of an insertion.
    ///
    /// - Throws: The error of an invalid row, and `CancellationError`.
    fileprivate func rowsMade() throws -> [GivenRow] {
        guard case .insert(let insertion) = work else { return [] }
        var rows: [GivenRow] = []
        // Code that has kept the object of a row may still change it.
        try insertion.makeRows { rows.append(GivenRow(row: $0.row.copy(), given: $0.given)) }
        return rows
    }

    /// Whether rows of an insertion may get values of later rows, instead of those that they were given.
    fileprivate var changesGivenRows: Bool {
        guard case .insert(let insertion) = work else { return false }
        return switch insertion.upsert {
        case .update, .replace: true
        case .fail, .skip: false
        }
    }
}

extension [GivenRow] {
    fileprivate var copied: [GivenRow] { map { GivenRow(row: $0.row.copy(), given: $0.given) } }
}

extension UUID {
    /// A random UUID like that of `UUID()`, which opens a system file each time and so takes a large part of a small
    /// save.
    fileprivate static func random() -> UUID {
        var generator = SystemRandomNumberGenerator()
        var words = (generator.next(), generator.next())
        return withUnsafeMutableBytes(of: &words) { bytes in
            bytes[6] = bytes[6] & 0x0F | 0x40
            bytes[8] = bytes[8] & 0x3F | 0x80
            return UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
        }
    }
}
