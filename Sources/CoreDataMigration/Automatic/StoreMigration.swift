import CoreDataEssentials
import StrataPredicates

/// The migration of a store without adding it, for tools.
package enum StoreMigration {
    /// Migrates a SQLite store in place to another version of its model.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - source: The version of the store; `nil` to search it in the program's bundles and in the store itself.
    ///   - destination: The version to which it is migrated.
    ///   - mapping: The mapping; `nil` to infer it.
    ///   - mayDropValues: Whether an inferred mapping may drop values, or lead back to an earlier version.
    /// - Throws: The errors of adding the store to a coordinator with the options that migrate and infer.
    package static func run(
        at url: URL,
        from source: NSManagedObjectModel?,
        to destination: NSManagedObjectModel,
        by mapping: NSMappingModel?,
        mayDropValues: Bool
    ) throws {
        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: url)
        guard !destination.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata) else { return }
        try destination.tryFreeze()
        let store = StoreToMigrate(
            model: destination,
            configuration: nil,
            type: NSSQLiteStoreType,
            url: url,
            options: [
                NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
                NSPersistentStoreAllowsLossyMigrationOption: mayDropValues,
            ]
        )
        var migration = AutomaticMigration(of: store)
        if let source { migration.knownModels = [source] }
        guard let mapping else { return try migration.run(metadata) }
        try migration.run(metadata, by: mapping)
    }
}
