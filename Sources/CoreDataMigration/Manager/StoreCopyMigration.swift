import CoreDataEngineStores
import CoreDataEssentials
import Foundation
import StrataRows
import StrataSQLiteStore

/// A migration to another place that copies the file and migrates the copy in place by SQL, without making objects.
///
/// It works only for an unchanged inferred mapping, and from one SQLite file to another that does not exist yet.
struct StoreCopyMigration {
    private let manager: NSMigrationManager
    private let mapping: InferredMapping
    private let source: StorePlace
    private let destination: StorePlace

    /// Returns `nil` if the migration has to be done by objects.
    init?(_ manager: NSMigrationManager, _ model: NSMappingModel, from source: StorePlace, to destination: StorePlace) {
        // A subclass of the manager may do other work, and relies on being called.
        guard manager.usesStoreSpecificMigrationManager, type(of: manager) == NSMigrationManager.self,
            let mapping = model.uneditedInference(from: manager.sourceModel, to: manager.destinationModel),
            [source, destination].allSatisfy({ place in
                place.type == NSSQLiteStoreType && StoreTypes.storeClass(place.type) == SQLiteStore.self
                    && !place.url.path.hasPrefix("/dev/null")
            }), !FileManager.default.fileExists(atPath: destination.url.path)
        else { return nil }
        // The copy of a store with a part of the model would lack the tables of the other entities.
        let metadata = try? StoreTypes.required(source.type).metadata(at: source.url, options: source.options)
        guard metadata.flatMap(manager.sourceModel.configuration(ofStoreMetadata:)) == nil else { return nil }
        self.manager = manager
        self.mapping = mapping
        self.source = source
        self.destination = destination
    }

    func run() throws {
        let working = WorkingFile.url(beside: destination.url)
        defer { SQLiteEngine.removeAll(of: working) }
        do {
            try SQLiteEngine.copy(source.url, SQLiteOptions(url: source.url, source.options), to: working)
        } catch {
            throw MigrationFailure.error(
                .migrationManagerSourceStore,
                "The store \(source.url.placeName) cannot be migrated from: \(error.localizedDescription)",
                url: source.url,
                underlying: error
            )
        }
        let (old, new) = (manager.sourceModel, manager.destinationModel)
        try old.tryFreeze()
        try new.tryFreeze()
        let request = SQLiteMigrationRequest(
            url: working,
            options: try SQLiteOptions(url: working, MigrationOptions.withoutMigration(destination.options)),
            migration: SchemaMigration(
                mapping,
                from: old.frozen,
                sourceConfiguration: nil,
                to: new.frozen,
                destinationConfiguration: nil
            ),
            versionIdentifiers: new.versionIdentifiers.compactMap { $0 as? String }.sorted(),
            modelCache: new.frozen.copyForStores(of: new),
            // The source stays as it is.
            mayDropValues: true
        )
        guard try SQLiteEngine.migrate(request) != nil else {
            throw MigrationFailure.error(
                .migrationManagerSourceStore,
                "The store \(source.url.placeName) cannot be migrated from: it was not made with the source model.",
                url: source.url,
                underlying: CocoaError(.persistentStoreIncompatibleVersionHash)
            )
        }
        do {
            try SQLiteEngine.moveClosed(from: working, to: destination.url)
        } catch {
            throw MigrationFailure.error(
                .migrationManagerDestinationStore,
                "The store \(destination.url.placeName) cannot be migrated to: \(error.localizedDescription)",
                url: destination.url,
                underlying: error
            )
        }
    }
}
