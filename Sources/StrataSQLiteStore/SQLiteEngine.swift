import Foundation
import StrataKeys
import StrataLocks
import StrataPredicates
import StrataRows
import StrataSQL
import StrataSQLite
import Synchronization

/// The parameters for opening a SQLite store.
package struct SQLiteStoreRequest: Sendable {
    package var url: URL
    package let schema: Schema
    /// The configuration whose entities the store holds, or `nil` for all.
    package let configuration: String?
    package var options: SQLiteOptions
    /// The UUID of the store if it is new.
    package var newUUID: String
    /// The labels of the model's version, for the metadata of a new store.
    package let versionIdentifiers: [String]
    /// The copy of the model that the store will keep; `nil` for none.
    package var modelCache: @Sendable () -> Data? = { nil }
    /// Refuses a store of another version of the model, judged by its metadata.
    package let requireVersion: @Sendable (_ metadata: [String: Any]) throws -> Void

    package init(
        url: URL,
        schema: Schema,
        configuration: String?,
        options: SQLiteOptions,
        newUUID: String,
        versionIdentifiers: [String],
        requireVersion: @escaping @Sendable (_ metadata: [String: Any]) throws -> Void
    ) {
        self.url = url
        self.schema = schema
        self.configuration = configuration
        self.options = options
        self.newUUID = newUUID
        self.versionIdentifiers = versionIdentifiers
        self.requireVersion = requireVersion
    }

    var recordsHistory: Bool { options.tracksHistory && !options.isReadOnly }
}

