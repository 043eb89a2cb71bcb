import Foundation
import StrataRows
import StrataSQLiteStore

/// One side of a migration: a coordinator with one store, and a context on it.
struct MigrationStack {
    let model: NSManagedObjectModel
    let coordinator: NSPersistentStoreCoordinator
    let context: NSManagedObjectContext
    let store: OpenStore

    init(
        _ model: NSManagedObjectModel,
        _ configuration: String?,
        _ type: String,
        at url: URL,
        _ options: [AnyHashable: Any],
        _ context: NSManagedObjectContext,
        name: String
    ) throws {
        let model = try Self.plain(model)
        self.model = model
        try model.tryFreeze()
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        // Each object is read once or twice, soon after one another.
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

    /// In bytes; what a migration holds beside it grows by the keys alone.
    private static let rowCacheLimit = 4 << 20

    func close() {
        for store in coordinator.persistentStores { try? coordinator.remove(store) }
    }

    /// The object of a reference, as the context knows it.
    func object(_ reference: ObjectReference) -> NSManagedObject {
        let layout = model.frozen.layouts[reference.entity - 1]
        let index = Int32(store.index)
        return context.registered(key: reference.key, layout: layout, storeIndex: index)
            ?? context.makeFault(key: reference.key, layout: layout, storeIndex: index)
    }

    /// Gives up all objects that nobody holds, and the values of the others.
    func letGo() {
        context.refreshAllObjects()
        context.processPendingChanges()
        context.sweep()
    }

    /// Goes through what a request without order and limits finds, in the order of keys.
    ///
    /// Results hold the key of each object, so they are taken a window at a time: memory does not grow with the store.
    func forEachWindow(
        of request: NSFetchRequest<NSManagedObject>,
        _ body: (BatchedResults<NSManagedObject>) throws -> Void
    ) throws {
        request.fetchLimit = Self.mostKeys
        while true {
            let results: BatchedResults<NSManagedObject> = try context.batchedResults(for: request)
            try body(results)
            guard results.count == Self.mostKeys else { return }
            request.fetchOffset += Self.mostKeys
        }
    }

    /// How many keys of objects a walk has in memory at a time.
    private static let mostKeys = 64 * 1024

    // MARK: - The source

    /// Opens the store to migrate from, for reading, as it is at this moment.
    ///
    /// - Throws: `migrationManagerSourceStore` (134150) with the reason under it.
    static func source(
        _ model: NSManagedObjectModel,
        _ configuration: String?,
        _ type: String,
        at url: URL,
        _ options: [AnyHashable: Any]?
    ) throws -> MigrationStack {
        var options = MigrationOptions.withoutMigration(options)
        options[NSReadOnlyPersistentStoreOption] = true
        if StoreTypes.storeClass(type) is any MigratingStore.Type { options[migrationSourceOption] = true }
        do {
            if type == NSSQLiteStoreType, !FileManager.default.fileExists(atPath: url.path) {
                throw MigrationFailure.error(.fileNoSuchFile, "There is no file \(url.placeName).", url: url)
            }
            // A store may hold a part of the model only.
            let metadata = try? StoreTypes.required(type).metadataForPersistentStore(with: url)
            let part = configuration ?? metadata.flatMap { model.configuration(ofStoreMetadata: $0) }
            let context = NSManagedObjectContext(.privateQueue)
            return try MigrationStack(model, part, type, at: url, options, context, name: "migration source")
        } catch {
            throw MigrationFailure.error(
                .migrationManagerSourceStore,
                "The store \(url.placeName) cannot be migrated from: \(error.localizedDescription)",
                url: url,
                underlying: error
            )
        }
    }

    /// The model with `NSManagedObject` as the class of every entity; a copy, if it has others.
    ///
    /// As in Apple's framework: the program's classes are for its present model, and neither fit an older one nor expect to be
    /// sent `awakeFromInsert()` for objects that are only copied.
    private static func plain(_ model: NSManagedObjectModel) throws -> NSManagedObjectModel {
        let base = "NSManagedObject"
        guard model.entities.contains(where: { $0.managedObjectClassName ?? base != base }),
            let copy = model.copy() as? NSManagedObjectModel
        else { return model }
        for entity in copy.entities { entity.managedObjectClassName = base }
        return copy
    }
}

extension NSManagedObjectContext {
    /// How many objects the context knows.
    final var registeredCount: Int {
        identityMap.tables.reduce(identityMap.temporaryObjects.count) { $0 + ($1?.count ?? 0) }
    }
}

/// The options of stores, as far as a migration changes them.
enum MigrationOptions {
    /// Options of a store that is opened for a migration, and must not begin another.
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
