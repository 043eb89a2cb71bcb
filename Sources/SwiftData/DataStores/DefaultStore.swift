import CoreData
import Foundation

/// A store of this library in the form of ``DataStore``, for stores of your own that pass requests on.
///
/// Containers open the stores of their `ModelConfiguration`s themselves. Make one of these in a store of your own, which
/// does something with the requests or the answers.
///
/// ```swift
/// let base = try DefaultStore(ModelConfiguration("base", schema: Schema([Trip.self]), url: url))
/// let saved = try base.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count
/// ```
public final class DefaultStore: DataStore, DataStoreBatching, HistoryProviding {
    /// The type of the configuration.
    public typealias Configuration = ModelConfiguration
    /// The type of the snapshots.
    public typealias Snapshot = DefaultSnapshot
    /// The type of the transactions.
    public typealias HistoryType = DefaultHistoryTransaction
    /// The type of the places in the history.
    public typealias TokenType = DefaultHistoryToken

    /// The name of the configuration.
    public let name: String
    /// The classes whose objects the store keeps.
    public let schema: Schema
    /// The configuration that the store was made with.
    public let configuration: ModelConfiguration
    private let container: ModelContainer

    /// The identifier of the store, which its file has.
    public var identifier: String { container.storeIdentifier(forConfigurationNamed: name) ?? "" }

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - configuration: The description of the store, with a schema.
    ///   - migrationPlan: The plan by which a store of an earlier version is migrated.
    /// - Throws: `SwiftDataError.unknownSchema` without a schema, and the errors of a container.
    public convenience init(
        _ configuration: ModelConfiguration,
        migrationPlan: (any SchemaMigrationPlan.Type)? = nil
    ) throws {
        guard let schema = configuration.schema else {
            throw SwiftDataError(.unknownSchema, "the configuration \(configuration.name) has no schema")
        }
        let container = try ModelContainer(for: schema, migrationPlan: migrationPlan, configurations: [configuration])
        self.init(configuration, schema, container)
    }

    private init(_ configuration: ModelConfiguration, _ schema: Schema, _ container: ModelContainer) {
        name = configuration.name
        self.configuration = configuration
        self.schema = schema
        self.container = container
    }

    private func snapshot<Model: PersistentModel>(_ model: Model) -> DefaultSnapshot {
        var related: [PersistentIdentifier: any BackingData] = [:]
        return DefaultSnapshot(from: model.persistentBackingData, relatedBackingDatas: &related)
    }

    // MARK: - Fetching

    /// Finds objects.
    ///
    /// - Parameter request: The description of the objects.
    /// - Returns: Their snapshots, in order.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    public func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws
        -> DataStoreFetchResult<T, DefaultSnapshot>
    {
        let context = ModelContext(container)
        let models = try context.fetch(request.descriptor)
        return DataStoreFetchResult(
            descriptor: request.descriptor,
            fetchedSnapshots: try context.onQueue {
                try models.map { model in
                    // An object of a subclass has more values.
                    let model: any PersistentModel = model
                    let found = snapshot(model)
                    if let unread = found.unread { throw SwiftDataError(.modelValidationFailure, unread) }
                    return found
                }
            }
        )
    }

    /// Counts objects.
    ///
    /// - Parameter request: The description of the objects.
    /// - Returns: The number.
    /// - Throws: The errors of `ModelContext.fetchCount(_:)`.
    public func fetchCount<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int {
        try ModelContext(container).fetchCount(request.descriptor)
    }

    /// Finds the identifiers of objects.
    ///
    /// - Parameter request: The description of the objects.
    /// - Returns: The identifiers, in order.
    /// - Throws: The errors of `ModelContext.fetchIdentifiers(_:)`.
    public func fetchIdentifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws
        -> [PersistentIdentifier]
    {
        try ModelContext(container).fetchIdentifiers(request.descriptor)
    }

    /// Reads objects by their identifiers.
    ///
    /// - Parameters:
    ///   - persistentIdentifiers: The identifiers.
    ///   - editingState: The editor.
    /// - Returns: The snapshots of those that the store has.
    /// - Throws: The errors of the store.
    public func cachedSnapshots(
        for persistentIdentifiers: [PersistentIdentifier],
        editingState: EditingState
    ) throws -> [PersistentIdentifier: DefaultSnapshot] {
        let context = ModelContext(container)
        return try context.onQueue {
            var found: [PersistentIdentifier: DefaultSnapshot] = [:]
            for identifier in persistentIdentifiers {
                guard let object = try object(identifier, context) else { continue }
                found[identifier] = snapshot(context.model(of: object))
            }
            return found
        }
    }