/// A store engine for a SQLite file, in the layout of Apple's framework.
///
/// Any thread may use it. Reads run on separate connections. No read waits for the transaction of a save, but a read may
/// wait for a connection, and reads of one pinned version take turns. Saves wait for one another, in the order in which
/// they come.
package final class SQLiteEngine: RowStore, SQLiteSource {
    private let file: Locked<OpenSQLiteStore?>
    /// The transactions of the history that this engine has written.
    private let ownTransactions = Locked(OwnTransactions())
    /// Reports writes to the file, if the program asks for that.
    private let watcher = Locked<CommitWatcher?>(nil)
    private let onCommit = Locked<(@Sendable () -> Void)?>(nil)
    private struct Metadata {
        var current: StoreMetadata
        /// Whether the next save has to write it.
        var isNew = false
    }

    private let metadataState: Locked<Metadata>
    private let readOnly: AtomicCell<Bool>

    /// Whether another store has taken this one's place.
    private let isRetired = AtomicCell(false)

    // MARK: - Opening and closing

    /// Opens a store, or makes it if there is none.
    ///
    /// - Throws: The errors of ``NSPersistentStoreCoordinator/addPersistentStore(type:configuration:at:options:)``.
    package init(_ request: SQLiteStoreRequest) throws {
        let opened = try SQLiteBoundary.run(.opening, at: request.url) { try OpenSQLiteStore.open(request) }
        file = Locked(opened)
        location = Locked(request.url)
        metadataState = Locked(Metadata(current: opened.metadata))
        readOnly = AtomicCell(request.options.isReadOnly)
        protectHistory(of: opened)
    }

    /// The present place of the file, or its place when the store was closed.
    private let location: Locked<URL>

    package var place: String { location.withLock { $0.path } }

    /// Whether saves are refused.
    package var isReadOnly: Bool {
        get { readOnly.load(ordering: .acquiring) }
        set { readOnly.store(newValue, ordering: .releasing) }
    }

    /// Starts, or restarts, to report commits to the file by any connection of any process.
    ///
    /// - Parameter handler: Called on a separate thread of the watcher.
    /// - Throws: Errors of reading the file.
    package func watchForCommits(_ handler: @escaping @Sendable () -> Void) throws {
        onCommit.withLock { $0 = handler }
        try watchAgain()
    }

    private func watchAgain() throws {
        guard let handler = onCommit.withLock({ $0 }), let file = file.withLock({ $0 }) else { return }
        let new = try SQLiteBoundary.run(.opening, at: file.url) { try CommitWatcher(file.pool, handler: handler) }
        replaceWatcher(new)
    }

    private func replaceWatcher(_ new: CommitWatcher?) {
        let old = watcher.withLock { current in
            defer { current = new }
            return current
        }
        old?.stop()
    }

    package func close() {
        // The watcher reads the file through a separate connection.
        replaceWatcher(nil)
        let file = file.withLock { file in
            defer { file = nil }
            return file
        }
        // A database in memory may have other stores. It disappears with the last one.
        guard let file, case .file = file.pool.location else { return }
        // Connections that hold a version would keep the log, and the file, open.
        let pinned = versions.withLock { $0.compactMap(\.version) }
        for version in pinned { version.end() }
        // If a write takes longer than a minute, it keeps the file open until it ends. Nothing is lost then.
        try? file.pool.close()
    }

    /// The open file.
    ///
    /// - Throws: `persistentStoreOperation` (134070) once the store was removed.
    package func openFile() throws -> OpenSQLiteStore {
        if let file = file.withLock({ $0 }) { return file }
        throw closedError
    }

    package func retire(_ body: () throws -> Void) throws {
        let file = try openFile()
        // A read-only engine never writes. A database in memory has a single connection, so a writer would keep the
        // body from reading.
        guard !isReadOnly, case .file = file.pool.location else {
            // The mark comes first, so that nothing is written after the copy.
            isRetired.store(true, ordering: .releasing)
            do {
                return try body()
            } catch {
                isRetired.store(false, ordering: .releasing)
                throw error
            }
        }
        try SQLiteBoundary.run(.saving, at: file.url) {
            try file.pool.write { _ in
                try body()
                isRetired.store(true, ordering: .releasing)
            }
        }
    }

    /// Refuses a write that gets its turn after another store has taken this one's place.
    func requireNotRetired() throws {
        if isRetired.load(ordering: .acquiring) { throw closedError }
    }

    /// Uses another file from now on, which must be the same store.
    ///
    /// - Parameters:
    ///   - url: The place of that file.
    ///   - options: The options to open it with.
    /// - Returns: Whether the engine uses it now, and the error of watching the new file, if any.
    package func move(to url: URL, options: SQLiteOptions) -> (isMoved: Bool, watching: (any Error)?) {
        // A missing file would be made, and be empty.
        guard FileManager.default.fileExists(atPath: url.path), let old = try? openFile() else { return (false, nil) }
        let uuid = metadata.uuid
        var request = old.request
        request.url = url
        request.options = options
        request.newUUID = uuid
        guard let new = try? OpenSQLiteStore.open(request) else { return (false, nil) }
        guard new.metadata.uuid == uuid else {
            try? new.pool.close()
            return (false, nil)
        }
        // Contexts go on with the versions that they have read.
        new.modelGuard.goOn(from: old.modelGuard)
        file.withLock { $0 = new }
        location.withLock { $0 = url }
        var failure: (any Error)?
        do { try watchAgain() } catch { failure = error }
        try? old.pool.close()
        return (true, failure)
    }

    /// Continues the versions of another store, whose rows are copied into this one.
    ///
    /// So contexts go on with the rows that they have read there.
    ///
    /// It is called before the first write.
    package func goOn(from other: SQLiteEngine) throws {
        let count = try other.openFile().modelGuard.restorationCount
        if count > 0 { try openFile().modelGuard.goOn(at: count) }
    }

    // MARK: - Metadata

    /// The UUID and the property list, as they are in the file, or as the next save will write them.
    package var metadata: (uuid: String, values: [String: Any]) {
        let current = metadataState.withLock { $0.current }
        return (current.uuid, current.dictionary)
    }

    /// Sets the metadata that the next save writes.
    package func setMetadata(_ values: [String: Any], uuid: String) {
        let new = StoreMetadata(dictionary: values, uuid: uuid)
        ModelGuard.addOwnUUID(uuid)
        metadataState.withLock { $0 = Metadata(current: new, isNew: true) }
    }

    /// Writes the metadata without a save, if it has changed since it was read.
    package func saveMetadata() throws {
        guard metadataState.withLock({ $0.isNew }) else { return }
        let file = try openFile()
        try SQLiteBoundary.run(.saving, at: file.url) {
            do {
                try file.pool.write { connection in
                    try file.modelGuard.requireSame(connection)
                    _ = try self.writeNewMetadata(on: connection)
                }
            } catch {
                keepMetadataUnwritten()
                throw error
            }
        }
    }

    /// Writes the metadata if it has changed, in the transaction that is open.
    ///
    /// - Returns: Whether it was written. If so, the caller has to note it again if the transaction fails.
    private func writeNewMetadata(on connection: Connection) throws -> Bool {
        let file = try openFile()
        try file.writeMissingModelCache(connection)
        let new = metadataState.withLock { state -> StoreMetadata? in
            guard state.isNew else { return nil }
            state.isNew = false
            return state.current
        }
        guard var new else { return false }
        // The mark may have changed since the metadata was read.
        new.restoration = file.modelGuard.restoration
        do {
            try new.write(connection)
        } catch {
            keepMetadataUnwritten()
            throw error
        }
        return true
    }

    /// Notes that there are no columns left to tidy up.
    func forgetDeferredWork() {
        metadataState.withLock { $0.current.values[NSPersistentStoreDeferredLightweightMigrationOptionKey] = nil }
    }

    /// Records that copied rows of another store, up to these keys, are older than the history.
    private func setBaseline(above keys: [Int: Int64], in mapping: SQLMapping) {
        metadataState.withLock { state in
            guard state.current.values[StoreMetadata.historyBaselineKey] != nil else { return }
            state.current.values[StoreMetadata.historyBaselineKey] = HistoryBaseline(mapping, lastKeys: keys).lastKeys
            state.isNew = true
        }
    }

    private func keepMetadataUnwritten() { metadataState.withLock { $0.isNew = true } }

    // MARK: - Reading

    /// A restoration counts as well: without a write-ahead log, commits of other programs are not noticed.
    package var commitsOfOthers: UInt64 {
        file.withLock { file in
            guard let file else { return 0 }
            return file.pool.commitsOfOthers &+ UInt64(file.modelGuard.restorationCount)
        }
    }

    package var versionForm: RowVersion.Form { .offset }

    package var placesUnreadMembers: Bool { true }

    /// Reads the file as it is at the time of the question.
    var reading: SQLiteReading {
        get throws { SQLiteReading(try openFile()) }
    }

    // MARK: - Versions that contexts are pinned to

    /// The versions that may be held, so that closing the file ends them.
    private let versions = Locked<[WeakVersion]>([])

    private struct WeakVersion {
        weak var version: PinnedSQLiteVersion?
        let since: ContinuousClock.Instant
    }

    /// The number of held versions, and the age of the oldest.
    var held: (count: Int, oldest: Duration?) {
        let held = versions.withLock { $0.filter { $0.version != nil }.map(\.since) }
        return (held.count, held.min().map { .now - $0 })
    }

    package var keepsVersions: Bool { (try? openFile().pool.isWriteAheadLogged) ?? false }

    package func pinnedVersion(mayBeReplica: Bool) throws -> (any RowSource)? {
        let file = try openFile()
        guard file.pool.isWriteAheadLogged else { return nil }
        let version = try PinnedSQLiteVersion.pin(file)
        versions.withLock { versions in
            versions.removeAll { $0.version == nil }
            versions.append(WeakVersion(version: version, since: .now))
        }
        return version
    }

    package func hasWritten(_ number: Int64) -> Bool { ownTransactions.withLock { $0.contains(number) } }

    package func forgetOwnTransactions() { ownTransactions.withLock { $0 = OwnTransactions() } }

    /// Adds a transaction that this store object has written of the history, as part of its commit.
    func addOwnTransaction(_ number: Int64) { ownTransactions.withLock { $0.add(number) } }

    // MARK: - Writing

    package func reserveKeys(_ counts: [Int: Int]) throws -> [Int: [Range<Int64>]] {
        let file = try openFile()
        return try SQLiteBoundary.run(.saving, at: file.url, for: SQLiteBoundary.waiter) {
            try file.pool.write { connection in
                try requireNotRetired()
                try file.modelGuard.requireSame(connection)
                return try KeyAllocation(file.mapping).reserve(counts, connection).mapValues { [$0] }
            }
        }
    }

    package func lastKeys(_ roots: [Int]) throws -> [Int: Int64] {
        let file = try openFile()
        return try SQLiteBoundary.run(.reading, at: file.url) {
            try file.pool.read { connection in try KeyAllocation(file.mapping).last(roots, connection) }
        }
    }

    package func save(
        _ changes: StoreChanges,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws -> [StoreConflict] {
        let file = try openFile()
        try requireWritable(file)
        let start = OperationTally.startTiming()
        defer { stopTiming(start, file) }
        return try SQLiteBoundary.run(.saving, at: file.url, for: changes.contextName) {
            let lease = try beginWriting(to: file)
            if let kept = changes.keptKeys { setBaseline(above: kept, in: file.mapping) }
            let written = try write(changes, to: file, on: lease.connection)
            guard written.conflicts.isEmpty else { return written.conflicts }
            do {
                willCommit(written.result)
                try lease.commit {
                    noteCommit(of: written, to: file)
                    didCommit(written.result)
                }
            } catch {
                abandon(written)
                throw error
            }
            written.files.didCommit()
            return []
        }
    }

    func requireWritable(_ file: OpenSQLiteStore) throws {
        guard isReadOnly else { return }
        throw CocoaError.described(
            .persistentStoreSave,
            userInfo: [NSLocalizedDescriptionKey: "The store \(file.url.path) is read-only."]
        )
    }

    /// Begins a transaction that writes rows.
    func beginWriting(
        to file: OpenSQLiteStore,
        timeout: Double? = nil,
        cancellation: Cancellation? = nil
    ) throws -> WriteLease {
        let lease = try file.pool.writer(timeout: timeout, cancellation: cancellation)
        addWait(lease)
        try requireNotRetired()
        try file.modelGuard.requireSame(lease.connection)
        try requireNoOtherHistory(of: file, lease.connection)
        return lease
    }

    /// A save that is written and not yet committed.
    struct WrittenSave {
        /// The conflicts; if there are any, then the caller takes back what was written.
        let conflicts: [StoreConflict]
        let result: StoreSaveResult
        let files: FileChanges
        fileprivate let lastMembers: [LastMembers.Place: LastMembers.Entry?]
        fileprivate let hasMetadata: Bool
    }

    /// Writes all changes in the transaction that has begun.
    ///
    /// If the caller cannot commit them, then it calls ``abandon(_:)``.
    func write(_ changes: StoreChanges, to file: OpenSQLiteStore, on connection: Connection) throws -> WrittenSave {
        let transaction = SaveTransaction(changes, in: file, on: connection)
        var hasMetadata = false
        do {
            try FaultPoint.saveBegan.reach()
            let conflicts = try transaction.run()
            var result = transaction.result
            if conflicts.isEmpty {
                hasMetadata = try writeNewMetadata(on: connection)
                result.historyNumber = transaction.history?.number
                try FaultPoint.saveWritten.reach()
                try transaction.files.willCommit(connection)
            } else {
                transaction.files.abandon()
            }
            return WrittenSave(
                conflicts: conflicts,
                result: result,
                files: transaction.files,
                lastMembers: transaction.lastMembers,
                hasMetadata: hasMetadata
            )
        } catch {
            if hasMetadata { keepMetadataUnwritten() }
            transaction.files.abandon()
            throw error
        }
    }

    /// Notes what a save has written, as part of its commit: its transaction of the history is this engine's own.
    func noteCommit(of written: WrittenSave, to file: OpenSQLiteStore) {
        if !written.lastMembers.isEmpty { file.lastMembers.keep(written.lastMembers) }
        if let number = written.result.historyNumber { addOwnTransaction(number) }
    }

    /// Takes back what a save has changed beside the database, because it was not committed.
    func abandon(_ written: WrittenSave) {
        if written.hasMetadata { keepMetadataUnwritten() }
        written.files.abandon()
    }
}
