import Foundation
import StrataRows

extension NSPersistentStoreCoordinator {
    // MARK: - Adding

    /// Opens a store, or makes it if it does not exist yet.
    ///
    /// ```swift
    /// let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    /// let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
    /// ```
    ///
    /// - Parameters:
    ///   - storeType: ``NSPersistentStore/StoreType/sqlite``, ``NSPersistentStore/StoreType/inMemory``,
    ///     ``NSPersistentStore/StoreType/binary``, or a type for which a class is registered.
    ///   - configuration: A configuration of the model whose entities the store holds; `nil` for all entities.
    ///   - storeURL: The file. `/dev/null` makes a private database in memory.
    ///   - options: The values under the option keys, such as ``NSReadOnlyPersistentStoreOption``.
    /// - Returns: The store.
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) with the entities that differ, if the store was made
    ///   with another model, and ``NSMigratePersistentStoresAutomaticallyOption`` does not ask for its migration or the
    ///   store may not be written. If a migration fails: `migrationMissingSourceModel` (134130);
    ///   `migrationMissingMappingModel` (134140), with 134190 as the underlying error if the mapping cannot be
    ///   inferred; and `migration` (134110) for rows that do not fit and for failures of the disk. The store is then as
    ///   it was before. Further: `persistentStoreInvalidType` (134000) for an unknown type;
    ///   `persistentStoreTypeMismatch` (134010); `persistentStoreOpen` (134080), `fileReadCorruptFile` (259) or
    ///   `fileReadNoPermission` (257) for a file that cannot be opened, which is left untouched;
    ///   `persistentStoreTimeout` (134090) if other processes keep it locked.
    @discardableResult
    public func addPersistentStore(
        type storeType: NSPersistentStore.StoreType,
        configuration: String? = nil,
        at storeURL: URL,
        options: [AnyHashable: Any]? = nil
    ) throws -> NSPersistentStore {
        try add(type: storeType.rawValue, configuration: configuration, at: storeURL, options: options)
    }

    /// The older spelling of ``addPersistentStore(type:configuration:at:options:)``; a store in memory needs no URL.
    ///
    /// - Parameters:
    ///   - storeType: The type, such as `NSSQLiteStoreType`.
    ///   - configuration: The configuration of the model that the store holds; `nil` for all entities.
    ///   - storeURL: The place of the store. SQLite and binary stores need one; for the others `nil` means `/dev/null`.
    ///   - options: Options by their keys; `nil` for none.
    /// - Returns: The store.
    /// - Throws: The errors of the newer spelling; also `persistentStoreOpen` (134080) if a URL is needed and missing.
    @discardableResult
    public func addPersistentStore(
        ofType storeType: String,
        configurationName configuration: String?,
        at storeURL: URL?,
        options: [AnyHashable: Any]? = nil
    ) throws -> NSPersistentStore {
        // A custom store may have no place, like a store in memory.
        let storeClass = StoreTypes.storeClass(storeType)
        let builtIn = HigherTargets.all.storeClasses
        let needsURL = storeClass == builtIn[NSSQLiteStoreType] || storeClass == builtIn[NSBinaryStoreType]
        guard let url = storeURL ?? (needsURL ? nil : URL(fileURLWithPath: "/dev/null")) else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "A store of type \(storeType) needs a URL."]
            )
        }
        return try add(type: storeType, configuration: configuration, at: url, options: options)
    }

    private func add(
        type: String,
        configuration: String?,
        at url: URL,
        options: [AnyHashable: Any]?
    ) throws -> NSPersistentStore {
        let entry = try open(type: type, configuration: configuration, at: url, options: options)
        let store: NSPersistentStore = entry.store
        enter(entry)
        store.didAdd(to: self)
        reportMissingClasses()
        post(.NSPersistentStoreCoordinatorStoresDidChange, [NSAddedPersistentStoresKey: [store]])
        return store
    }

    /// Opens a store that no other code knows yet.
    ///
    /// If `former` is not `nil`, then the new store shall take its place.
    private func open(
        type: String,
        configuration: String?,
        at url: URL,
        options: [AnyHashable: Any]?,
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
        let store = try loadedStore(of: storeClass, configuration: configuration, at: url, options: options, type: type)
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
            // The metadata was found by the store itself; the program has not set it.
            store.hasNewMetadata = false
            if made.history != nil { HistoryUse.begin() }
            return made
        } catch {
            entry?.markAsRemoved()
            (try? store.rows)?.close()
            throw error
        }
    }

    /// A store with its metadata; it is migrated if that is needed and wanted.
    private func loadedStore(
        of storeClass: NSPersistentStore.Type,
        configuration: String?,
        at url: URL,
        options: [AnyHashable: Any]?,
        type: String
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
                // A custom class reads its contents later, and reports its version before that if it can.
                if StoreToMigrate.isWanted(options), let custom = store as? any CustomStore,
                    let found = try? storeClass.metadataForPersistentStore(with: url)
                {
                    try custom.checkVersion(managedObjectModel, found)
                }
                return store
            } catch let error as CocoaError
                where error.code == .persistentStoreIncompatibleVersionHash && StoreToMigrate.isWanted(options)
                && attempts < StoreToMigrate.mostAttempts
            {
                attempts += 1
                guard let metadata = error.userInfo["metadata"] as? [String: Any] else { throw error }
                let former = StoreToMigrate(
                    model: managedObjectModel,
                    configuration: configuration == defaultConfigurationName ? nil : configuration,
                    type: type,
                    url: url,
                    options: options ?? [:]
                )
                let start = ContinuousClock.now
                do {
                    try HigherTargets.all.migrate(former, metadata)
                    reportToInstrument(ofMigrationAt: url, .now - start, nil)
                } catch {
                    reportToInstrument(ofMigrationAt: url, .now - start, error)
                    // The metadata that was read before is outdated if another process has migrated the store
                    // meanwhile.
                    let now = try? storeClass.metadata(at: url, options: options)
                    let hashes = [metadata, now ?? metadata].map { $0[NSStoreModelVersionHashesKey] as? [String: Data] }
                    guard hashes[0] != hashes[1], !StoreToMigrate.ignoresOthers else { throw error }
                }
            } catch {
                (try? store.rows)?.close()
                throw error
            }
        }
    }

    private func reportToInstrument(ofMigrationAt url: URL, _ duration: Duration, _ error: (any Error)?) {
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

    /// The store at a URL, in any spelling of the URL.
    func openStore(at url: URL) -> OpenStore? {
        let place = FilePlace(url)
        return openStores.first { store in store.store.url.map { FilePlace($0) == place } ?? false }
    }

    private func post(_ name: Notification.Name, _ userInfo: [AnyHashable: Any]) {
        NotificationCenter.default.post(name: name, object: self, userInfo: userInfo)
    }

    // MARK: - Removing and moving

    /// Closes a store and removes it from the coordinator.
    ///
    /// Its objects may not be used after that.
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

    /// Notifies a store, and its observers, that it is about to be removed.
    private func leave(_ store: NSPersistentStore) {
        NotificationCenter.default.post(name: .NSPersistentStoreCoordinatorWillRemoveStore, object: store)
        store.willRemove(from: self)
    }

    private func close(_ entry: OpenStore) {
        markAsRemoved(entry)
        entry.rows.close()
        entry.cache.removeAll()
        entry.store.persistentStoreCoordinator = nil
    }

    /// Copies all objects of a store into a new one, which takes the place of the old store in this coordinator.
    ///
    /// The old store's file stays as it is. The new store has another UUID, so objects have other IDs there.
    ///
    /// Contexts of this coordinator and their children keep their objects, whether these are faults, read, changed,
    /// deleted, or new. Rows keep their keys and versions, so that a later save writes to the new store, and finds a
    /// conflict only if it would have found one before. Captured IDs of the old store refer to the objects in the new
    /// store as long as the process runs; ``managedObjectID(forURIRepresentation:)`` resolves their URIs in the same
    /// way. Other processes and other coordinators do not know of the migration.
    ///
    /// Fetches read the old store until all objects are copied, and the new store after that. Saves wait during the
    /// copy, and then write to the new store. Batches that have waited throw `persistentStoreOperation` (134070) and
    /// have written nothing. If a context is pinned to a version of the old store, then its reads throw 134070 until
    /// the context is pinned anew, or moves on by a save.
    ///
    /// ```swift
    /// for store in coordinator.persistentStores {
    ///     try coordinator.migratePersistentStore(store, to: newURL, type: .sqlite)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - store: A store of this coordinator.
    ///   - storeURL: The place of the new store. A store may exist there, but only if it never had an object; otherwise
    ///     keys would be given twice.
    ///   - options: Options for the new store.
    ///   - storeType: The type of the new store.
    /// - Returns: The new store.
    /// - Throws: `persistentStoreOperation` (134070) and the errors of adding a store and of saving; the old store is
    ///   still in use in that case.
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
        let target = try open(
            type: storeType.rawValue,
            configuration: configuration,
            at: storeURL,
            options: options,
            replacing: source
        )
        var copied: [ChangeMessage.Change] = []
        do {
            let copier = StoreCopier(model: frozenModel, from: source, to: target)
            try copier.requireEmptyTarget()
            // No save can happen between the copy and the exchange.
            try source.rows.retire {
                copied = try copier.copy()
                try copier.copyMetadata()
                replace(source, with: target)
            }
        } catch {
            // Once the new store is in use, a failure of the old one to release its locks does not matter.
            if source.successor == nil {
                // A database that existed before is not removed.
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
    ///   - URL: The place of the new store.
    ///   - options: Options for the new store; `nil` for none.
    ///   - storeType: The type of the new store, such as `NSSQLiteStoreType`.
    /// - Returns: The new store.
    /// - Throws: The errors of the newer spelling.
    @discardableResult
    public func migratePersistentStore(
        _ store: NSPersistentStore,
        to URL: URL,
        options: [AnyHashable: Any]? = nil,
        withType storeType: String
    ) throws -> NSPersistentStore {
        try migratePersistentStore(store, to: URL, options: options, type: .init(rawValue: storeType))
    }

    /// Copies one store's file, with its external files, over another's without converting it.
    ///
    /// A SQLite store that is replaced may be open, here and in other processes: each program sees either the complete
    /// old store or the complete new one. If the new one is another state of the same store, with the same UUID, then
    /// faults read it from then on. A save of objects that were read before is then a conflict, as if every object had
    /// been changed elsewhere. If the new one has another UUID, then programs that have the old one open get
    /// `persistentStoreOperation` (134070) from then on. For a moment this takes the space of the store twice.
    ///
    /// If this coordinator has another store open at the destination, then it removes that store and replaces the file.
    /// Then it adds a new store at the same URL, with the same configuration and options. Objects of the removed store
    /// are saved nowhere. Read ``persistentStores`` anew afterwards.
    ///
    /// ```swift
    /// try coordinator.replacePersistentStore(at: newURL, withPersistentStoreFrom: oldURL, type: .sqlite)
    /// ```
    ///
    /// - Parameters:
    ///   - destinationURL: The file to replace, or to make.
    ///   - destinationOptions: Options for the destination: the time-out, and pragmas. Read-only is refused.
    ///   - sourceURL: The store to copy.
    ///   - sourceOptions: Options for the source.
    ///   - sourceType: The type of both.
    /// - Throws: `persistentStoreInvalidType` (134000) if stores of that type cannot be replaced,
    ///   `persistentStoreOperation` (134070) if `destinationOptions` are read-only, and errors of either file. If the
    ///   destination is open here, then also `persistentStoreOperation` if that store has another type or no file,
    ///   `persistentStoreIncompatibleVersionHash` (134100) if the source has another version of the model and the open
    ///   store's options ask for no migration, and `persistentStoreOpen` (134080) if a store with the source's UUID is
    ///   open here. The store is open after each of these errors. If the new contents cannot be opened, for example
    ///   because their migration fails, then that error is thrown and the store is not open.
    public func replacePersistentStore(
        at destinationURL: URL,
        destinationOptions: [AnyHashable: Any]? = nil,
        withPersistentStoreFrom sourceURL: URL,
        sourceOptions: [AnyHashable: Any]? = nil,
        type sourceType: NSPersistentStore.StoreType
    ) throws {
        guard let storeClass = StoreTypes.wholeStoreClass(sourceType.rawValue) else {
            throw unsupported("replaced", sourceType)
        }
        func replace() throws {
            try storeClass.replaceStore(at: destinationURL, destinationOptions, withStoreAt: sourceURL, sourceOptions)
        }
        // Other types cannot be replaced, and nothing is written with read-only options: that throws at once.
        guard [.sqlite, .binary].contains(sourceType),
            !StoreOption.flag(destinationOptions?[NSReadOnlyPersistentStoreOption]),
            let open = openStore(at: destinationURL)?.store,
            try !isOpen(destinationURL, asAnotherStateOf: sourceURL, ofType: sourceType, options: sourceOptions)
        else { return try replace() }
        guard FilePlace(destinationURL) != FilePlace(sourceURL) else { return }
        // Contexts hold rows by keys, which mean other objects in another store: the open store makes way for a new one.
        try requireReplacement(of: open, byStoreAt: sourceURL, sourceType, sourceOptions)
        func reopen() throws {
            try addPersistentStore(
                type: sourceType,
                configuration: open.configurationName,
                at: destinationURL,
                options: open.options
            )
        }
        try remove(open)
        do {
            try replace()
        } catch {
            do { try reopen() } catch { report(error, "opening a store again that could not be replaced") }
            throw error
        }
        try reopen()
    }

    /// The older spelling of ``replacePersistentStore(at:destinationOptions:withPersistentStoreFrom:sourceOptions:type:)``.
    ///
    /// - Parameters:
    ///   - destinationURL: The file to replace, or to make.
    ///   - destinationOptions: Options for the destination; `nil` for none.
    ///   - sourceURL: The store to copy.
    ///   - sourceOptions: Options for the source; `nil` for none.
    ///   - storeType: The type of both, such as `NSSQLiteStoreType`.
    /// - Throws: The errors of the newer spelling.
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

    /// Removes the contents of a store.
    ///
    /// If the store is open in this coordinator, then it is first removed from the coordinator, as by ``remove(_:)``,
    /// and it stays removed if the rest fails. A SQLite file is emptied under its locks, so that other processes that
    /// have it open see that. A binary file is removed. A missing file is no error: for a SQLite store an empty file is
    /// made, and leftovers of its log (`-wal`, `-shm`) are removed.
    ///
    /// ```swift
    /// try coordinator.destroyPersistentStore(at: oldURL, type: .sqlite)
    /// ```
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - type: Its type.
    ///   - options: `NSPersistentStoreForceDestroyOption` removes a file even if it is no store of that type.
    /// - Throws: `persistentStoreOperation` (134070) for a store that is open in this coordinator with another type;
    ///   `persistentStoreInvalidType` (134000) if stores of that type cannot be destroyed; and errors of the file.
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
    ///   - options: `NSPersistentStoreForceDestroyOption` removes a file even if it is no store of that type; `nil` for
    ///     none.
    /// - Throws: The errors of the newer spelling.
    public func destroyPersistentStore(at url: URL, ofType storeType: String, options: [AnyHashable: Any]? = nil) throws
    {
        try destroyPersistentStore(at: url, type: .init(rawValue: storeType), options: options)
    }

    /// Whether a store is open here that can take other contents of the same store.
    private func isOpen(
        _ destination: URL,
        asAnotherStateOf source: URL,
        ofType type: NSPersistentStore.StoreType,
        options: [AnyHashable: Any]?
    ) throws -> Bool {
        // Only such an engine can distinguish rows that were read before from the rows that are there now.
        guard let open = openStore(at: destination), open.rows.versionForm == .offset, open.store.type == type.rawValue
        else { return false }
        let metadata = try Self.metadataForPersistentStore(type: type, at: source, options: options)
        let hashes = metadata[NSStoreModelVersionHashesKey] as? [String: Data]
        return metadata[NSStoreUUIDKey] as? String == open.store.identifier
            && hashes == open.store.metadata[NSStoreModelVersionHashesKey] as? [String: Data]
    }

    /// Throws unless this coordinator can open what is going to take the place of an open store.
    private func requireReplacement(
        of open: NSPersistentStore,
        byStoreAt source: URL,
        _ type: NSPersistentStore.StoreType,
        _ options: [AnyHashable: Any]?
    ) throws {
        // A store without a file would be lost.
        if let url = open.url, open.type != type.rawValue || url.path == "/dev/null" { try requireClosed(url) }
        let metadata = try Self.metadataForPersistentStore(type: type, at: source, options: options)
        if let copied = openStores.first(where: {
            $0.store !== open && $0.store.identifier == metadata[NSStoreUUIDKey] as? String
        }) {
            throw alreadyOpen(
                "The store \(source.placeName) is open in this coordinator, which cannot open its copy.",
                copied
            )
        }
        guard
            managedObjectModel.isConfiguration(
                withName: open.configurationName,
                compatibleWithStoreMetadata: metadata
            ) || StoreToMigrate.isWanted(open.options)
                || StoreOption.flag(open.options?[NSIgnorePersistentStoreVersioningOption])
        else {
            throw CocoaError.described(
                .persistentStoreIncompatibleVersionHash,
                userInfo: [
                    NSLocalizedDescriptionKey: """
                    The store \(source.placeName) was made with another version of the model, and the open store's \
                    options ask for no migration.
                    """,
                    "metadata": metadata,
                ]
            )
        }
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
