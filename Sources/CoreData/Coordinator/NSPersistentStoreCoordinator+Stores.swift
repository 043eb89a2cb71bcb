import Foundation
import StrataRows

extension NSPersistentStoreCoordinator {
    // MARK: - Adding

    /// Opens a store, or makes it if there is none yet.
    ///
    /// ```swift
    /// let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    /// let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
    /// ```
    ///
    /// - Parameters:
    ///   - storeType: ``NSPersistentStore/StoreType/sqlite``, ``NSPersistentStore/StoreType/inMemory``,
    ///     ``NSPersistentStore/StoreType/binary``, or a type that a class is registered for.
    ///   - configuration: A configuration of the model whose entities the store holds; `nil` for all entities.
    ///   - storeURL: The file. `/dev/null` makes a private database in memory.
    ///   - options: By the option keys, such as ``NSReadOnlyPersistentStoreOption``.
    /// - Returns: The store.
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) with the entities that differ, if the store was made with
    ///   another model and ``NSMigratePersistentStoresAutomaticallyOption`` does not ask for its migration, or it may not be written.
    ///   Of a migration: `migrationMissingSourceModel` (134130), `migrationMissingMappingModel` (134140), with 134190 as the underlying error
    ///   where the mapping cannot be inferred, and `migration` (134110) for rows that do not fit and for failures of the disk; the store is as
    ///   it was then.
    ///   Further: `persistentStoreInvalidType` (134000) for an unknown type; `persistentStoreTypeMismatch` (134010);
    ///   `persistentStoreOpen` (134080), `fileReadCorruptFile` (259) or `fileReadNoPermission` (257) for a file that cannot
    ///   be opened, which is left untouched; `persistentStoreTimeout` (134090) if others keep it locked.
    @discardableResult
    public func addPersistentStore(
        type storeType: NSPersistentStore.StoreType,
        configuration: String? = nil,
        at storeURL: URL,
        options: [AnyHashable: Any]? = nil
    ) throws -> NSPersistentStore {
        try add(storeType.rawValue, configuration, storeURL, options)
    }

    /// The older spelling of ``addPersistentStore(type:configuration:at:options:)``; a store in memory needs no URL.
    ///
    /// - Parameters:
    ///   - storeType: The type, such as `NSSQLiteStoreType`.
    ///   - configuration: The configuration of the model that the store holds; `nil` for all entities.
    ///   - storeURL: Where the store lies. SQLite and binary stores need one; the others take `nil` as `/dev/null`.
    ///   - options: Options by their keys; `nil` for none.
    /// - Returns: The store.
    /// - Throws: As the newer spelling; also `persistentStoreOpen` (134080) where a URL is needed and missing.
    @discardableResult
    public func addPersistentStore(
        ofType storeType: String,
        configurationName configuration: String?,
        at storeURL: URL?,
        options: [AnyHashable: Any]? = nil
    ) throws -> NSPersistentStore {
        // A store of one's own may lie nowhere, as one in memory does.
        let storeClass = StoreTypes.storeClass(storeType)
        let needsURL = storeClass == SQLiteStore.self || storeClass == BinaryStore.self
        guard let url = storeURL ?? (needsURL ? nil : URL(fileURLWithPath: "/dev/null")) else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "A store of type \(storeType) needs a URL."]
            )
        }
        return try add(storeType, configuration, url, options)
    }

    /// Opens the store that a description describes, on a background queue if the description says so.
    ///
    /// - Parameters:
    ///   - storeDescription: What to open, and how.
    ///   - block: Called once, with the error if there was one; before this returns unless the store is added asynchronously.
    public func addPersistentStore(
        with storeDescription: NSPersistentStoreDescription,
        completionHandler block: @escaping (NSPersistentStoreDescription, (any Error)?) -> Void
    ) {
        let request = AddRequest(coordinator: self, description: storeDescription, handler: block)
        guard storeDescription.shouldAddStoreAsynchronously else { return request.run() }
        DispatchQueue.global().async { request.run() }
    }

    private func add(
        _ type: String,
        _ configuration: String?,
        _ url: URL,
        _ options: [AnyHashable: Any]?
    ) throws -> NSPersistentStore {
        let entry = try open(type, configuration, url, options)
        let store: NSPersistentStore = entry.store
        enter(entry)
        store.didAdd(to: self)
        reportMissingClasses()
        post(.NSPersistentStoreCoordinatorStoresDidChange, [NSAddedPersistentStoresKey: [store]])
        return store
    }

    /// Opens a store that no other code knows yet; one that shall take the place of `former` if that is not `nil`.
    private func open(
        _ type: String,
        _ configuration: String?,
        _ url: URL,
        _ options: [AnyHashable: Any]?,
        replacing former: OpenStore? = nil
    ) throws -> OpenStore {
        if isClosed { throw closedError }
        let storeClass = try StoreTypes.required(type)
        guard let entities = managedObjectModel.storedEntities(forConfigurationName: configuration) else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "The model has no configuration \"\(configuration ?? "")\"."]
            )
        }
        if url.path != "/dev/null", type != NSInMemoryStoreType, let other = openStore(at: url) {
            throw alreadyOpen("The store \(url.placeName) is open in this coordinator already.", other)
        }
        let store = try loadedStore(storeClass, configuration, url, options, type)
        var entry: OpenStore?
        do {
            if let other = openStores.first(where: { $0.store.identifier == store.identifier }), store.identifier != nil
            {
                throw alreadyOpen(
                    "The store \(url.placeName) is a copy of one that is open in this coordinator.",
                    other
                )
            }
            let numbers = Set(entities.map(\.entityNumber))
            let made = makeEntry(store, try store.rows, entityNumbers: numbers, replacing: former)
            entry = made
            try made.custom?.open(as: made)
            try (store as? any EngineStore)?.open()
            // What a store has found, and not what somebody has set.
            store.hasNewMetadata = false
            if (made.rows as? any HistoryStore)?.hasHistory == true { HistoryModel.noteUse() }
            return made
        } catch {
            entry?.noteRemoval()
            (try? store.rows)?.close()
            throw error
        }
    }

    /// A store with its metadata, migrated if that is needed and wanted.
    private func loadedStore(
        _ storeClass: NSPersistentStore.Type,
        _ configuration: String?,
        _ url: URL,
        _ options: [AnyHashable: Any]?,
        _ type: String
    ) throws -> NSPersistentStore {
        var attempts = 0
        while true {
            let store = storeClass.init(
                persistentStoreCoordinator: self,
                configurationName: configuration,
                at: url,
                options: options
            )
            do {
                try store.loadMetadata()
                // A class of one's own reads its contents later, and tells its version before if it can.
                if AutomaticMigration.isWanted(options), let custom = store as? any CustomStore,
                    let found = try? storeClass.metadataForPersistentStore(with: url)
                {
                    try custom.checkVersion(managedObjectModel, found)
                }
                return store
            } catch let error as CocoaError
                where error.code == .persistentStoreIncompatibleVersionHash && AutomaticMigration.isWanted(options)
                && attempts < AutomaticMigration.mostAttempts
            {
                attempts += 1
                guard let metadata = error.userInfo["metadata"] as? [String: Any] else { throw error }
                let migration = AutomaticMigration(
                    model: managedObjectModel,
                    configuration: configuration == defaultConfigurationName ? nil : configuration,
                    type: type,
                    url: url,
                    options: options ?? [:]
                )
                let start = ContinuousClock.now
                do {
                    try migration.run(metadata)
                    tellInstrument(ofMigrationAt: url, .now - start, nil)
                } catch {
                    tellInstrument(ofMigrationAt: url, .now - start, error)
                    // What was read of the store does not belong together if somebody else has migrated it meanwhile.
                    let now = try? storeClass.metadata(at: url, options: options)
                    let hashes = [metadata, now ?? metadata].map { $0[NSStoreModelVersionHashesKey] as? [String: Data] }
                    guard hashes[0] != hashes[1], !AutomaticMigration.ignoresOthers else { throw error }
                }
            } catch {
                (try? store.rows)?.close()
                throw error
            }
        }
    }

    private func tellInstrument(ofMigrationAt url: URL, _ duration: Duration, _ error: (any Error)?) {
        instrumentation.instrument?.record(
            CoreDataEvent(
                kind: .migration,
                duration: duration,
                store: url.lastPathComponent,
                errorCode: error.map { ($0 as NSError).code }
            )
        )
    }

    private func alreadyOpen(_ reason: String, _ other: OpenStore) -> CocoaError {
        CocoaError.described(
            .persistentStoreOpen,
            userInfo: [NSLocalizedDescriptionKey: reason, NSAffectedStoresErrorKey: [other.store]]
        )
    }

    /// The store at a URL, however that is written.
    func openStore(at url: URL) -> OpenStore? {
        let place = FilePlace(url)
        return openStores.first { store in store.store.url.map { FilePlace($0) == place } ?? false }
    }

    private func post(_ name: Notification.Name, _ userInfo: [AnyHashable: Any]) {
        NotificationCenter.default.post(name: name, object: self, userInfo: userInfo)
    }

    // MARK: - Removing and moving

    /// Closes a store and lets go of it.
    ///
    /// Its objects may not be used any more.
    ///
    /// ```swift
    /// for store in coordinator.persistentStores { try coordinator.remove(store) }
    /// ```
    ///
    /// - Parameter store: A store of this coordinator.
    /// - Throws: `persistentStoreOperation` (134070) for a store that is not of this coordinator.
    public func remove(_ store: NSPersistentStore) throws {
        guard let entry = openStore(of: store) else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [NSLocalizedDescriptionKey: "The store is not one of this coordinator."]
            )
        }
        leave(store)
        close(entry)
        post(.NSPersistentStoreCoordinatorStoresDidChange, [NSRemovedPersistentStoresKey: [store]])
    }

    /// Tells a store, and those who observe it, that it is about to go.
    private func leave(_ store: NSPersistentStore) {
        NotificationCenter.default.post(name: .NSPersistentStoreCoordinatorWillRemoveStore, object: store)
        store.willRemove(from: self)
    }

    private func close(_ entry: OpenStore) {
        take(entry)
        entry.rows.close()
        entry.cache.removeAll()
        entry.store.persistentStoreCoordinator = nil
    }

    /// Copies all objects of a store into a new one, which takes the old one's place in this coordinator.
    ///
    /// The old store's file stays as it is. The new store has another UUID, so objects have other IDs there.
    ///
    /// Contexts of this coordinator, children included, go on with the objects that they have, be they faults, read,
    /// changed, deleted, or new. Rows keep their keys and versions, so that a later save writes to the new store, and
    /// finds a conflict exactly if it would have found one before. IDs of the old store that were captured lead to the
    /// new ones as long as the process runs, and so does ``managedObjectID(forURIRepresentation:)``. Another process,
    /// and another coordinator, know nothing of that.
    ///
    /// Fetches see the old store's objects until all are copied, and then the new one's. Saves wait meanwhile, and go to
    /// the new store. Batches that have waited throw `persistentStoreOperation` (134070) and have written nothing. Reads
    /// of a version of the old store, to which a context was pinned, throw 134070 until the context is pinned anew, or
    /// moves on by a save.
    ///
    /// ```swift
    /// for store in coordinator.persistentStores {
    ///     try coordinator.migratePersistentStore(store, to: newURL, type: .sqlite)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - store: A store of this coordinator.
    ///   - storeURL: Where the new store is made. A store may be there, but it must never have had an object, as keys would
    ///     be given twice.
    ///   - options: Options for the new store.
    ///   - storeType: The type of the new store.
    /// - Returns: The new store.
    /// - Throws: `persistentStoreOperation` (134070) and the errors of adding a store and of saving; the old store is
    ///   still there then.
    @discardableResult
    public func migratePersistentStore(
        _ store: NSPersistentStore,
        to storeURL: URL,
        options: [AnyHashable: Any]? = nil,
        type storeType: NSPersistentStore.StoreType
    ) throws -> NSPersistentStore {
        guard let source = openStore(of: store) else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [NSLocalizedDescriptionKey: "The store is not one of this coordinator."]
            )
        }
        let hadFile = FileManager.default.fileExists(atPath: storeURL.path)
        let configuration = store.configurationName == defaultConfigurationName ? nil : store.configurationName
        let target = try open(storeType.rawValue, configuration, storeURL, options, replacing: source)
        var copied: [ChangeMessage.Change] = []
        do {
            let copier = StoreCopier(model: frozenModel, from: source, to: target)
            try copier.requireEmptyTarget()
            // No save is between the copy and the exchange.
            try source.rows.retire {
                copied = try copier.copy()
                try copier.copyMetadata()
                replace(source, with: target)
            }
        } catch {
            // Once the new store is in use, it does not matter how the old one lets go of its locks.
            if source.successor == nil {
                // Nothing of a database is removed that was there before.
                let isNew = target.rows.wasMade ?? !hadFile
                close(target)
                if isNew { StoreTypes.wholeStoreClass(storeType.rawValue)?.discardStore(at: storeURL) }
                throw error
            }
        }
        leave(store)
        close(source)
        target.store.didAdd(to: self)
        let change: [Any] = [store, target.store, copied.map(\.id)]
        post(
            .NSPersistentStoreCoordinatorStoresDidChange,
            [
                NSAddedPersistentStoresKey: [target.store], NSRemovedPersistentStoresKey: [store],
                NSUUIDChangedPersistentStoresKey: change,
            ]
        )
        return target.store
    }

    /// The older spelling of ``migratePersistentStore(_:to:options:type:)``.
    ///
    /// - Parameters:
    ///   - store: A store of this coordinator.
    ///   - URL: Where the new store is to lie.
    ///   - options: Options for the new store; `nil` for none.
    ///   - storeType: The type of the new store, such as `NSSQLiteStoreType`.
    /// - Returns: The new store.
    /// - Throws: As the newer spelling.
    @discardableResult
    public func migratePersistentStore(
        _ store: NSPersistentStore,
        to URL: URL,
        options: [AnyHashable: Any]? = nil,
        withType storeType: String
    ) throws -> NSPersistentStore {
        try migratePersistentStore(store, to: URL, options: options, type: .init(rawValue: storeType))
    }

    /// Copies one store's file over another's, as it is, with its external files.
    ///
    /// A SQLite store that is replaced may be open, here and elsewhere: each program sees all of the old one or all of the new one. If
    /// the new one is another state of the same store, with the same UUID, then faults read it from then on. A save of objects that were
    /// read before is a conflict then, as if others had changed every object. If it has another UUID, then those who have it open get
    /// `persistentStoreOperation` (134070) from then on. Takes the space of the store twice for a moment.
    ///
    /// ```swift
    /// try coordinator.replacePersistentStore(at: newURL, withPersistentStoreFrom: oldURL, type: .sqlite)
    /// ```
    ///
    /// - Parameters:
    ///   - destinationURL: The file to replace, or to make. In this coordinator it may be open only if it is a SQLite store, and the source
    ///     has the same UUID and the same model.
    ///   - destinationOptions: Options for the destination: how long to wait for it, and pragmas. Read-only is refused.
    ///   - sourceURL: What is copied.
    ///   - sourceOptions: Options for the source.
    ///   - sourceType: The type of both.
    /// - Throws: `persistentStoreOperation` (134070) for a destination that is open here as anything else, or read-only;
    ///   `persistentStoreInvalidType` (134000) for a type of which stores cannot be replaced; and errors of either file.
    public func replacePersistentStore(
        at destinationURL: URL,
        destinationOptions: [AnyHashable: Any]? = nil,
        withPersistentStoreFrom sourceURL: URL,
        sourceOptions: [AnyHashable: Any]? = nil,
        type sourceType: NSPersistentStore.StoreType
    ) throws {
        if try !isOpen(destinationURL, asAnotherStateOf: sourceURL, sourceType) { try requireClosed(destinationURL) }
        guard let storeClass = StoreTypes.wholeStoreClass(sourceType.rawValue) else {
            throw unsupported("replaced", sourceType)
        }
        try storeClass.replaceStore(at: destinationURL, destinationOptions, withStoreAt: sourceURL, sourceOptions)
    }

    /// The older spelling of ``replacePersistentStore(at:destinationOptions:withPersistentStoreFrom:sourceOptions:type:)``.
    ///
    /// - Parameters:
    ///   - destinationURL: The file to replace, or to make. In this coordinator it may be open only if it is a SQLite store, and the source
    ///     has the same UUID and the same model.
    ///   - destinationOptions: Options for the destination; `nil` for none.
    ///   - sourceURL: What is copied.
    ///   - sourceOptions: Options for the source; `nil` for none.
    ///   - storeType: The type of both, such as `NSSQLiteStoreType`.
    /// - Throws: As the newer spelling.
    public func replacePersistentStore(
        at destinationURL: URL,
        destinationOptions: [AnyHashable: Any]? = nil,
        withPersistentStoreFrom sourceURL: URL,
        sourceOptions: [AnyHashable: Any]? = nil,
        ofType storeType: String
    ) throws {
        try replacePersistentStore(
            at: destinationURL,
            destinationOptions: destinationOptions,
            withPersistentStoreFrom: sourceURL,
            sourceOptions: sourceOptions,
            type: .init(rawValue: storeType)
        )
    }

    /// Removes all that a store holds.
    ///
    /// If the store is open in this coordinator it is removed from it first, as by ``remove(_:)``, and stays removed if the rest
    /// fails. A SQLite file is emptied under its locks, so that others that have it open see it. A binary file is removed. A
    /// file that is missing is no error: an empty one is made for a SQLite store, and what is left of its log (`-wal`, `-shm`)
    /// is removed.
    ///
    /// ```swift
    /// try coordinator.destroyPersistentStore(at: oldURL, type: .sqlite)
    /// ```
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - type: Its type.
    ///   - options: `NSPersistentStoreForceDestroyOption` removes a file even if it is no such store.
    /// - Throws: `persistentStoreOperation` (134070) for a store that is open in this coordinator with another type;
    ///   `persistentStoreInvalidType` (134000) for a type of which stores cannot be destroyed; and errors of the file.
    public func destroyPersistentStore(
        at url: URL,
        type: NSPersistentStore.StoreType,
        options: [AnyHashable: Any]? = nil
    ) throws {
        guard let storeClass = StoreTypes.wholeStoreClass(type.rawValue) else { throw unsupported("destroyed", type) }
        if url.path != "/dev/null", let open = openStore(at: url), open.store.type == type.rawValue {
            try remove(open.store)
        }
        if type != .inMemory { try requireClosed(url) }
        try storeClass.destroyStore(at: url, options: options)
    }

    /// The older spelling of ``destroyPersistentStore(at:type:options:)``.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - storeType: Its type, such as `NSSQLiteStoreType`.
    ///   - options: `NSPersistentStoreForceDestroyOption` removes a file even if it is no such store; `nil` for none.
    /// - Throws: As the newer spelling.
    public func destroyPersistentStore(at url: URL, ofType storeType: String, options: [AnyHashable: Any]? = nil) throws
    {
        try destroyPersistentStore(at: url, type: .init(rawValue: storeType), options: options)
    }

    /// Whether a store is open here that takes other contents of the same store.
    private func isOpen(
        _ destination: URL,
        asAnotherStateOf source: URL,
        _ type: NSPersistentStore.StoreType
    ) throws -> Bool {
        // Only such an engine can distinguish what was read before from what is there now.
        guard let open = openStore(at: destination), open.rows.versionForm == .offset, open.store.type == type.rawValue
        else { return false }
        let metadata = try Self.metadataForPersistentStore(type: type, at: source)
        let hashes = metadata[NSStoreModelVersionHashesKey] as? [String: Data]
        return metadata[NSStoreUUIDKey] as? String == open.store.identifier
            && hashes == open.store.metadata[NSStoreModelVersionHashesKey] as? [String: Data]
    }

    private func requireClosed(_ url: URL) throws {
        guard let open = openStore(at: url) else { return }
        throw CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey: "The store \(url.placeName) is open in this coordinator; remove it first.",
                NSAffectedStoresErrorKey: [open.store],
            ]
        )
    }

    func unsupported(_ what: String, _ type: NSPersistentStore.StoreType) -> CocoaError {
        CocoaError.described(
            .persistentStoreInvalidType,
            userInfo: [NSLocalizedDescriptionKey: "Stores of type \(type.rawValue) cannot be \(what)."]
        )
    }
}

/// A description on its way to being added, perhaps on another queue.
private final class AddRequest: @unchecked Sendable {
    // @unchecked Sendable: constants; whoever made the description leaves it alone until the handler was called.
    private let coordinator: NSPersistentStoreCoordinator
    private let description: NSPersistentStoreDescription
    private let handler: (NSPersistentStoreDescription, (any Error)?) -> Void

    init(
        coordinator: NSPersistentStoreCoordinator,
        description: NSPersistentStoreDescription,
        handler: @escaping (NSPersistentStoreDescription, (any Error)?) -> Void
    ) {
        self.coordinator = coordinator
        self.description = description
        self.handler = handler
    }

    func run() {
        var failure: (any Error)?
        do {
            try coordinator.addPersistentStore(
                ofType: description.type,
                configurationName: description.configuration,
                at: description.url,
                options: description.allOptions
            )
        } catch {
            failure = error
        }
        handler(description, failure)
    }
}
