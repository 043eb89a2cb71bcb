import CoreDataContainer
import CoreDataEngineStores
import CoreDataEssentials
import Foundation
import StrataSQLiteStore

/// A custom stage with handlers, which works on a copy of the store, and replaces the store's contents at the end.
///
/// So after a kill, or an error of a handler, the store is as it was before the stage.
struct StageWithHandlers {
    private let stage: NSCustomMigrationStage
    private let manager: NSStagedMigrationManager
    private let whole: AutomaticMigration
    private let from: NSManagedObjectModel
    private let to: NSManagedObjectModel

    init(
        stage: NSCustomMigrationStage,
        manager: NSStagedMigrationManager,
        whole: AutomaticMigration,
        from: NSManagedObjectModel,
        to: NSManagedObjectModel
    ) {
        self.stage = stage
        self.manager = manager
        self.whole = whole
        self.from = from
        self.to = to
    }

    /// Runs the stage; if others have written to the store meanwhile, then it does not change the store.
    func run() throws {
        if let storeClass = StoreTypes.storeClass(whole.type) as? any MigratingStore.Type {
            return try runBeside(storeClass)
        }
        guard whole.type == NSSQLiteStoreType else { return try runOnFile() }
        WorkingFile.removeLeftovers(beside: whole.url)
        let watch = try FileWatch(whole.url)
        let working = WorkingFile.url(beside: whole.url)
        defer { SQLiteEngine.removeAll(of: working) }
        let options = try SQLiteOptions(url: whole.url, MigrationOptions.withoutMigration(whole.options))
        try SQLiteEngine.copy(whole.url, options, to: working)
        try work(at: working)
        _ = try SQLiteEngine.replaceContents(of: whole.url, options, by: working, ifUnchanged: watch)
    }

    /// Runs the stage for a store whose engine makes another one beside it.
    private func runBeside(_ storeClass: any MigratingStore.Type) throws {
        let replacement = try storeClass.replacement(
            of: whole.url,
            options: whole.options,
            model: from,
            configuration: whole.configuration
        )
        // Another process may have run the stage.
        guard let replacement else { return }
        do {
            try replacement.copyRows()
            try work(at: replacement.url)
        } catch {
            replacement.abandon()
            throw error
        }
        try replacement.finish(to, configuration: whole.configuration)
    }

    /// Runs the stage for a custom store, whose file can be copied.
    private func runOnFile() throws {
        let working = WorkingFile.url(beside: whole.url)
        defer { try? FileManager.default.removeItem(at: working) }
        try FileManager.default.copyItem(at: whole.url, to: working)
        try work(at: working)
        guard rename(working.path, whole.url.path) == 0 else {
            _ = try FileManager.default.replaceItemAt(whole.url, withItemAt: working)
            return
        }
    }

    private func work(at url: URL) throws {
        if let handler = stage.willMigrateHandler { try call(handler, under: from, at: url) }
        try whole.step(from: from, to: to, at: url, isPlanned: true)
        if let handler = stage.didMigrateHandler { try call(handler, under: to, at: url) }
    }

    /// Calls a handler with the store under a model.
    private func call(
        _ handler: (NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void,
        under model: NSManagedObjectModel,
        at url: URL
    ) throws {
        try model.tryFreeze()
        let container = NSPersistentContainer(name: stage.label ?? "Migration stage", managedObjectModel: model)
        let description = NSPersistentStoreDescription(url: url)
        description.type = whole.type
        description.configuration = whole.configuration
        description.shouldMigrateStoreAutomatically = false
        description.shouldInferMappingModelAutomatically = false
        for (key, value) in MigrationOptions.withoutMigration(whole.options) {
            if let key = key as? String, let value = value as? NSObject ?? (value as? Bool).map({ NSNumber(value: $0) })
            {
                description.setOption(value, forKey: key)
            }
        }
        container.persistentStoreDescriptions = [description]
        var failure: (any Error)?
        container.loadPersistentStores { failure = $1 }
        if let failure { throw failure }
        manager.container = container
        defer {
            manager.container = nil
            let coordinator = container.persistentStoreCoordinator
            for store in coordinator.persistentStores { try? coordinator.remove(store) }
        }
        try handler(manager, stage)
    }
}
