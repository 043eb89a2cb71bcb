import CoreDataEssentials
import Foundation
import StrataLocks
import StrataRows
import StrataSQLiteStore

/// One side of a migration: a coordinator with one store, and a context on it.
struct MigrationStack {
    let model: NSManagedObjectModel
    let coordinator: NSPersistentStoreCoordinator
    let context: NSManagedObjectContext
    let store: OpenStore

    init(
        model: NSManagedObjectModel,
        configuration: String?,
        type: String,
        at url: URL,
        options: [AnyHashable: Any],
        context: NSManagedObjectContext,
        name: String
    ) throws {
        let model = try Self.plain(model)
        self.model = model
        try model.tryFreeze()
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        // Each object is read once or twice within a short time.
        coordinator.setRowCacheLimit(Self.rowCacheLimit)
        let added = try coordinator.addPersistentStore(
            ofType: type,
            configurationName: configuration,
            at: url,
            options: options
        )
        guard let entry = coordinator.openStore(of: added) else {
            throw MigrationFailure.error(
                .migration,
                "The store \(url.placeName) was removed while it was opened.",
                url: url
            )
        }
        store = entry
        self.context = context
        context.persistentStoreCoordinator = coordinator
        context.name = name
    }

    /// The limit in bytes; the other memory of a migration grows only with the keys.
    private static let rowCacheLimit = 4 << 20

    func close() {
        for store in coordinator.persistentStores { try? coordinator.remove(store) }
    }

    /// The object of a reference, in the context.
    func object(_ reference: ObjectReference) -> NSManagedObject {
        let layout = model.frozen.layouts[reference.entity - 1]
        let index = Int32(store.index)
        return context.registered(key: reference.key, layout: layout, storeIndex: index)
            ?? context.makeFault(key: reference.key, layout: layout, storeIndex: index)
    }

    /// Releases all objects that no other code holds, and the values of the others.
    func letGo() {
        context.refreshAllObjects()
        context.processPendingChanges()
        context.sweep()
    }

    /// A request for the objects of an entity, without its sub-entities.
    ///
    /// A store with a part of the model has no objects of the other entities.
    func request(_ entity: String) -> NSFetchRequest<NSManagedObject> {
        let request = NSFetchRequest<NSManagedObject>(entityName: entity)
        request.includesSubentities = false
        request.affectedStores = [store.store]
        return request
    }

    /// Calls `body` with the results of a request without order and limits, in the order of keys.
    ///
    /// Results hold the key of each object, so they are read one window at a time: memory does not grow with the store.
    func forEachWindow(
        of request: NSFetchRequest<NSManagedObject>,
        _ body: (BatchedResults<NSManagedObject>) throws -> Void
    ) throws {
        request.fetchLimit = WorkSize.migratedKeys
        while true {
            let results: BatchedResults<NSManagedObject> = try context.batchedResults(for: request)
            try body(results)
            guard results.count == WorkSize.migratedKeys else { return }
            request.fetchOffset += WorkSize.migratedKeys
        }
    }

    // MARK: - The source

    /// Opens the store to migrate from, for reading, with its contents at this moment.
    ///
    /// - Throws: `migrationManagerSourceStore` (134150) with the reason as the underlying error.
    static func source(
        model: NSManagedObjectModel,
        configuration: String?,
        type: String,
        at url: URL,
        options: [AnyHashable: Any]?
    ) throws -> MigrationStack {
        var options = MigrationOptions.withoutMigration(options)
        options[NSReadOnlyPersistentStoreOption] = true
        if StoreTypes.storeClass(type) is any MigratingStore.Type { options[migrationSourceOption] = true }
        do {
            if type == NSSQLiteStoreType, !FileManager.default.fileExists(atPath: url.path) {
                throw MigrationFailure.error(.fileNoSuchFile, "There is no file \(url.placeName).", url: url)
            }
            // A store may hold only a part of the model.
            let metadata = try? StoreTypes.required(type).metadataForPersistentStore(with: url)
            let part = configuration ?? metadata.flatMap { model.configuration(ofStoreMetadata: $0) }
            let context = NSManagedObjectContext(.privateQueue)
            return try MigrationStack(
                model: model,
                configuration: part,
                type: type,
                at: url,
                options: options,
                context: context,
                name: "migration source"
            )
        } catch {
            throw MigrationFailure.error(
                .migrationManagerSourceStore,
                "The store \(url.placeName) cannot be migrated from: \(error.localizedDescription)",
                url: url,
                underlying: error
            )
        }
    }

    /// The model with `NSManagedObject` as the class of every entity; it is a copy if the model has other classes.
    ///
    /// This is as in Apple's framework. The program's classes belong to its present model: they do not fit an older
    /// one, and do not expect `awakeFromInsert()` for objects that are only copied.
    private static func plain(_ model: NSManagedObjectModel) throws -> NSManagedObjectModel {
        let base = "NSManagedObject"
        guard model.entities.contains(where: { $0.managedObjectClassName ?? base != base }),
            let copy = model.copy() as? NSManagedObjectModel
        else { return model }
        for entity in copy.entities { entity.managedObjectClassName = base }
        return copy
    }
}

/// Changes the options of stores for a migration.
enum MigrationOptions {
    /// The options of a store that is opened for a migration, and must not begin another migration.
    static func withoutMigration(_ options: [AnyHashable: Any]?) -> [AnyHashable: Any] {
        var options = options ?? [:]
        for key in [
            "NSMigratePersistentStoresAutomaticallyOption", "NSInferMappingModelAutomaticallyOption",
            NSPersistentStoreStagedMigrationManagerOptionKey, "NSPersistentStoreDeferredLightweightMigrationOptionKey",
            NSPersistentStoreRemoteChangeNotificationPostOptionKey, NSPersistentStoreMigrationBackupFolderOption,
            NSPersistentStoreMigrationProgressOption, NSPersistentStoreAllowsProgressiveMigrationOption,
            NSPersistentStoreAllowsLossyMigrationOption,
        ] {
            options[key] = nil
        }
        return options
    }
}
