import CoreData
import Foundation
import StrataLocks

/// The stores of a schema, with which contexts are made.
///
/// Any thread may use it.
public final class ModelContainer: Sendable, Equatable {
    /// The classes.
    public let schema: Schema
    /// The descriptions of the stores.
    ///
    /// A change has no effect on the stores, which are open.
    public var configurations: Set<ModelConfiguration> {
        get { described.withLock { $0 } }
        set { described.withLock { $0 = newValue } }
    }
    /// The plan by which stores of earlier versions are migrated.
    public let migrationPlan: (any SchemaMigrationPlan.Type)?
    let coordinator: NSPersistentStoreCoordinator
    /// The model, with a configuration for each store of some classes.
    let model: NSManagedObjectModel
    /// The identifiers of the stores, with the names of their configurations.
    private let identifiers: [(name: String, identifier: String)]
    private let described: Locked<Set<ModelConfiguration>>
    /// Lets the contexts merge what other processes write, once that is wanted.
    private let follower = Locked<RemoteChangeFollower?>(nil)

    /// Opens the stores of some classes, and of all that their relationships reach.
    ///
    /// - Parameters:
    ///   - types: The classes.
    ///   - migrationPlan: The plan by which stores of earlier versions are migrated. Without one, changes are inferred.
    ///   - configurations: The stores; one in the default file if there is none. A configuration with a schema has the
    ///     classes of that schema, and one without has all. A new object goes to the first store that may be written to
    ///     and has its class; stores with a schema come first.
    /// - Throws: `SwiftDataError.loadIssueModelContainer` if a store cannot be opened or migrated, with the reason in
    ///   its description; `SwiftDataError.duplicateConfiguration` if two configurations have the same name or file;
    ///   `SwiftDataError.configurationSchemaNotFoundInContainerSchema` if a configuration has a class that the schema
    ///   lacks; the errors of `ModelConfiguration.validate()`.
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
    ///   - configurations: The stores; one in the default file if there is none. A configuration with a schema has the
    ///     classes of that schema, and one without has all. A new object goes to the first store that may be written to
    ///     and has its class; stores with a schema come first.
    /// - Throws: `SwiftDataError.loadIssueModelContainer` if a store cannot be opened or migrated, with the reason in
    ///   its description; `SwiftDataError.duplicateConfiguration` if two configurations have the same name or file;
    ///   `SwiftDataError.configurationSchemaNotFoundInContainerSchema` if a configuration has a class that the schema
    ///   lacks; `unknownSchema` if the schema was made of entities, and not of classes; the errors of
    ///   `ModelConfiguration.validate()`.
    public init(
        for schema: Schema,
        migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: [ModelConfiguration]
    ) throws {
        _ = ModelKeyPaths.registered
        let stores = configurations.isEmpty ? [ModelConfiguration()] : configurations
        guard schema.records.count == schema.entities.count else {
            throw SwiftDataError(.unknownSchema, "the schema was made without classes, so no object could be made")
        }
        try Self.check(stores, schema)
        self.schema = schema
        described = Locked(Set(stores))
        self.migrationPlan = migrationPlan
        // A new object goes to the first store that has its class, so the stores of some classes come first.
        let ordered = stores.filter { $0.schema != nil } + stores.filter { $0.schema == nil }
        model = try Self.model(of: ordered, schema)
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        var identifiers: [(name: String, identifier: String)] = []
        for (index, configuration) in ordered.enumerated() {
            let part = configuration.schema == nil ? nil : Self.part(index)
            let store = try Self.open(configuration, part, coordinator, migrationPlan)
            identifiers.append((configuration.name, store.identifier ?? ""))
        }
        self.identifiers = identifiers
    }

    /// The container of a store that is being migrated.
    init(schema: Schema, coordinator: NSPersistentStoreCoordinator) {
        _ = ModelKeyPaths.registered
        self.schema = schema
        self.coordinator = coordinator
        model = schema.model
        described = Locked([])
        migrationPlan = nil
        identifiers = []
    }

