import Foundation
import StrataPredicates
import StrataSQLite
import Synchronization

#if FaultPoints
import StrataLocks
#endif

/// A store in a SQLite file, in the layout of Apple's framework.
///
/// Any thread may use it. Reads run on connections of their own and wait for nobody; saves wait for one another, in the
/// order in which they come.
class SQLiteStore: NSPersistentStore, RowStore, @unchecked Sendable {
    // @unchecked Sendable: `file` and the like are behind their mutexes, `hasNewMetadata` is atomic; the rest is the superclass's.

    private let file = Mutex<OpenSQLiteFile?>(nil)
    /// The transactions of the history that this store object has written.
    private let ownTransactions = Mutex(OwnTransactions())
    /// Posts that the store was written to, if its options say so.
    private let remoteChanges = Mutex<RemoteChangePoster?>(nil)
    /// Whether the metadata has to be written with the next save.
    private let hasNewMetadata = Atomic(false)

    /// Whether another store has taken this one's place.
    private let isRetired = Atomic(false)

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
            StoreOption.flag(options?[NSPersistentStoreRemoteChangeNotificationPostOptionKey])
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
        // Connections that hold a version would keep the log, and the file, open.
        let pinned = versions.withLock { $0.compactMap(\.version) }
        for version in pinned { version.end() }
        // A write under way for a minute keeps the file open until it ends; nothing is lost by that.
        try? file.pool.close()
    }

    /// The open file.
    ///
    /// - Throws: `persistentStoreOperation` (134070) once the store was removed.
    func openFile() throws -> OpenSQLiteFile {
        if let file = file.withLock({ $0 }) { return file }
        throw closedError
    }

    func retire(_ body: () throws -> Void) throws {
        let file = try openFile()
        // What is read-only here nobody writes through this store; and in a database in memory, which has a single
        // connection, whoever writes would keep the body from reading.
        guard !isReadOnly, case .file = file.pool.location else {
            try body()
            return isRetired.store(true, ordering: .releasing)
        }
        try SQLiteBoundary.run(.saving, url) {
            try file.pool.write { _ in
                try body()
                isRetired.store(true, ordering: .releasing)
            }
        }
    }

    /// Refuses a write that has got its turn after another store has taken this one's place.
    func requireInUse() throws {
        if isRetired.load(ordering: .acquiring) { throw closedError }
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
            super.metadata = StoreMetadata.replacing(super.metadata ?? [:], with: newValue ?? [:])
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

    /// Reads the file as it is when asked.
    private var newest: SQLiteReading {
        get throws { SQLiteReading(try openFile()) }
    }

    func rows(for plan: FetchPlan) throws -> [Row] { try newest.rows(for: plan) }

    func references(for plan: FetchPlan) throws -> [ObjectReference] { try newest.references(for: plan) }

    func count(for plan: FetchPlan) throws -> Int { try newest.count(for: plan) }

    func cursor(for plan: FetchPlan) throws -> any RowCursor { try newest.cursor(for: plan) }

    func values(for plan: DictionaryPlan) throws -> FetchedValues { try newest.values(for: plan) }

    func count(for plan: DictionaryPlan) throws -> Int { try newest.count(for: plan) }

    func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? { try newest.row(forKey: key, in: layout) }

    func rows(forKeys keys: [Int64], in layout: EntityLayout) throws -> [Row] {
        try newest.rows(forKeys: keys, in: layout)
    }

    func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        try newest.members(of: relationship, ownedBy: owner)
    }

    func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference]) throws -> Memberships {
        try newest.memberships(of: relationship, ownedBy: owners)
    }

    func rows(forKeys keys: [Int64], in layout: EntityLayout, _ control: FetchControl) throws -> [Row] {
        try newest.rows(forKeys: keys, in: layout, control)
    }

    func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], _ control: FetchControl) throws
        -> Memberships
    { try newest.memberships(of: relationship, ownedBy: owners, control) }

    // MARK: - Versions that contexts are pinned to

    /// The versions that somebody may hold, so that closing the file ends them.
    private let versions = Mutex<[WeakVersion]>([])

    private struct WeakVersion {
        weak var version: SQLiteVersion?
    }

    var keepsVersions: Bool { (try? openFile().pool.isWriteAheadLogged) ?? false }

    func pinnedVersion() throws -> (any RowSource)? {
        let file = try openFile()
        guard file.pool.isWriteAheadLogged else { return nil }
        let version = try SQLiteVersion.pin(file)
        versions.withLock { versions in
            versions.removeAll { $0.version == nil }
            versions.append(WeakVersion(version: version))
        }
        return version
    }

    func hasWritten(_ number: Int64) -> Bool { ownTransactions.withLock { $0.contains(number) } }

    func forgetOwnTransactions() { ownTransactions.withLock { $0 = OwnTransactions() } }

    /// Notes that this store object has written a transaction of the history, as part of its commit.
    func noteOwnTransaction(_ number: Int64) { ownTransactions.withLock { $0.note(number) } }

    // MARK: - Writing

    func reserveKeys(_ counts: [Int: Int]) throws -> [Int: Range<Int64>] {
        let file = try openFile()
        return try SQLiteBoundary.run(.saving, url, for: SQLiteBoundary.waiter) {
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
            try requireInUse()
            try requireNoOtherHistory(of: file, lease.connection)
            let transaction = SaveTransaction(changes, file, lease.connection)
            let writesMetadata = hasNewMetadata.load(ordering: .acquiring)
            do {
                #if FaultPoints
                try FaultPoint.saveBegan.reach()
                #endif
                let conflicts = try transaction.run()
                guard conflicts.isEmpty else {
                    transaction.files.abandon()
                    return conflicts
                }
                try writeMetadata(lease.connection)
                let result = transaction.result
                let number = transaction.history?.number
                #if FaultPoints
                try FaultPoint.saveWritten.reach()
                #endif
                try transaction.files.willCommit(lease.connection)
                try lease.commit {
                    if let number { noteOwnTransaction(number) }
                    didCommit(result)
                }
            } catch {
                if writesMetadata { hasNewMetadata.store(true, ordering: .releasing) }
                transaction.files.abandon()
                throw error
            }
            transaction.files.didCommit()
            return []
        }
    }
}
