import CoreData
import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQLStore
import StrataRows
import Synchronization

/// A store in a database of PostgreSQL.
package final class PostgreSQLStore: NSPersistentStore, EngineStore, WholeStore, MigratingStore, @unchecked Sendable {
    // @unchecked Sendable: `opened` and `remoteChanges` are protected by their mutexes; the rest belongs to the
    // superclass.

    private let opened = Locked<PostgreSQLEngine?>(nil)
    /// Posts a notification when the store was written to, if its options ask for that.
    private let remoteChanges = Locked<RemoteChangePoster?>(nil)

    /// The engine; `nil` until the metadata is loaded.
    private var postgreSQL: PostgreSQLEngine? { opened.withLock { $0 } }

    package var engine: any RowStore {
        get throws {
            if let postgreSQL { return postgreSQL }
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "The store is not loaded yet."]
            )
        }
    }

    /// The databases that URLs of other schemes stand for, for tests that are written for stores in files.
    private static let translation = Locked<(@Sendable (URL) -> URL)?>(nil)

    /// Lets URLs of other schemes stand for databases.
    package static func translateURLs(_ function: @escaping @Sendable (URL) -> URL) {
        translation.withLock { $0 = function }
    }

    private static let foreignKeys = AtomicCell(false)
    private static var addsForeignKeys: Bool { foreignKeys.load(ordering: .relaxed) }

    /// Gives foreign keys to all stores whose options do not forbid that, for tests that are written for stores without
    /// foreign keys.
    package static func addForeignKeys() { foreignKeys.store(true, ordering: .relaxed) }

    private static let scatteredKeys = AtomicCell(false)
    private static var scattersKeys: Bool { scatteredKeys.load(ordering: .relaxed) }

    /// Scatters the keys of all new stores whose options do not forbid that, for tests that are written for consecutive keys.
    package static func scatterKeys() { scatteredKeys.store(true, ordering: .relaxed) }

    static func database(_ url: URL) -> URL { translation.withLock { $0 }?(url) ?? url }

    package override func loadMetadata() throws {
        guard let url = url.map(Self.database), let model = persistentStoreCoordinator?.managedObjectModel else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "A store needs a URL and a coordinator."]
            )
        }
        let configuration = configurationName == defaultConfigurationName ? nil : configurationName
        let options = self.options ?? [:]
        let ignoresVersions = StoreOption.flag(options[NSIgnorePersistentStoreVersioningOption])
        let size = StoreOption.number(options[NSPersistentStoreConnectionPoolMaxSizeKey]).map {
            Int(min(max($0, 1), 1024))
        }
        let serverSize = StoreOption.number(options[NSPostgreSQLServerConnectionsOption]).map {
            Int(min(max($0, 1), 10_000))
        }
        let request = PostgreSQLStoreRequest(
            url: url,
            schema: model.frozen.schema,
            configuration: configuration,
            newUUID: identifier,
            versionIdentifiers: model.versionIdentifiers.compactMap { $0 as? String }.sorted(),
            isReadOnly: StoreOption.flag(options[NSReadOnlyPersistentStoreOption]),
            tracksHistory: StoreOption.tracksHistory(options),
            addsForeignKeys: options[NSPostgreSQLForeignKeysOption].map { StoreOption.flag($0) }
                ?? Self.addsForeignKeys,
            keyOrder: options[NSPostgreSQLScatteredKeysOption].map { StoreOption.flag($0) } ?? Self.scattersKeys
                ? .scattered : .consecutive,
            timeout: StoreOption.timeout(options),
            maximumConnections: size ?? 8,
            serverConnections: serverSize,
            replicas: try Self.replicas(options),
            pinnedVersions: Self.pinnedVersions(options),
            modelCache: { model.frozen.copyForStores(of: model) },
            requireVersion: { metadata in
                guard !ignoresVersions else { return }
                // The text of the URL, without its secrets.
                let place = url.placeName
                try model.requireVersion(ofStoreMetadata: metadata, configuration: configuration, at: place)
            }
        )
        let engine = try PostgreSQLEngine(request)
        let metadata = engine.metadata
        super.identifier = metadata.uuid
        super.metadata = metadata.values
        opened.withLock { $0 = engine }
    }

    /// Whether a migration reads the store.
    private static func isMigrationSource(_ options: [AnyHashable: Any]?) -> Bool {
        StoreOption.flag(options?[migrationSourceOption])
    }

    private static func replicas(_ options: [AnyHashable: Any]) throws -> (urls: [URL], wait: Double) {
        // A migration must not read from a replica, which may be behind.
        if isMigrationSource(options) { return ([], 0) }
        let value = options[NSPostgreSQLReplicasOption]
        let list = value == nil ? [] : value as? [Any] ?? (value as? NSArray).map { Array($0) }
        let urls = list?.compactMap { $0 as? URL ?? ($0 as? String).flatMap { URL(string: $0) } }
        guard let urls, urls.count == list?.count else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [
                    NSLocalizedDescriptionKey: "The option \(NSPostgreSQLReplicasOption) must be an array of URLs."
                ]
            )
        }
        return (urls, StoreOption.seconds(options[NSPostgreSQLReplicaWaitOption]) ?? 0.2)
    }

    private static func pinnedVersions(_ options: [AnyHashable: Any]) -> (most: Int, age: Double?) {
        let most = StoreOption.number(options[NSPostgreSQLPinnedVersionsOption]).map { Int(min(max($0, 1), 1024)) }
        let age = isMigrationSource(options) ? nil : StoreOption.number(options[NSPostgreSQLPinnedVersionAgeOption])
        return (most ?? 16, age.flatMap { $0 > 0 ? $0 : nil })
    }

    package func open() throws {
        // A watcher gives numbers to the store's transactions, which writes to the store.
        guard let postgreSQL, !Self.isMigrationSource(options) else { return }
        try postgreSQL.watchForChanges()
        if StoreOption.flag(options?[NSPersistentStoreRemoteChangeNotificationPostOptionKey]) { try reportCommits() }
    }

    package override func willRemove(from coordinator: NSPersistentStoreCoordinator?) {
        // After this, no notification is posted unless it has already begun.
        remoteChanges.withLock { $0 }?.stop()
        super.willRemove(from: coordinator)
    }

    /// Returns false: a database does not move while it is open.
    package func move(to url: URL) -> Bool { false }

    // MARK: - Metadata

    package override var type: String { StoreMetadata.storeType }

    package override var isReadOnly: Bool {
        get { postgreSQL?.isReadOnly ?? super.isReadOnly }
        set {
            super.isReadOnly = newValue
            postgreSQL?.isReadOnly = newValue
        }
    }

    /// The UUID.
    ///
    /// If it is set, then the next save writes it.
    package override var identifier: String! {
        get { super.identifier }
        set {
            super.identifier = newValue
            super.metadata[NSStoreUUIDKey] = newValue
            passMetadata()
        }
    }

    /// The metadata.
    ///
    /// If it is set, then the next save writes it.
    ///
    /// The framework's own keys stay as they are.
    package override var metadata: [String: Any]! {
        get { super.metadata }
        set {
            super.metadata = StoreMetadata.replacing(super.metadata ?? [:], with: newValue ?? [:])
            passMetadata()
        }
    }

    private func passMetadata() { postgreSQL?.setMetadata(super.metadata ?? [:], uuid: super.identifier ?? "") }

    package func writeMetadata() throws { try postgreSQL?.saveMetadata() }

    package override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
        try databaseMetadata(at: url, nil)
    }

    package static func databaseMetadata(at url: URL, _ options: [AnyHashable: Any]?) throws -> [String: Any] {
        try PostgreSQLEngine.metadata(
            at: database(url),
            timeout: StoreOption.seconds(options?[NSPersistentStoreTimeoutOption]) ?? 30
        )
    }

    package override class func setMetadata(_ metadata: [String: Any]?, forPersistentStoreAt url: URL) throws {
        try PostgreSQLEngine.rewriteMetadata(metadata, at: database(url))
    }

    // MARK: - Migration

    package static func migrateStore(at url: URL, options: [AnyHashable: Any], _ migration: InPlaceMigration) throws {
        try PostgreSQLEngine.migrate(
            PostgreSQLMigrationRequest(
                url: database(url),
                migration: migration.migration,
                versionIdentifiers: migration.versionIdentifiers,
                modelCache: migration.modelCache,
                mayDropValues: migration.mayDropValues,
                timeout: StoreOption.timeout(options),
                advance: migration.advance,
                note: migration.note
            )
        )
    }

    package static func forecast(at url: URL, options: [AnyHashable: Any], of migration: SchemaMigration) throws
        -> MigrationForecast
    {
        try PostgreSQLEngine.forecast(at: database(url), of: migration, timeout: StoreOption.timeout(options))
    }

    package static func replacement(
        of url: URL,
        options: [AnyHashable: Any],
        model: NSManagedObjectModel,
        configuration: String?
    ) throws -> (any StoreReplacement)? {
        try model.tryFreeze()
        let timeout = StoreOption.timeout(options)
        let named = configuration == defaultConfigurationName ? nil : configuration
        let hashes = model.versionHashes(forConfigurationName: configuration) ?? [:]
        if try PostgreSQLEngine.isPortable(at: database(url), timeout: timeout) {
            return try PortableReplacement(
                of: database(url),
                schema: model.frozen.schema,
                configuration: named,
                hashes: hashes,
                timeout: timeout
            )
        }
        return try PostgreSQLReplacement(
            of: database(url),
            schema: model.frozen.schema,
            configuration: named,
            hashes: hashes,
            timeout: timeout
        )
    }

    package static func cachedModel(at url: URL) throws -> Data? {
        try PostgreSQLEngine.cachedModel(at: database(url))
    }

    // MARK: - Whole stores

    package static func destroyStore(at url: URL, options: [AnyHashable: Any]?) throws {
        let left = try PostgreSQLEngine.destroy(at: database(url), timeout: StoreOption.timeout(options))
        guard let left else { return }
        // This is not an error: the store is gone, as requested.
        try? FileHandle.standardError.write(contentsOf: Data("CoreData: warning: \(left)\n".utf8))
    }

    package static func replaceStore(
        at destination: URL,
        _ destinationOptions: [AnyHashable: Any]?,
        withStoreAt source: URL,
        _ sourceOptions: [AnyHashable: Any]?
    ) throws {
        throw CocoaError.described(
            .persistentStoreInvalidType,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Stores of type \(StoreMetadata.storeType) cannot be replaced; copy the schema with pg_dump and pg_restore."
            ]
        )
    }

    package static func backUpStore(at url: URL, _ options: [AnyHashable: Any]?, to destination: URL) throws {
        throw CocoaError.described(
            .persistentStoreInvalidType,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Stores of type \(StoreMetadata.storeType) are not backed up to files; use pg_dump."
            ]
        )
    }

    package static func discardStore(at url: URL) { _ = try? PostgreSQLEngine.destroy(at: database(url), timeout: 30) }
}

