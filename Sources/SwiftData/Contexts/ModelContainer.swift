import CoreData
import Foundation
import StrataLocks

/// The stores of a schema, with which contexts are made.
///
/// Any thread may use it.
///
/// ```swift
/// let container = try ModelContainer(for: Trip.self, configurations: ModelConfiguration(url: url))
/// let context = ModelContext(container)
/// ```
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
    private let identifiers: Locked<[(name: String, identifier: String)]>
    /// The stores of the program.
    private let custom: Locked<[SnapshotStore]>
    let hasSnapshotStores: Bool
    var snapshotStores: [SnapshotStore] { hasSnapshotStores ? custom.withLock { $0 } : [] }
    /// The stores of this library.
    var ownStores: [NSPersistentStore] { coordinator.persistentStores.filter { !($0 is SnapshotStore) } }
    private let described: Locked<Set<ModelConfiguration>>
    /// The names of the classes of the store that is being migrated; `nil` for all.
    private let migratedClasses: Set<String>?
    /// Lets the contexts merge what other processes write, once that is wanted.
    private let follower = Locked<RemoteChangeFollower?>(nil)

    /// Opens the stores of some classes, and of all that their relationships reach.
    ///
    /// It blocks while the stores are opened and migrated. They are closed with the last reference to the container and to
    /// its contexts. The default file is `default.store` in the user's folder for application data.
    ///
    /// - Parameters:
    ///   - types: The classes.
    ///   - migrationPlan: The plan by which stores of earlier versions are migrated. Without one, changes are inferred.
    ///   - configurations: The stores; one in the default file if there is none. A configuration with a schema has the
    ///     classes of that schema, and one without has all. A new object goes to the first store that may be written to
    ///     and has its class; stores with a schema come first.
    /// - Throws: `SwiftDataError.loadIssueModelContainer` if a store cannot be opened or migrated, with the reason in
    ///   its description. `SwiftDataError.unknownDataStoreSchema` if a store has a version that the plan lacks.
    ///   `SwiftDataError.backwardMigration` if the plan has the store's version after that of the schema.
    ///   `SwiftDataError.duplicateConfiguration` if two configurations have the same name or file;
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
    ///
    /// - Parameters:
    ///   - schema: The schema.
    ///   - migrationPlan: The plan by which stores of earlier versions are migrated.
    ///   - configurations: The stores; one in the default file if there is none.
    /// - Throws: The errors of the other initialisers.
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
    ///   its description. `SwiftDataError.unknownDataStoreSchema` if a store has a version that the plan lacks.
    ///   `SwiftDataError.backwardMigration` if the plan has the store's version after that of the schema.
    ///   `SwiftDataError.duplicateConfiguration` if two configurations have the same name or file;
    ///   `SwiftDataError.configurationSchemaNotFoundInContainerSchema` if a configuration has a class that the schema
    ///   lacks; `unknownSchema` if the schema was made of entities, and not of classes; the errors of
    ///   `ModelConfiguration.validate()`.
    public convenience init(
        for schema: Schema,
        migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: [ModelConfiguration]
    ) throws {
        try self.init(schema, migrationPlan, configurations.isEmpty ? [ModelConfiguration()] : configurations)
    }

    /// Opens stores of your own for some classes, and for all that their relationships reach.
    ///
    /// - Parameters:
    ///   - types: The classes.
    ///   - configurations: The stores, also those of this library.
    /// - Throws: The errors of ``init(for:configurations:)``.
    @_disfavoredOverload
    public convenience init(
        for types: any PersistentModel.Type...,
        configurations: any DataStoreConfiguration...
    ) throws {
        try self.init(for: Schema(types), configurations: configurations)
    }

    /// Opens stores of your own.
    ///
    /// ```swift
    /// let container = try ModelContainer(for: Schema([Trip.self]), configurations: [MemoryConfiguration(name: "trips")])
    /// ```
    ///
    /// - Parameters:
    ///   - schema: The schema.
    ///   - configurations: The stores, also those of this library; one in the default file if there is none.
    /// - Throws: `SwiftDataError.loadIssueModelContainer` if a store cannot be opened, with the store's error in its
    ///   description. `SwiftDataError.duplicateConfiguration` if two configurations have the same name or file, or two
    ///   stores the same identifier. The errors of ``DataStoreConfiguration/validate()``, and the other ones of
    ///   ``init(for:migrationPlan:configurations:)-(_,_,[ModelConfiguration])``.
    @_disfavoredOverload
    public convenience init(for schema: Schema, configurations: [any DataStoreConfiguration]) throws {
        try self.init(schema, nil, configurations.isEmpty ? [ModelConfiguration()] : configurations)
    }

    private init(
        _ schema: Schema,
        _ migrationPlan: (any SchemaMigrationPlan.Type)?,
        _ stores: [any DataStoreConfiguration]
    ) throws {
        _ = ModelKeyPaths.registered
        guard schema.records.count == schema.entities.count else {
            throw SwiftDataError(.unknownSchema, "the schema was made without classes, so no object could be made")
        }
        try Self.check(stores, schema)
        self.schema = schema
        described = Locked(Set(stores.compactMap { $0 as? ModelConfiguration }))
        self.migrationPlan = migrationPlan
        // A new object goes to the first store that has its class, so the stores of some classes come first.
        let ordered = stores.filter { $0.schema != nil } + stores.filter { $0.schema == nil }
        model = try Self.model(of: ordered, schema)
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        var identifiers: [(name: String, identifier: String)] = []
        var custom: [SnapshotStore] = []
        for (index, configuration) in ordered.enumerated() {
            let part = Self.isPart(configuration, of: schema) ? Self.part(index) : nil
            let identifier: String
            if let configuration = configuration as? ModelConfiguration {
                identifier = try Self.open(configuration, part, coordinator, migrationPlan).identifier ?? ""
            } else {
                let store = try Self.openCustom(configuration, part, coordinator, migrationPlan, schema)
                identifier = store.dataStoreIdentifier
                custom.append(store)
            }
            guard !identifiers.contains(where: { $0.identifier == identifier }) else {
                throw SwiftDataError(.duplicateConfiguration, "two stores have the identifier \(identifier)")
            }
            identifiers.append((configuration.name, identifier))
        }
        self.identifiers = Locked(identifiers)
        hasSnapshotStores = !custom.isEmpty
        self.custom = Locked(custom)
        migratedClasses = nil
        makeModelObjects()
    }

    /// Lets the contexts make managed objects that know their model objects.
    private func makeModelObjects() {
        for entity in model.entities + coordinator.managedObjectModel.entities {
            entity.makeObjects(of: ModelObject.self)
        }
    }

    /// The container of a store that is being migrated.
    init(schema: Schema, coordinator: NSPersistentStoreCoordinator) {
        _ = ModelKeyPaths.registered
        self.schema = schema
        self.coordinator = coordinator
        model = schema.model
        described = Locked([])
        migrationPlan = nil
        identifiers = Locked([])
        hasSnapshotStores = false
        custom = Locked([])
        let held = coordinator.persistentStores.flatMap {
            coordinator.managedObjectModel.storedEntities(forConfigurationName: $0.configurationName) ?? []
        }
        migratedClasses = Set(held.compactMap(\.name))
        makeModelObjects()
    }

    /// Whether a store can have objects of a class; the closures of a migration see one store only.
    func holds<Model: PersistentModel>(_ type: Model.Type) -> Bool {
        migratedClasses?.contains(ModelRecord.of(type).entityName) ?? true
    }

    private static func check(_ stores: [any DataStoreConfiguration], _ schema: Schema) throws {
        let files = stores.compactMap { $0 as? ModelConfiguration }.filter { !$0.isStoredInMemoryOnly }.map(\.url)
        let named = stores.filter { ($0 as? ModelConfiguration)?.hasGivenName ?? true }.map(\.name)
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
    private static func model(of stores: [any DataStoreConfiguration], _ schema: Schema) throws -> NSManagedObjectModel
    {
        guard stores.contains(where: { isPart($0, of: schema) }) else { return schema.model }
        let model = try SchemaModel(entities: schema.entities, version: schema.version).model()
        for (index, store) in stores.enumerated() where isPart(store, of: schema) {
            model.setEntities(
                model.entities.filter { store.schema?.records[$0.name ?? ""] != nil },
                forConfigurationName: part(index)
            )
        }
        return model
    }

    /// Whether a store has some classes of a schema, and not all.
    private static func isPart(_ store: some DataStoreConfiguration, of schema: Schema) -> Bool {
        // The store has no other classes than the schema.
        store.schema.map { $0.records.count < schema.records.count } ?? false
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
                let part = try part.map { try plannedPart($0, of: configuration, coordinator.managedObjectModel) }
                options[NSPersistentStoreStagedMigrationManagerOptionKey] =
                    try PlannedMigration.manager(migrationPlan, part)
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
            throw SwiftDataError(code(of: error), "\(place): \(error)")
        }
    }

    /// The classes of a store of some classes, for the versions of a plan.
    ///
    /// - Throws: `SwiftDataError.loadIssueModelContainer` if the store has another class of the schema, because a plan
    ///   would drop its objects.
    private static func plannedPart(
        _ name: String,
        of configuration: ModelConfiguration,
        _ model: NSManagedObjectModel
    ) throws -> PlannedPart {
        let classes = Set((model.storedEntities(forConfigurationName: name) ?? []).compactMap(\.name))
        // Without metadata there is no store yet, or it is refused when it is opened.
        let metadata = try? NSPersistentStoreCoordinator.metadataForPersistentStore(
            ofType: configuration.storeType,
            at: configuration.url
        )
        let stored = metadata?[NSStoreModelVersionHashesKey] as? [String: Data] ?? [:]
        let others = stored.keys.filter { model.entitiesByName[$0] != nil && !classes.contains($0) }.sorted()
        guard others.isEmpty else {
            throw SwiftDataError(
                .loadIssueModelContainer,
                "the store of \(configuration.name) has the classes \(others.joined(separator: ", ")), which its "
                    + "configuration lacks, so that the migration plan would drop their objects"
            )
        }
        return PlannedPart(name: name, stored: stored, classes: classes)
    }

    /// The name of the error of a store that cannot be opened.
    private static func code(of error: any Error) -> SwiftDataError.Code {
        guard let error = error as? CocoaError else { return .loadIssueModelContainer }
        switch error.code.rawValue {
        // Without a store it is the plan itself that is wrong.
        case NSManagedObjectModelReferenceNotFoundError where error.userInfo[NSURLErrorKey] != nil:
            return .unknownDataStoreSchema
        case NSStagedMigrationBackwardMigrationError: return .backwardMigration
        default: return .loadIssueModelContainer
        }
    }

    /// Opens a store of the program.
    private static func openCustom<Configuration: DataStoreConfiguration>(
        _ configuration: Configuration,
        _ part: String?,
        _ coordinator: NSPersistentStoreCoordinator,
        _ migrationPlan: (any SchemaMigrationPlan.Type)?,
        _ schema: Schema
    ) throws -> SnapshotStore {
        _ = SnapshotStore.isRegistered
        var configuration = configuration
        if configuration.schema == nil { configuration.schema = schema }
        for record in configuration.schema?.records.values.sorted(by: { $0.entityName < $1.entityName }) ?? []
        where record.properties.contains(where: { $0.name == "persistentIdentifier" }) {
            throw SwiftDataError(
                .loadIssueModelContainer,
                "\(record.type) has a property persistentIdentifier, which is a key of every snapshot"
            )
        }
        do {
            let store = try Configuration.Store(configuration, migrationPlan: migrationPlan)
            let opened = try coordinator.addPersistentStore(
                ofType: SnapshotStore.storeType,
                configurationName: part,
                at: nil,
                options: [SnapshotStore.connectionOption: TypedConnection(store, schema)]
            )
            guard let opened = opened as? SnapshotStore else { throw SwiftDataError.loadIssueModelContainer }
            return opened
        } catch let error as SwiftDataError {
            throw error
        } catch {
            throw SwiftDataError(.loadIssueModelContainer, "\(configuration.name): \(error)")
        }
    }

    /// The identifier of the store that a configuration describes.
    ///
    /// - Parameter name: The name of the configuration.
    /// - Returns: The identifier; `nil` if the container has no such configuration.
    public func storeIdentifier(forConfigurationNamed name: String) -> String? {
        identifiers.withLock { $0.first { $0.name == name }?.identifier }
    }

    /// The name of the configuration of a store.
    ///
    /// - Parameter identifier: The identifier of the store, such as that of a `PersistentIdentifier`.
    /// - Returns: The name; `nil` if the container has no such store.
    public func configurationName(forStoreIdentifier identifier: String) -> String? {
        identifiers.withLock { $0.first { $0.identifier == identifier }?.name }
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
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: ModelContainer, rhs: ModelContainer) -> Bool { lhs === rhs }

    /// The context of the main actor.
    ///
    /// It follows the saves of the other contexts, and saves by itself (``ModelContext/autosaveEnabled``).
    @MainActor public var mainContext: ModelContext {
        if let context = MainContexts.shared.context(of: self) { return context }
        let context = ModelContext(self)
        context.autosaveEnabled = true
        MainContexts.shared.keep(context, for: self)
        return context
    }

    /// Removes the data of all stores.
    ///
    /// Objects of before must not be used afterwards. The stores of the library have other identifiers then. Observers go
    /// on, and count the transactions of the new stores.
    ///
    /// - Throws: The errors of the stores; ``DataStoreError/unsupportedFeature`` for a store of your own that cannot do it.
    public func erase() throws {
        for store in snapshotStores {
            try store.eraseData()
            let (options, name) = (store.options, store.configurationName)
            try coordinator.remove(store)
            let opened = try coordinator.addPersistentStore(
                ofType: SnapshotStore.storeType,
                configurationName: name,
                at: nil,
                options: options
            )
            custom.withLock { custom in
                custom.removeAll { $0 === store }
                if let opened = opened as? SnapshotStore { custom.append(opened) }
            }
        }
        for store in ownStores {
            guard let url = store.url else { continue }
            let (type, options, name) = (store.type, store.options, store.configurationName)
            let former = store.identifier
            try coordinator.remove(store)
            // A store in memory has gone, and others may have the same place.
            if url.path != "/dev/null" {
                try coordinator.destroyPersistentStore(at: url, ofType: type, options: options)
            }
            let opened = try coordinator.addPersistentStore(
                ofType: type,
                configurationName: name,
                at: url,
                options: options
            )
            identifiers.withLock { identifiers in
                for index in identifiers.indices where identifiers[index].identifier == former {
                    identifiers[index].identifier = opened.identifier ?? ""
                }
            }
        }
        if follower.withLock({ $0 != nil }) { try followOtherProcesses() }
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