    /// The object of an identifier; `nil` if the store has none.
    private func object(_ identifier: PersistentIdentifier, _ context: ModelContext) throws -> NSManagedObject? {
        guard let id = context.objectID(identifier) else { return nil }
        do {
            return try context.managed.existingObject(with: id)
        } catch let error as CocoaError where error.code == .managedObjectReferentialIntegrity {
            return nil
        }
    }

    // MARK: - Saving

    /// Writes changes, all of them or none.
    ///
    /// - Parameter request: The changes.
    /// - Returns: The permanent identifiers of the new objects.
    /// - Throws: Core Data's errors of validation, conflicts and stores; `CocoaError.managedObjectReferentialIntegrity`
    ///   (133000) for a changed object or a related one that the store does not have.
    public func save(_ request: DataStoreSaveChangesRequest<DefaultSnapshot>) throws
        -> DataStoreSaveChangesResult<DefaultSnapshot>
    {
        let context = ModelContext(container)
        context.author = request.editingState.author
        let managed = context.managed
        return try context.onQueue {
            var new: [PersistentIdentifier: NSManagedObject] = [:]
            for snapshot in request.inserted {
                guard let entity = container.model.entitiesByName[snapshot.persistentIdentifier.entityName] else {
                    throw SwiftDataError(.unknownSchema, snapshot.persistentIdentifier.entityName)
                }
                new[snapshot.persistentIdentifier] = ModelObject(entity: entity, insertInto: managed)
            }
            func required(_ identifier: PersistentIdentifier) throws -> NSManagedObject {
                if let object = try new[identifier] ?? object(identifier, context) { return object }
                throw CocoaError(.managedObjectReferentialIntegrity)
            }
            for snapshot in request.inserted + request.updated {
                try apply(snapshot, to: required(snapshot.persistentIdentifier), required)
            }
            for snapshot in request.deleted {
                if let object = try object(snapshot.persistentIdentifier, context) { managed.delete(object) }
            }
            try managed.save()
            let number = managed.observers.values?.savedTransactions[identifier]
            return DataStoreSaveChangesResult(
                for: identifier,
                remappedIdentifiers: new.mapValues { PersistentIdentifier($0.objectID) },
                historyToken: number.map { DefaultHistoryToken(tokenValue: [identifier: $0]) }
            )
        }
    }

    private func apply(
        _ snapshot: DefaultSnapshot,
        to object: NSManagedObject,
        _ required: (PersistentIdentifier) throws -> NSManagedObject
    ) throws {
        guard let record = schema.records[object.entity.name ?? ""] else {
            throw SwiftDataError(.unknownSchema, object.entity.name ?? "")
        }
        for property in record.properties {
            let value: Any?
            switch property.kind {
            case .attribute(let form):
                value = try snapshot.attributes[property.name].flatMap { try form.stored(snapshotValue: $0) }
            case .toOne: value = try snapshot.toOne[property.name].map(required)
            case .toMany: value = Set(try (snapshot.toMany[property.name] ?? []).map(required))
            }
            object.setValue(value, forKey: property.name)
        }
    }

    /// Deletes objects by the delete rules.
    ///
    /// - Parameter request: The description of the objects.
    /// - Throws: The errors of `ModelContext.delete(model:where:includeSubclasses:)` and of `ModelContext.save()`.
    public func delete<T: PersistentModel>(_ request: DataStoreBatchDeleteRequest<T>) throws {
        let context = ModelContext(container)
        context.author = request.editingState.author
        try context.delete(
            model: T.self,
            where: request.predicate,
            includeSubclasses: request.includeSubclasses
        )
        try context.save()
    }

    /// Removes all data.
    ///
    /// - Throws: The errors of the store.
    public func erase() throws { try container.erase() }

    /// Does nothing: the store keeps no state of editors.
    ///
    /// - Parameter editingState: The editor.
    public func initializeState(for editingState: EditingState) {}

    /// Does nothing: the store keeps no state of editors.
    ///
    /// - Parameter editingState: The editor.
    public func invalidateState(for editingState: EditingState) {}

    // MARK: - History

    /// The type of the transactions.
    public static var historyType: DefaultHistoryTransaction.Type { DefaultHistoryTransaction.self }

    /// Finds transactions.
    ///
    /// - Parameter descriptor: The description of the transactions.
    /// - Returns: The transactions, in order.
    /// - Throws: The errors of `ModelContext.fetchHistory(_:)`.
    public func fetchHistory(_ descriptor: HistoryDescriptor<DefaultHistoryTransaction>) throws
        -> [DefaultHistoryTransaction]
    {
        try ModelContext(container).fetchHistory(descriptor)
    }

    /// Removes transactions.
    ///
    /// - Parameter descriptor: The description of the transactions.
    /// - Throws: The errors of `ModelContext.deleteHistory(_:)`.
    public func deleteHistory(_ descriptor: HistoryDescriptor<DefaultHistoryTransaction>) throws {
        try ModelContext(container).deleteHistory(descriptor)
    }
}
