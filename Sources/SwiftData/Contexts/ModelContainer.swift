import CoreData
import Foundation

/// The stores of a schema, with which contexts are made.
///
/// Any thread may use it.
public final class ModelContainer: Sendable {
    /// The classes.
    public let schema: Schema
    /// The descriptions of the stores.
    public let configurations: Set<ModelConfiguration>
    /// The plan by which stores of earlier versions are migrated.
    public let migrationPlan: (any SchemaMigrationPlan.Type)?
    let coordinator: NSPersistentStoreCoordinator

    /// Opens the stores of some classes, and of all that their relationships reach.
    ///
    /// - Parameters:
    ///   - types: The classes.
    ///   - migrationPlan: The plan by which stores of earlier versions are migrated. Without one, changes are inferred.
    ///   - configurations: The stores; one in the default file if there is none.
    /// - Throws: `SwiftDataError.loadIssueModelContainer` if a store cannot be opened or migrated, with the reason in
    ///   its description; `SwiftDataError.duplicateConfiguration` if two configurations have the same file.
    public convenience init(
        for types: any PersistentModel.Type...,
        migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: ModelConfiguration...
    ) throws {
        // The last version of a plan has the same classes, and the number by which the store names it.
        let version = migrationPlan?.schemas.last?.versionIdentifier ?? Schema.Version(1, 0, 0)
        try self.init(
            for: Schema(types, version: version),
            migrationPlan: migrationPlan,
            configurations: configurations
        )
    }

    /// Opens the stores of a schema.
    public convenience init(
        for schema: Schema,
        migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: ModelConfiguration...
    ) throws {
        try self.init(for: schema, migrationPlan: migrationPlan, configurations: configurations)
    }

    /// Opens the stores of a schema.
    ///
    /// - Parameters:
    ///   - schema: The schema.
    ///   - migrationPlan: The plan by which stores of earlier versions are migrated. Without one, changes are inferred.
    ///   - configurations: The stores; one in the default file if there is none.
    /// - Throws: `SwiftDataError.loadIssueModelContainer` if a store cannot be opened or migrated, with the reason in
    ///   its description; `SwiftDataError.duplicateConfiguration` if two configurations have the same file.
    public init(
        for schema: Schema,
        migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: [ModelConfiguration]
    ) throws {
        _ = ModelKeyPaths.registered
        let stores = configurations.isEmpty ? [ModelConfiguration()] : configurations
        let files = stores.filter { !$0.isStoredInMemoryOnly }.map(\.url)
        guard Set(files).count == files.count else { throw SwiftDataError.duplicateConfiguration }
        self.schema = schema
        self.configurations = Set(stores)
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: schema.model)
        self.migrationPlan = migrationPlan
        for store in stores { try open(store) }
    }

    /// The container of a store that is being migrated.
    init(schema: Schema, coordinator: NSPersistentStoreCoordinator) {
        _ = ModelKeyPaths.registered
        self.schema = schema
        self.coordinator = coordinator
        configurations = []
        migrationPlan = nil
    }

    private func open(_ configuration: ModelConfiguration) throws {
        do {
            if !configuration.isStoredInMemoryOnly, configuration.allowsSave {
                let folder = configuration.url.deletingLastPathComponent()
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            }
            var options: [AnyHashable: Any] = [
                NSPersistentHistoryTrackingKey: true,
                NSMigratePersistentStoresAutomaticallyOption: true,
                NSInferMappingModelAutomaticallyOption: true,
                NSReadOnlyPersistentStoreOption: !configuration.allowsSave,
            ]
            if let migrationPlan, !configuration.isStoredInMemoryOnly {
                options[NSPersistentStoreStagedMigrationManagerOptionKey] = try PlannedMigration.manager(migrationPlan)
            }
            _ = try coordinator.addPersistentStore(
                ofType: NSSQLiteStoreType,
                configurationName: nil,
                // SQLite keeps a database in memory for /dev/null.
                at: configuration.url,
                options: options
            )
        } catch let error as SwiftDataError {
            throw error
        } catch {
            throw SwiftDataError(.loadIssueModelContainer, "\(configuration.url.path): \(error)")
        }
    }

    /// The context of the main actor.
    ///
    /// It follows the saves of the other contexts.
    @MainActor public var mainContext: ModelContext {
        if let context = MainContexts.shared.context(of: self) { return context }
        let context = ModelContext(self)
        context.autosaveEnabled = true
        MainContexts.shared.keep(context, for: self)
        return context
    }

    /// Removes the data of all stores.
    ///
    /// Objects of before must not be used afterwards.
    ///
    /// - Throws: The errors of the stores.
    public func erase() throws {
        for store in coordinator.persistentStores {
            guard let url = store.url else { continue }
            let (type, options) = (store.type, store.options)
            try coordinator.remove(store)
            try coordinator.destroyPersistentStore(at: url, ofType: type, options: options)
            _ = try coordinator.addPersistentStore(ofType: type, configurationName: nil, at: url, options: options)
        }
    }
}

/// The main contexts, which do not keep their containers alive.
@MainActor private final class MainContexts {
    static let shared = MainContexts()

    private struct Entry {
        weak var container: ModelContainer?
        weak var context: ManagedContext?
    }

    private var entries: [ObjectIdentifier: Entry] = [:]

    func context(of container: ModelContainer) -> ModelContext? {
        guard let entry = entries[ObjectIdentifier(container)], entry.container === container else { return nil }
        return entry.context?.modelContext
    }

    func keep(_ context: ModelContext, for container: ModelContainer) {
        entries = entries.filter { $0.value.container != nil }
        entries[ObjectIdentifier(container)] = Entry(container: container, context: context.managed)
    }
}
