import Foundation
import StrataPredicates
import StrataSQLite
import Synchronization

/// A store in a SQLite file, in the layout of Apple's framework.
///
/// Any thread may use it. Reads run on connections of their own and wait for nobody; saves wait for one another, in the
/// order in which they come.
class SQLiteStore: NSPersistentStore, RowStore, @unchecked Sendable {
    // @unchecked Sendable: `file` and the like are behind their mutexes, `hasNewMetadata` is atomic; the rest is the superclass's.

    private let file = Mutex<OpenSQLiteFile?>(nil)
    /// The transactions of the history that are this store's own saves.
    private let ownTransactions = Mutex(OwnTransactions())
    /// Posts that the store was written to, if its options say so.
    private let remoteChanges = Mutex<RemoteChangePoster?>(nil)
    /// Whether the metadata has to be written with the next save.
    private let hasNewMetadata = Atomic(false)

    // MARK: - Opening and closing

    override func loadMetadata() throws {
        guard let url, let model = persistentStoreCoordinator?.frozenModel else {
            throw CocoaError(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "A store needs a URL and a coordinator."]
            )
        }
        let opened = try SQLiteBoundary.run(.opening, url) {
            try OpenSQLiteFile.open(
                OpenSQLiteFile.Request(
                    url: url,
                    model: model,
                    configuration: configuration,
                    options: SQLiteOptions(url: url, options),
                    newUUID: identifier
                )
            )
        }
        adopt(opened)
    }

    private var configuration: String? { configurationName == defaultConfigurationName ? nil : configurationName }

    private func adopt(_ opened: OpenSQLiteFile) {
        super.identifier = opened.metadata.uuid
        super.metadata = opened.metadata.dictionary
        file.withLock { $0 = opened }
        protectHistory(of: opened)
    }

    func open(as entry: OpenStore) throws { try watchForCommits() }

    /// Starts, or starts anew, to post that the store was written to.
    private func watchForCommits() throws {
        guard let coordinator = persistentStoreCoordinator, let file = file.withLock({ $0 }),
            SQLiteOptions.flag(options?[NSPersistentStoreRemoteChangeNotificationPostOptionKey])
        else { return }
        let poster = try SQLiteBoundary.run(.opening, url) {
            try RemoteChangePoster(self, file.pool, in: coordinator)
        }
        let old = remoteChanges.withLock { current in
            defer { current = poster }
            return current
        }
        old?.stop()
    }

    private func stopWatching() {
        let poster = remoteChanges.withLock { current in
            defer { current = nil }
            return current
        }
        poster?.stop()
    }

    func close() {
        // It reads the file through a connection of its own.
        stopWatching()
        let file = file.withLock { file in
            defer { file = nil }
            return file
        }
        // A database in memory may have other stores; it goes with the last.
        guard let file, case .file = file.pool.location else { return }
        // A write under way for a minute keeps the file open until it ends; nothing is lost by that.
        try? file.pool.close()
    }

    /// The open file.
    ///
    /// - Throws: `persistentStoreOperation` (134070) once the store was removed.
    func openFile() throws -> OpenSQLiteFile {
        if let file = file.withLock({ $0 }) { return file }
        throw CocoaError(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(url?.path ?? "") is closed: it was removed from its coordinator."
            ]
        )
    }

    /// Uses another file from now on, which must be the same store.
    ///
    /// - Returns: Whether it does.
    func move(to url: URL) -> Bool {
        // What is not there would be made, and be empty.
        guard FileManager.default.fileExists(atPath: url.path), let old = try? openFile(),
            let options = try? SQLiteOptions(url: url, options),
            let new = try? OpenSQLiteFile.open(
                OpenSQLiteFile.Request(
                    url: url,
                    model: old.mapping.model,
                    configuration: configuration,
                    options: options,
                    newUUID: old.metadata.uuid
                )
            )
        else { return false }
        guard new.metadata.uuid == identifier else {
            try? new.pool.close()
            return false
        }
        file.withLock { $0 = new }
        self.url = url
        do { try watchForCommits() } catch { persistentStoreCoordinator?.report(error, "watching \(url.path)") }
        try? old.pool.close()
        return true
    }

    // MARK: - Metadata

    override var type: String { NSSQLiteStoreType }

    /// The UUID; a new one is written with the next save.
    override var identifier: String! {
        get { super.identifier }
        set {
            super.identifier = newValue
            super.metadata[NSStoreUUIDKey] = newValue
            hasNewMetadata.store(true, ordering: .releasing)
        }
    }

    /// The metadata; written with the next save.
    ///
    /// The framework's own keys stay as they are.
    override var metadata: [String: Any]! {
        get { super.metadata }
        set {
            let own = (super.metadata ?? [:]).filter { StoreMetadata.ownKeys.contains($0.key) }
            super.metadata = (newValue ?? [:]).merging(own) { $1 }
            hasNewMetadata.store(true, ordering: .releasing)
        }
    }

    private var currentMetadata: StoreMetadata { StoreMetadata(dictionary: metadata ?? [:], uuid: identifier ?? "") }

    func saveMetadata() throws {
        guard hasNewMetadata.load(ordering: .acquiring) else { return }
        let file = try openFile()
        try SQLiteBoundary.run(.saving, url) { try file.pool.write { try self.writeMetadata($0) } }
    }

    /// Writes the metadata if it has changed, in the transaction that is open.
    private func writeMetadata(_ connection: Connection) throws {
        guard hasNewMetadata.exchange(false, ordering: .acquiringAndReleasing) else { return }
        do {
            try currentMetadata.write(connection)
        } catch {
            hasNewMetadata.store(true, ordering: .releasing)
            throw error
        }
    }

    override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] { try metadata(at: url) }

    override class func setMetadata(_ metadata: [String: Any]?, forPersistentStoreAt url: URL) throws {
        try rewriteMetadata(metadata, at: url)
    }

    // MARK: - Reading

    func rows(for plan: FetchPlan) throws -> [Row] {
        let rows =
            try read(plan) {
                try $0.count(plan, $1, $2)
            } answer: {
                try $0.rows(plan, $1, $2)
            } ?? []
        OperationTally.current?.pointee.rows += rows.count
        return rows
    }

    func references(for plan: FetchPlan) throws -> [ObjectReference] {
        let references =
            try read(plan) {
                try $0.count(plan, $1, $2)
            } answer: {
                try $0.references(plan, $1, $2)
            } ?? []
        OperationTally.current?.pointee.rows += references.count
        return references
    }

    func count(for plan: FetchPlan) throws -> Int {
        try read(plan.layout, control: plan.control) { try $0.count(plan, $1, $2) } ?? 0
    }

    func cursor(for plan: FetchPlan) throws -> any RowCursor {
        let file = try openFile()
        guard let entity = file.mapping.entity(plan.layout) else { return ListCursor([]) }
        // Where a version cannot be held on to, all rows are read at once.
        guard file.pool.isWriteAheadLogged else { return ListCursor(try rows(for: plan)) }
        return try SQLiteBoundary.run(.reading, url) { try SQLiteCursor.open(plan, entity, file) }
    }

    func values(for plan: DictionaryPlan) throws -> FetchedValues {
        let values =
            try read(plan.rows) {
                try $0.count(plan, $1, $2)
            } answer: {
                try $0.values(plan, $1, $2)
            } ?? FetchedValues(width: plan.columns.count)
        OperationTally.current?.pointee.rows += values.count
        return values
    }

    func count(for plan: DictionaryPlan) throws -> Int {
        try read(plan.rows.layout, control: plan.rows.control) { try $0.count(plan, $1, $2) } ?? 0
    }

    func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? {
        OperationTally.current?.pointee.faults += 1
        return try read(layout) { try $0.row(key, $1, $2, stamp: CoarseClock.now) } ?? nil
    }

    func rows(forKeys keys: [Int64], in layout: EntityLayout) throws -> [Row] {
        // In one transaction: the rows are of one commit, and SQLite takes its locks once.
        try read(layout, isSnapshot: keys.count > 1) { try $0.rows(keys, $1, $2, stamp: CoarseClock.now) } ?? []
    }

    func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        let file = try openFile()
        guard let entity = file.mapping.entity(modelNumber: owner.entity) else { return [] }
        OperationTally.current?.pointee.faults += 1
        return try OperationTally.timingStore {
            try SQLiteBoundary.run(.reading, url) {
                try file.pool.read { try file.queries.members(relationship, entity, of: owner.key, $0) }
            }
        }
    }

    /// Answers a fetch; in one transaction with the number of its results if somebody wants to follow it.
    @inline(__always)
    private func read<R>(
        _ plan: FetchPlan,
        count: (RowQueries, EntityMapping, Connection) throws -> Int,
        answer: (RowQueries, EntityMapping, Connection) throws -> R
    ) throws -> R? {
        guard let control = plan.control, control.wantsCount else {
            return try read(plan.layout, control: plan.control, answer)
        }
        return try read(plan.layout, isSnapshot: true, control: control) { queries, entity, connection in
            control.expect(try count(queries, entity, connection))
            return try answer(queries, entity, connection)
        }
    }

    func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference]) throws -> Memberships {
        let mapping = try openFile().mapping
        guard let owner = owners.first, let entity = mapping.entity(modelNumber: owner.entity),
            let members = mapping.entity(modelNumber: relationship.destinationNumber)
        else { return Memberships() }
        return try read(members.layout, isSnapshot: true) { queries, members, connection in
            try queries.memberships(relationship, entity, of: owners, members, connection, stamp: CoarseClock.now)
        } ?? Memberships()
    }

    /// Reads rows of an entity; `nil` if the store does not hold it.
    @inline(__always)
    private func read<R>(
        _ layout: EntityLayout,
        isSnapshot: Bool = false,
        control: FetchControl? = nil,
        _ body: (RowQueries, EntityMapping, Connection) throws -> R
    ) throws -> R? {
        let file = try openFile()
        guard let entity = file.mapping.entity(layout) else { return nil }
        return try OperationTally.timingStore {
            try SQLiteBoundary.run(.reading, url) {
                guard let control else { return try Self.read(file, entity, isSnapshot, nil, body) }
                let cancellation = Cancellation()
                return try control.running(stoppedBy: { cancellation.cancel() }) {
                    try Self.read(file, entity, isSnapshot, cancellation, body)
                }
            }
        }
    }

    @inline(__always)
    private static func read<R>(
        _ file: OpenSQLiteFile,
        _ entity: EntityMapping,
        _ isSnapshot: Bool,
        _ cancellation: Cancellation?,
        _ body: (RowQueries, EntityMapping, Connection) throws -> R
    ) throws -> R {
        let missed = file.queries.missedFiles.load(ordering: .relaxed)
        let result = try file.pool.read(isSnapshot: isSnapshot, cancellation: cancellation) {
            try body(file.queries, entity, $0)
        }
        // A save may have replaced an external file between row and file; the row of now names the new one.
        guard file.queries.missedFiles.load(ordering: .relaxed) != missed else { return result }
        return try file.pool.read(isSnapshot: isSnapshot, cancellation: cancellation) {
            try body(file.queries, entity, $0)
        }
    }

    func hasWritten(_ number: Int64) -> Bool { ownTransactions.withLock { $0.contains(number) } }

    // MARK: - Writing

    func reserveKeys(_ counts: [Int: Int]) throws -> [Int: Range<Int64>] {
        let file = try openFile()
        return try SQLiteBoundary.run(.saving, url) {
            try file.pool.write { try KeyAllocation(file.mapping).reserve(counts, $0) }
        }
    }

    func save(_ changes: StoreChanges, didCommit: (StoreSaveResult) -> Void) throws -> [StoreConflict] {
        let file = try openFile()
        guard !isReadOnly else {
            throw CocoaError(
                .persistentStoreSave,
                userInfo: [NSLocalizedDescriptionKey: "The store \(file.url.path) is read-only."]
            )
        }
        let start = OperationTally.startTiming()
        defer { OperationTally.stopTiming(start) }
        return try SQLiteBoundary.run(.saving, url, for: changes.contextName) {
            let lease = try file.pool.writer()
            let transaction = SaveTransaction(changes, file, lease.connection)
            let writesMetadata = hasNewMetadata.load(ordering: .acquiring)
            do {
                let conflicts = try transaction.run()
                guard conflicts.isEmpty else {
                    transaction.discardFiles()
                    return conflicts
                }
                try writeMetadata(lease.connection)
                let result = transaction.result
                let number = transaction.history?.number
                try lease.commit {
                    if let number { ownTransactions.withLock { $0.note(number) } }
                    didCommit(result)
                }
            } catch {
                if writesMetadata { hasNewMetadata.store(true, ordering: .releasing) }
                transaction.discardFiles()
                throw error
            }
            transaction.removeObsoleteFiles()
            return []
        }
    }
}
