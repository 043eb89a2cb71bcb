import CoreDataEssentials
import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQLiteStore

/// A store in a SQLite file, in the layout of Apple's framework.
package class SQLiteStore: NSPersistentStore, EngineStore, WholeStore, @unchecked Sendable {
    // @unchecked Sendable: `opened` and `remoteChanges` are protected by their mutexes; the superclass is responsible
    // for the rest.

    private let opened = Locked<SQLiteEngine?>(nil)
    /// The object that posts notifications of writes, if the options turn that on.
    private let remoteChanges = Locked<RemoteChangePoster?>(nil)

    /// The engine; `nil` before the metadata was loaded.
    package final var sqlite: SQLiteEngine? { opened.withLock { $0 } }

    package final var engine: any RowStore {
        get throws {
            if let sqlite { return sqlite }
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "The store \(url?.path ?? "") is not loaded yet."]
            )
        }
    }

    package override func loadMetadata() throws {
        guard let url, let model = persistentStoreCoordinator?.managedObjectModel else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "A store needs a URL and a coordinator."]
            )
        }
        let configuration = configurationName == defaultConfigurationName ? nil : configurationName
        let options = try SQLiteOptions(url: url, options)
        var request = SQLiteStoreRequest(
            url: url,
            schema: model.frozen.schema,
            configuration: configuration,
            options: options,
            newUUID: identifier,
            versionIdentifiers: model.versionIdentifiers.compactMap { $0 as? String }.sorted()
        ) { metadata in
            guard !options.ignoresVersions else { return }
            try model.requireVersion(ofStoreMetadata: metadata, configuration: configuration, at: url.path)
        }
        request.modelCache = { model.frozen.copyForStores(of: model) }
        let engine = try SQLiteEngine(request)
        let metadata = engine.metadata
        super.identifier = metadata.uuid
        super.metadata = metadata.values
        opened.withLock { $0 = engine }
    }

    package func open() throws {
        if StoreOption.flag(options?[NSPersistentStoreRemoteChangeNotificationPostOptionKey]) { try reportCommits() }
    }

    package override func willRemove(from coordinator: NSPersistentStoreCoordinator?) {
        // After this, only a notification that is already being posted is completed.
        remoteChanges.withLock { $0 }?.stop()
        super.willRemove(from: coordinator)
    }

    /// Changes the file; the new file must be the same store.
    ///
    /// - Returns: Whether the store uses the new file now.
    package func move(to url: URL) -> Bool {
        guard let sqlite, let options = try? SQLiteOptions(url: url, options) else { return false }
        let (isMoved, failure) = sqlite.move(to: url, options: options)
        guard isMoved else { return false }
        self.url = url
        if let failure { persistentStoreCoordinator?.report(failure, "watching \(url.path)") }
        return true
    }

    // MARK: - Metadata

    package override var type: String { NSSQLiteStoreType }

    package override var isReadOnly: Bool {
        get { sqlite?.isReadOnly ?? super.isReadOnly }
        set {
            super.isReadOnly = newValue
            sqlite?.isReadOnly = newValue
        }
    }

    /// The UUID; a new one is written with the next save.
    package override var identifier: String! {
        get { super.identifier }
        set {
            super.identifier = newValue
            super.metadata[NSStoreUUIDKey] = newValue
            passMetadata()
        }
    }

    /// The metadata; the next save writes a new value.
    ///
    /// The framework's own keys keep their values.
    package override var metadata: [String: Any]! {
        get { super.metadata }
        set {
            super.metadata = StoreMetadata.replacing(super.metadata ?? [:], with: newValue ?? [:])
            passMetadata()
        }
    }

    // MARK: - Copies

    /// The metadata without what says where the history of this file begins, and which restorations the file has had.
    package var copiedMetadata: [String: Any] {
        var values = super.metadata ?? [:]
        values[StoreMetadata.historyBaselineKey] = nil
        values[StoreMetadata.restorationKey] = nil
        return values
    }

    package func continueVersions(of source: NSPersistentStore) throws {
        guard let source = (source as? SQLiteStore)?.sqlite else { return }
        try sqlite?.goOn(from: source)
    }

    package func copyMetadataFromEngine() {
        guard let sqlite else { return }
        super.metadata = sqlite.metadata.values
    }

    private func passMetadata() { sqlite?.setMetadata(super.metadata ?? [:], uuid: super.identifier ?? "") }

    package func writeMetadata() throws { try sqlite?.saveMetadata() }

    package override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
        try SQLiteEngine.metadata(at: url)
    }

    package override class func setMetadata(_ metadata: [String: Any]?, forPersistentStoreAt url: URL) throws {
        try SQLiteEngine.rewriteMetadata(metadata, at: url)
    }

    // MARK: - Whole files

    package static func destroyStore(at url: URL, options: [AnyHashable: Any]?) throws {
        try SQLiteEngine.destroy(
            at: url,
            options: SQLiteOptions(url: url, options),
            removesFile: StoreOption.flag(options?[NSPersistentStoreForceDestroyOption])
        )
    }

    package static func replaceStore(
        at destination: URL,
        _ destinationOptions: [AnyHashable: Any]?,
        withStoreAt source: URL,
        _ sourceOptions: [AnyHashable: Any]?
    ) throws {
        try SQLiteEngine.replace(
            at: destination,
            SQLiteOptions(url: destination, destinationOptions),
            with: source,
            SQLiteOptions(url: source, sourceOptions)
        )
    }

    package static func backUpStore(at url: URL, _ options: [AnyHashable: Any]?, to destination: URL) throws {
        try SQLiteEngine.backUp(url, SQLiteOptions(url: url, options), to: destination)
    }

    package static func discardStore(at url: URL) { SQLiteEngine.removeAll(of: url) }

    /// The copy of the model that a store keeps, in the form of the file; `nil` if it keeps none.
    package static func cachedModel(at url: URL) throws -> Data? { try SQLiteEngine.cachedModel(at: url) }
}

extension SQLiteStore: CommitReportingStore {
    package var reportsCommits: Bool { remoteChanges.withLock { $0 != nil } }

    package func reportCommits() throws {
        guard let coordinator = persistentStoreCoordinator, let sqlite, !reportsCommits else { return }
        let poster = RemoteChangePoster(self, in: coordinator)
        try sqlite.watchForCommits { poster.enqueue() }
        remoteChanges.withLock { $0 = poster }
    }
}