    private static func check(_ stores: [ModelConfiguration], _ schema: Schema) throws {
        let files = stores.filter { !$0.isStoredInMemoryOnly }.map(\.url)
        let named = stores.filter { $0.hasGivenName }.map(\.name)
        guard Set(files).count == files.count, Set(named).count == named.count else {
            throw SwiftDataError.duplicateConfiguration
        }
        for store in stores {
            try store.validate()
            for record in store.schema?.records.values.sorted(by: { $0.entityName < $1.entityName }) ?? []
            where schema.records[record.entityName] !== record {
                throw SwiftDataError(
                    .configurationSchemaNotFoundInContainerSchema,
                    "\(record.type) of the configuration \(store.name) is not in the container's schema"
                )
            }
        }
    }

    /// The schema's model; with stores of some classes, another one that has their configurations.
    private static func model(of stores: [ModelConfiguration], _ schema: Schema) throws -> NSManagedObjectModel {
        guard stores.contains(where: { $0.schema != nil }) else { return schema.model }
        let model = try SchemaModel(entities: schema.entities, version: schema.version).model()
        for (index, store) in stores.enumerated() {
            guard let schema = store.schema else { continue }
            model.setEntities(
                model.entities.filter { schema.records[$0.name ?? ""] != nil },
                forConfigurationName: part(index)
            )
        }
        return model
    }

    /// The name of the model's configuration that has the classes of a store.
    private static func part(_ index: Int) -> String { "Store \(index + 1)" }

    private static func open(
        _ configuration: ModelConfiguration,
        _ part: String?,
        _ coordinator: NSPersistentStoreCoordinator,
        _ migrationPlan: (any SchemaMigrationPlan.Type)?
    ) throws -> NSPersistentStore {
        do {
            if configuration.isFile, configuration.allowsSave {
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
            return try coordinator.addPersistentStore(
                ofType: configuration.storeType,
                configurationName: part,
                // SQLite keeps a database in memory for /dev/null.
                at: configuration.url,
                options: options
            )
        } catch let error as SwiftDataError {
            throw error
        } catch {
            let place = configuration.url.isFileURL ? configuration.url.path : configuration.url.absoluteString
            throw SwiftDataError(.loadIssueModelContainer, "\(place): \(error)")
        }
    }

    /// The identifier of the store that a configuration describes.
    ///
    /// - Parameter name: The name of the configuration.
    /// - Returns: The identifier; `nil` if the container has no such configuration.
    public func storeIdentifier(forConfigurationNamed name: String) -> String? {
        identifiers.first { $0.name == name }?.identifier
    }

    /// The name of the configuration of a store.
    ///
    /// - Parameter identifier: The identifier of the store, such as that of a `PersistentIdentifier`.
    /// - Returns: The name; `nil` if the container has no such store.
    public func configurationName(forStoreIdentifier identifier: String) -> String? {
        identifiers.first { $0.identifier == identifier }?.name
    }

    /// Lets the contexts merge what other processes write from now on.
    ///
    /// Stores in memory have no other processes.
    ///
    /// - Throws: The errors of the stores.
    func followOtherProcesses() throws {
        let stores = coordinator.persistentStores.filter { $0.url?.path != "/dev/null" }
        let reporting = stores.compactMap { $0 as? any CommitReportingStore }
        for store in reporting { try store.reportCommits() }
        guard !reporting.isEmpty else { return }
        try follower.withLock { follower in
            if follower == nil { follower = try coordinator.followRemoteChanges() }
        }
    }

    /// Compares the identity of the containers.
    public static func == (lhs: ModelContainer, rhs: ModelContainer) -> Bool { lhs === rhs }

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
            let (type, options, name) = (store.type, store.options, store.configurationName)
            try coordinator.remove(store)
            try coordinator.destroyPersistentStore(at: url, ofType: type, options: options)
            _ = try coordinator.addPersistentStore(ofType: type, configurationName: name, at: url, options: options)
        }
    }

    /// Removes the data of all stores; an error is written to the standard error output.
    @available(*, deprecated, renamed: "erase()")
    public func deleteAllData() {
        do {
            try erase()
        } catch {
            FileHandle.standardError.write(Data("SwiftData: the data could not be removed: \(error)\n".utf8))
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
