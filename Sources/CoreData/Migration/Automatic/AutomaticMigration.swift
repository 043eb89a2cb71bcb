import StrataPredicates
import StrataRows
import StrataSQLiteStore

/// The migration of a store that is being added, and was written with another version of the model.
///
/// By a mapping model where one fits, else by an inferred mapping if that is allowed: in place where the store can do that.
struct AutomaticMigration {
    /// The model that the store shall fit, which is in use.
    let model: NSManagedObjectModel
    /// The configuration whose entities the store shall hold, or `nil` for all.
    let configuration: String?
    let type: String
    let url: URL
    let options: [AnyHashable: Any]
    /// Versions of the model that are known beside those in the program's bundles.
    var knownModels: [NSManagedObjectModel] = []

    private var infers: Bool { StoreOption.flag(options[NSInferMappingModelAutomaticallyOption]) }

    /// Whether stores are migrated on adding.
    static func isWanted(_ options: [AnyHashable: Any]?) -> Bool {
        StoreOption.flag(options?[NSMigratePersistentStoresAutomaticallyOption])
            && !StoreOption.flag(options?[NSIgnorePersistentStoreVersioningOption])
    }

    /// How often the store is tried again when others migrate it too.
    static let mostAttempts = 3

    /// Migrates the store.
    ///
    /// Returns too if somebody else was first.
    ///
    /// - Parameter metadata: What the store was found with.
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) for a store that may not be written, and the errors that
    ///   ``NSPersistentStoreCoordinator/addPersistentStore(type:configuration:at:options:)`` says.
    func run(_ metadata: [String: Any]) throws {
        try requireWritable(metadata)
        if let stages = options[NSPersistentStoreStagedMigrationManagerOptionKey] as? NSStagedMigrationManager {
            return try StagedMigration(stages, of: self).run()
        }
        let source = try SourceModel.find(forStoreMetadata: metadata, at: url, known: knownModels) {
            type == NSSQLiteStoreType ? (try? SQLiteEngine.cachedModel(at: url)) ?? nil : nil
        }
        if try migrateByMappingModel(from: source, metadata) { return }
        guard infers else {
            throw missingMapping(
                source,
                "No mapping model in the program's bundles fits, and the mapping may not be inferred without NSInferMappingModelAutomaticallyOption.",
                nil
            )
        }
        let mapping = InferredMapping(from: source.entities, to: destinationEntities)
        do {
            try mapping.requireInferable()
        } catch {
            throw missingMapping(source, error.localizedDescription, error)
        }
        let log = MigrationLog.begin(url, source, model, mapping)
        guard type == NSSQLiteStoreType else { return try migrateObjects(by: mapping, from: source, metadata) }
        let request = SQLiteMigrationRequest(
            url: url,
            options: try SQLiteOptions(url: url, options),
            migration: SchemaMigration(
                mapping,
                from: source.model.frozen,
                source.configuration,
                to: model.frozen,
                configuration
            ),
            versionIdentifiers: model.versionIdentifiers.compactMap { $0 as? String }.sorted(),
            modelCache: model.frozen.copyForStores(of: model)
        )
        log.end(try SQLiteEngine.migrate(request))
    }

    /// Takes one step of a staged migration.
    ///
    /// - Parameters:
    ///   - source: The version that the store has.
    ///   - destination: The version that it shall have.
    ///   - url: The store, or a copy of it.
    /// - Throws: As ``run(_:)``.
    func step(from source: NSManagedObjectModel, to destination: NSManagedObjectModel, at url: URL) throws {
        try destination.tryFreeze()
        var options = MigrationOptions.withoutMigration(options)
        options[NSMigratePersistentStoresAutomaticallyOption] = true
        options[NSInferMappingModelAutomaticallyOption] = true
        let step = AutomaticMigration(
            model: destination,
            configuration: configuration,
            type: type,
            url: url,
            options: options,
            knownModels: [source]
        )
        try step.run(try StoreTypes.required(type).metadataForPersistentStore(with: url))
    }

    private var destinationEntities: [NSEntityDescription] { model.entities(forConfigurationName: configuration) ?? [] }

    // MARK: - Errors

    private func requireWritable(_ metadata: [String: Any]) throws {
        var reason: String?
        let files = FileManager.default
        if StoreOption.flag(options[NSReadOnlyPersistentStoreOption]) {
            reason = "it is opened with NSReadOnlyPersistentStoreOption, and a read-only store is not migrated"
        } else if !files.isWritableFile(atPath: url.path) {
            reason = "the file may not be written"
        } else if !files.isWritableFile(atPath: url.deletingLastPathComponent().path) {
            reason = "the folder of the file may not be written"
        }
        guard let reason else { return }
        let names = model.entitiesThatDiffer(fromStoreMetadata: metadata, configuration: configuration)
        throw CocoaError(
            .persistentStoreIncompatibleVersionHash,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(url.path) was made with another version of the model and cannot be migrated: \(reason). Entities that differ: \(names.joined(separator: ", ")).",
                NSFilePathErrorKey: url.path,
                "metadata": metadata,
                "reason": reason,
                incompatibleEntitiesErrorKey: names,
            ]
        )
    }

    private func missingMapping(_ source: SourceModel, _ reason: String, _ underlying: (any Error)?) -> CocoaError {
        let misses = nearMisses(from: source)
        let reason = misses.isEmpty ? reason : "\(reason) \(misses)"
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey:
                "The store \(url.path) cannot be migrated from version \(source.model.versionChecksum) of the model (from \(source.origin.rawValue)) to \(model.versionChecksum). \(reason)",
            NSFilePathErrorKey: url.path,
            "sourceModel": source.model,
            "destinationModel": model,
            "reason": reason,
        ]
        userInfo[NSUnderlyingErrorKey] = underlying
        return CocoaError(.migrationMissingMappingModel, userInfo: userInfo)
    }
}
