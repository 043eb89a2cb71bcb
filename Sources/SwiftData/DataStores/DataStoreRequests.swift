import Foundation

/// A fetch that a context makes in a store.
///
/// ```swift
/// func fetchCount<T>(_ request: DataStoreFetchRequest<T>) throws -> Int {
///     guard request.descriptor.predicate == nil else { throw DataStoreError.preferInMemoryFilter }
///     return rows.keys.count { $0.entityName == Schema.entityName(for: T.self) }
/// }
/// ```
public struct DataStoreFetchRequest<T: PersistentModel>: Sendable {
    /// The editor for whom objects are fetched.
    public let editingState: EditingState
    /// The description of the objects.
    public let descriptor: FetchDescriptor<T>
}

/// The answer of a store to a fetch.
///
/// ```swift
/// let result = DataStoreFetchResult(descriptor: FetchDescriptor<Trip>(), fetchedSnapshots: snapshots)
/// ```
public struct DataStoreFetchResult<ModelType: PersistentModel, SnapshotType: DataStoreSnapshot>: Sendable {
    /// The description of the objects.
    public let descriptor: FetchDescriptor<ModelType>
    /// The snapshots of the objects, in order.
    public let fetchedSnapshots: [SnapshotType]
    /// The snapshots of other objects, by their identifiers, which need not be fetched when they are used.
    public let relatedSnapshots: [PersistentIdentifier: SnapshotType]

    /// Makes an answer.
    ///
    /// - Parameters:
    ///   - descriptor: The description of the objects.
    ///   - fetchedSnapshots: The snapshots of the objects, in order.
    ///   - relatedSnapshots: The snapshots of other objects, by their identifiers.
    public init(
        descriptor: FetchDescriptor<ModelType>,
        fetchedSnapshots: [SnapshotType],
        relatedSnapshots: [PersistentIdentifier: SnapshotType] = [:]
    ) {
        self.descriptor = descriptor
        self.fetchedSnapshots = fetchedSnapshots
        self.relatedSnapshots = relatedSnapshots
    }
}

/// The changes of a context that a store has to write.
///
/// ```swift
/// func forget(_ request: DataStoreSaveChangesRequest<DefaultSnapshot>) {
///     for old in request.deleted { rows[old.persistentIdentifier] = nil }
/// }
/// ```
public struct DataStoreSaveChangesRequest<SnapshotType: DataStoreSnapshot>: Sendable {
    /// The new objects, with temporary identifiers.
    public let inserted: [SnapshotType]
    /// The changed objects, with all values.
    public let updated: [SnapshotType]
    /// The deleted objects.
    public let deleted: [SnapshotType]
    /// The editor who saves.
    public let editingState: EditingState
}

/// The answer of a store to a save.
///
/// ```swift
/// let result = DataStoreSaveChangesResult<DefaultSnapshot>(for: "trips", remappedIdentifiers: remapped)
/// ```
public final class DataStoreSaveChangesResult<T: DataStoreSnapshot>: Sendable {
    /// The identifier of the store.
    public let storeIdentifier: String
    /// The permanent identifiers of the new objects, by the temporary ones.
    public let remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]
    /// The snapshots of saved objects whose values the store has changed, by their permanent identifiers.
    public let snapshotsToReregister: [PersistentIdentifier: T]
    /// The place in the store's history after the save; `nil` if it keeps none.
    public let historyToken: (any HistoryToken)?

    /// Makes an answer.
    ///
    /// - Parameters:
    ///   - storeIdentifier: The identifier of the store.
    ///   - remappedIdentifiers: The permanent identifiers of all new objects, by the temporary ones. No stored object has
    ///     one of them.
    ///   - snapshotsToReregister: The snapshots of saved objects whose values the store has changed, by their permanent
    ///     identifiers. The contexts take these values.
    public convenience init(
        for storeIdentifier: String,
        remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier] = [:],
        snapshotsToReregister: [PersistentIdentifier: T] = [:]
    ) {
        self.init(
            for: storeIdentifier,
            remappedIdentifiers: remappedIdentifiers,
            snapshotsToReregister: snapshotsToReregister,
            historyToken: nil
        )
    }

    /// Makes an answer of a store with a history.
    ///
    /// - Parameters:
    ///   - storeIdentifier: The identifier of the store.
    ///   - remappedIdentifiers: The permanent identifiers of all new objects, by the temporary ones. No stored object has
    ///     one of them.
    ///   - snapshotsToReregister: The snapshots of saved objects whose values the store has changed, by their permanent
    ///     identifiers. The contexts take these values.
    ///   - historyToken: The place in the store's history after the save, which `ModelContext.didSave` passes on.
    public init(
        for storeIdentifier: String,
        remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier] = [:],
        snapshotsToReregister: [PersistentIdentifier: T] = [:],
        historyToken: (any HistoryToken)?
    ) {
        self.storeIdentifier = storeIdentifier
        self.remappedIdentifiers = remappedIdentifiers
        self.snapshotsToReregister = snapshotsToReregister
        self.historyToken = historyToken
    }
}

/// The description of objects to delete.
///
/// ```swift
/// func delete<T: PersistentModel>(_ request: DataStoreBatchDeleteRequest<T>) throws {
///     guard request.predicate == nil else { throw DataStoreError.unsupportedFeature }
///     rows = rows.filter { $0.key.entityName != Schema.entityName(for: T.self) }
/// }
/// ```
public struct DataStoreBatchDeleteRequest<T: PersistentModel>: Sendable {
    /// The editor who deletes.
    public let editingState: EditingState
    /// The condition; `nil` for all objects.
    public let predicate: Predicate<T>?
    /// Whether objects of subclasses are deleted, too.
    public let includeSubclasses: Bool
}
