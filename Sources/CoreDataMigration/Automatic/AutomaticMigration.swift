import CoreDataEngineStores
import CoreDataEssentials
import Foundation
import StrataPredicates
import StrataRows
import StrataSQLiteStore

/// The migration of a store that is being added, and was written with another version of the model.
///
/// It uses a mapping model if one fits, otherwise an inferred mapping if that is allowed. It migrates in place if the
/// store can.
package struct AutomaticMigration {
    /// The store, and the model to which it is migrated.
    let store: StoreToMigrate
    /// The known versions of the model, in addition to those in the program's bundles.
    var knownModels: [NSManagedObjectModel] = []
    /// The folder with mapping models of the whole migration, if this migration is a step of it.
    var mappingFolderOfWhole: URL?

    /// Whether the order of the versions is known, so that values that a step drops are dropped intentionally.
    var isPlanned = false

    private var infers: Bool { StoreOption.flag(options[NSInferMappingModelAutomaticallyOption]) }

    /// A function that receives the finished part of the migration, from 0 to 1; `nil` for none.
    var report: ((Double) -> Void)?

    /// A function that receives what the log says besides about the work of the store; `nil` for none.
    var note: ((String) -> Void)?

    /// The object that receives the progress of the migration.
    var progress: MigrationProgress?

    var model: NSManagedObjectModel { store.model }
    var configuration: String? { store.configuration }
    var type: String { store.type }
    var url: URL { store.url }
    var options: [AnyHashable: Any] { store.options }

    /// The migration of a store, with nothing but that known.
    package init(of store: StoreToMigrate) { self.store = store }

    /// Migrates the store, after any other migration of it has ended.
    ///
    /// It also returns normally if another process or thread has migrated the store first.
    ///
    /// - Parameter metadata: The metadata of the store when it was opened.
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) for a store that may not be written, and the errors
    ///   of ``NSPersistentStoreCoordinator/addPersistentStore(type:configuration:at:options:)``.
    package func run(_ metadata: [String: Any]) throws {
        try requireWritable(metadata)
        // An engine that migrates by itself also keeps other migrations out.
        let turn =
            try StoreToMigrate.ignoresOthers || migratingClass != nil
            ? nil : MigrationTurn(of: url, timeout: StoreOption.timeout(options))
        try withExtendedLifetime(turn) {
            let now =
                try StoreToMigrate.ignoresOthers
                ? metadata : StoreTypes.required(type).metadata(at: url, options: options)
            guard !model.isConfiguration(withName: configuration, compatibleWithStoreMetadata: now) else {
                return MigrationLog.note(url, "another process or thread has migrated the store")
            }
            var migration = self
            migration.progress = MigrationProgress(options, report: report)
            do {
                try migration.goAnyWay(now)
            } catch  where migration.progress?.isCancelled == true {
                throw MigrationProgress.cancelled(url)
            }
            migration.progress?.finish()
        }
    }

    /// Migrates the store in stages, in one step, or in several steps if that is allowed.
    private func goAnyWay(_ metadata: [String: Any]) throws {
        if let stages = options[NSPersistentStoreStagedMigrationManagerOptionKey] as? NSStagedMigrationManager {
            return try StagedMigration(stages, of: self).run()
        }
        if isProgressive {
            let source = try source(metadata, preferring: .store)
            if !hasMappingModel(from: source), ProgressiveMigration(self).hasMappedStep(from: source) {
                return try ProgressiveMigration(self).run(metadata)
            }
        }
        do {
            try goOneStep(metadata)
        } catch let error as CocoaError where error.code == .migrationMissingMappingModel && isProgressive {
            try ProgressiveMigration(self, insteadOf: error).run(metadata)
        }
    }

    /// Whether a store may be migrated to its version through other versions.
    private var isProgressive: Bool {
        versionsFolder != nil || StoreOption.flag(options[NSPersistentStoreAllowsProgressiveMigrationOption])
    }

    /// The folder with the intermediate versions, if the options name one.
    private var versionsFolder: URL? {
        let option = options[NSPersistentStoreAllowsProgressiveMigrationOption]
        return option as? URL ?? (option as? NSURL).map { $0 as URL }
    }

    /// The folder that may have mapping models, in addition to the program's bundles.
    var mappingFolder: URL? { mappingFolderOfWhole ?? versionsFolder?.deletingLastPathComponent() }

    /// The versions in the folder that the options name, in their order.
    var progressiveVersions: [NSManagedObjectModel] {
        versionsFolder.map { ProgressiveMigration.versions(in: $0) } ?? []
    }

    /// Migrates the store by a mapping model, or else by an inferred mapping.
    private func goOneStep(_ metadata: [String: Any]) throws {
        let source = try source(metadata, preferring: .store)
        if try migrateByMappingModel(from: source, metadata) { return }
        guard infers else {
            throw missingMapping(
                from: source,
                reason:
                    "No mapping model in the program's bundles fits, "
                    + "and the mapping may not be inferred without NSInferMappingModelAutomaticallyOption.",
                underlying: nil
            )
        }
        let mapping = InferredMapping(from: source.entities, to: try storedEntities(in: model))
        do {
            try mapping.requireInferable()
        } catch {
            throw missingMapping(from: source, reason: error.localizedDescription, underlying: error)
        }
        let mayDropValues = isPlanned || LossyMigration.isAllowed(options)
        if !mayDropValues {
            try LossyMigration.requireNew(model, configuration: configuration, forStoreAt: url, metadata: metadata)
        }
        try backUpBefore(metadata)
        let log = MigrationLog(url, from: source, to: model, by: "an inferred mapping", remarks: mapping.remarks)
        guard type == NSSQLiteStoreType || migratingClass != nil else {
            if !mayDropValues { try requireNoLoss(mapping, from: source) }
            try migrateObjects(by: mapping, from: source, metadata)
            return log.end()
        }
        let migration = SchemaMigration(
            mapping,
            from: source.model.frozen,
            sourceConfiguration: source.configuration,
            to: model.frozen,
            destinationConfiguration: configuration
        )
        let identifiers = model.versionIdentifiers.compactMap { $0 as? String }.sorted()
        let modelCache = model.frozen.copyForStores(of: model)
        if let migratingClass {
            var notes: [String] = []
            let inPlace = InPlaceMigration(
                migration: migration,
                versionIdentifiers: identifiers,
                modelCache: modelCache,
                mayDropValues: mayDropValues,
                advance: { try progress?.advance(to: $0) },
                note: {
                    notes.append($0)
                    note?($0)
                }
            )
            try migratingClass.migrateStore(at: url, options: options, inPlace)
            return log.end(notes.isEmpty ? nil : notes.joined(separator: "; "))
        }
        var request = SQLiteMigrationRequest(
            url: url,
            options: try SQLiteOptions(url: url, options),
            migration: migration,
            versionIdentifiers: identifiers,
            modelCache: modelCache,
            mayDropValues: mayDropValues
        )
        if let progress { request.advance = { try progress.advance(to: $0) } }
        log.end(try SQLiteEngine.migrate(request))
    }

    /// The model with which the store was written.
    func source(_ metadata: [String: Any], preferring preference: SourceModel.Preference = .bundles) throws
        -> SourceModel
    {
        try SourceModel.find(
            forStoreMetadata: metadata,
            at: url,
            known: knownModels + progressiveVersions,
            preferring: preference,
            cachedModel: cachedModel
        )
    }

    /// The copy of the model that the store keeps; `nil` if it has none.
    func cachedModel() throws -> Data? {
        if let migratingClass { return try migratingClass.cachedModel(at: url) }
        return try type == NSSQLiteStoreType ? SQLiteEngine.cachedModel(at: url) : nil
    }

    /// The class of a store whose engine migrates by itself.
    private var migratingClass: (any MigratingStore.Type)? {
        StoreTypes.storeClass(type) as? any MigratingStore.Type
    }

    /// Does one step of a migration that has several.
    ///
    /// - Parameters:
    ///   - source: The version of the store before the step.
    ///   - destination: The version of the store after the step.
    ///   - url: The store, or a copy of it.
    ///   - isPlanned: Whether stages define this step as one forward.
    /// - Throws: The errors of ``run(_:)``.
    func step(
        from source: NSManagedObjectModel,
        to destination: NSManagedObjectModel,
        at url: URL,
        isPlanned: Bool
    ) throws {
        try destination.tryFreeze()
        let isLossAllowed = LossyMigration.isAllowed(options)
        var options = MigrationOptions.withoutMigration(options)
        options[NSPersistentStoreAllowsLossyMigrationOption] = isLossAllowed
        options[NSMigratePersistentStoresAutomaticallyOption] = true
        options[NSInferMappingModelAutomaticallyOption] = true
        var step = AutomaticMigration(
            of: StoreToMigrate(model: destination, configuration: configuration, type: type, url: url, options: options)
        )
        step.knownModels = [source]
        step.progress = progress
        step.note = note
        step.mappingFolderOfWhole = mappingFolder
        step.isPlanned = isPlanned
        try step.goOneStep(try StoreTypes.required(type).metadata(at: url, options: options))
    }

    // MARK: - Before anything is changed

    /// Makes a backup of the store if the options ask for one.
    func backUpBefore(_ metadata: [String: Any]) throws {
        try progress?.throwIfCancelled()
        guard let folder = (options[NSPersistentStoreMigrationBackupFolderOption] as? URL) else { return }
        let stored = metadata[NSStoreModelVersionHashesKey] as? [String: Data] ?? [:]
        let backup = MigrationBackup.url(of: url, in: folder, hashes: stored)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if let storeClass = migratingClass as? any WholeStore.Type {
            return try storeClass.backUpStore(at: url, options, to: backup)
        }
        guard type == NSSQLiteStoreType else {
            if FileManager.default.fileExists(atPath: backup.path) { try FileManager.default.removeItem(at: backup) }
            return try FileManager.default.copyItem(at: url, to: backup)
        }
        let isMade = try SQLiteEngine.backUp(url, SQLiteOptions(url: url, options), to: backup, replaces: true) {
            $0[NSStoreModelVersionHashesKey] as? [String: Data] == stored
        }
        if isMade { MigrationLog.note(url, "\(backup.path) is a copy of the store as it was") }
    }

    /// The entities that the store has in a version of the model.
    ///
    /// - Throws: `migration` (134110) if the version lacks the configuration of the store. A migration to a version
    ///   without entities would remove all rows.
    func storedEntities(in version: NSManagedObjectModel) throws -> [NSEntityDescription] {
        if let entities = version.storedEntities(forConfigurationName: configuration) { return entities }
        throw MigrationFailure.error(
            .migration,
            "The store \(url.placeName) was not migrated: version \(version.versionChecksum) of the model lacks the configuration \"\(configuration ?? "")\", with which the store is opened. Add the configuration to that version; its checksum stays the same.",
            url: url
        )
    }

    // MARK: - Errors

    private func requireWritable(_ metadata: [String: Any]) throws {
        var reason: String?
        let files = FileManager.default
        if StoreOption.flag(options[NSReadOnlyPersistentStoreOption]) {
            reason = "it is opened with NSReadOnlyPersistentStoreOption, and a read-only store is not migrated"
        } else if migratingClass != nil {
            // There is no file.
        } else if !url.isFileURL || !files.fileExists(atPath: url.path) {
            reason = "it is no file, and its class does not migrate by itself"
        } else if !files.isWritableFile(atPath: url.path) {
            reason = "the file may not be written"
        } else if !files.isWritableFile(atPath: url.deletingLastPathComponent().path) {
            reason = "the folder of the file may not be written"
        }
        guard let reason else { return }
        let names = model.entitiesThatDiffer(fromStoreMetadata: metadata, configuration: configuration)
        throw CocoaError.described(
            .persistentStoreIncompatibleVersionHash,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(url.placeName) was made with another version of the model and cannot be migrated: \(reason). Entities that differ: \(names.joined(separator: ", ")).",
                NSFilePathErrorKey: url.placeName,
                "metadata": metadata,
                "reason": reason,
                incompatibleEntitiesErrorKey: names,
            ]
        )
    }

    private func missingMapping(from source: SourceModel, reason: String, underlying: (any Error)?) -> CocoaError {
        let misses = nearMisses(from: source)
        let reason = misses.isEmpty ? reason : "\(reason) \(misses)"
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey:
                "The store \(url.placeName) cannot be migrated from version \(source.model.versionChecksum) of the model (from \(source.origin.rawValue)) to \(model.versionChecksum). \(reason)",
            NSFilePathErrorKey: url.placeName,
            "sourceModel": source.model,
            "destinationModel": model,
            "reason": reason,
        ]
        userInfo[NSUnderlyingErrorKey] = underlying
        return CocoaError.described(.migrationMissingMappingModel, userInfo: userInfo)
    }
}
