import CoreDataBinaryStore
import CoreDataEngineStores
import CoreDataEssentials
import CoreDataMigration
import CoreDataModelFiles
import CoreDataReads

/// Puts together the parts of the framework that ``HigherTargets`` describes.
@_silgen_name("strata_higher_targets")
package func makeHigherTargets() -> HigherTargets {
    HigherTargets(
        migrate: { store, metadata in try AutomaticMigration(of: store).run(metadata) },
        migrationManagerClass: NSMigrationManager.self,
        storeClasses: [
            NSSQLiteStoreType: SQLiteStore.self, NSInMemoryStoreType: InMemoryStore.self,
            NSBinaryStoreType: BinaryStore.self,
        ],
        modelData: { $0.cachedModelData() },
        watch: { BlockReads($0) }
    )
}