extension PostgreSQLReplacement: StoreReplacement {
    package var options: [AnyHashable: Any] { get throws { try keyOrder.options } }

    package func finish(_ model: NSManagedObjectModel, configuration: String?) throws {
        try model.tryFreeze()
        try finish(
            model.frozen.schema,
            configuration: configuration == defaultConfigurationName ? nil : configuration
        )
    }
}

extension PortableReplacement: StoreReplacement {
    package var options: [AnyHashable: Any] { get throws { try keyOrder.options } }

    package func finish(_ model: NSManagedObjectModel, configuration: String?) throws {
        try model.tryFreeze()
        try finish(
            model.frozen.schema,
            configuration: configuration == defaultConfigurationName ? nil : configuration
        )
    }
}

extension PostgreSQLStore: CommitReportingStore {
    package var reportsCommits: Bool { remoteChanges.withLock { $0 != nil } }

    package func reportCommits() throws {
        guard let postgreSQL, let coordinator = persistentStoreCoordinator, !reportsCommits else { return }
        let poster = RemoteChangePoster(self, in: coordinator)
        postgreSQL.onChanges { poster.enqueue() }
        remoteChanges.withLock { $0 = poster }
    }
}

extension KeyOrder {
    /// The options of a new store that has this order.
    fileprivate var options: [AnyHashable: Any] { [NSPostgreSQLScatteredKeysOption: self == .scattered] }
}
