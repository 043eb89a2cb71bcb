import CoreDataEssentials
import StrataPredicates

/// The migration of a store without adding it, for tools.
package enum StoreMigration {
    /// Migrates a store to another version of its model, where it is.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - type: Its type.
    ///   - source: The version of the store; `nil` to search it in the program's bundles and in the store itself.
    ///   - destination: The version to which it is migrated.
    ///   - mapping: The mapping; `nil` to infer it.
    ///   - mayDropValues: Whether an inferred mapping may drop values, or lead back to an earlier version.
    ///   - report: Receives the finished part of the work, from 0 to 1.
    ///   - note: Receives what the line of the log says about the work of the store.
    /// - Throws: The errors of adding the store to a coordinator with the options that migrate and infer.
    package static func run(
        at url: URL,
        type: NSPersistentStore.StoreType = .sqlite,
        from source: NSManagedObjectModel?,
        to destination: NSManagedObjectModel,
        by mapping: NSMappingModel?,
        mayDropValues: Bool,
        report: ((Double) -> Void)? = nil,
        note: ((String) -> Void)? = nil
    ) throws {
        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: type, at: url)
        guard !destination.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata) else { return }
        try destination.tryFreeze()
        let store = StoreToMigrate(
            model: destination,
            configuration: nil,
            type: type.rawValue,
            url: url,
            options: [
                NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
                NSPersistentStoreAllowsLossyMigrationOption: mayDropValues,
            ]
        )
        var migration = AutomaticMigration(of: store)
        migration.report = report
        migration.note = note
        if let source { migration.knownModels = [source] }
        guard let mapping else { return try migration.run(metadata) }
        migration.progress = MigrationProgress(store.options, report: report)
        try migration.run(metadata, by: mapping)
    }
}
