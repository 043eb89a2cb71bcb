/// A store of your own, from which contexts fetch objects and into which they save them, as snapshots.
///
/// A container makes the store from its configuration. Contexts, relationships, unsaved changes, merging and conflicts work
/// as they do with the stores of this library.
///
/// ```swift
/// struct MemoryConfiguration: DataStoreConfiguration {
///     typealias Store = MemoryStore
///     var name: String
///     var schema: Schema?
/// }
///
/// final class MemoryStore: DataStore {
///     typealias Configuration = MemoryConfiguration
///     typealias Snapshot = DefaultSnapshot
///     let configuration: MemoryConfiguration
///     let schema: Schema
///     var identifier: String { configuration.name }
///     private var rows: [PersistentIdentifier: DefaultSnapshot] = [:]
///
///     init(_ configuration: MemoryConfiguration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws {
///         self.configuration = configuration
///         schema = configuration.schema ?? Schema()
///     }
///
///     func fetch<T>(_ request: DataStoreFetchRequest<T>) throws -> DataStoreFetchResult<T, DefaultSnapshot> {
///         // The library filters and sorts what this store finds.
///         if request.descriptor.predicate != nil { throw DataStoreError.preferInMemoryFilter }
///         if !request.descriptor.sortBy.isEmpty { throw DataStoreError.preferInMemorySort }
///         let name = Schema.entityName(for: T.self)
///         let found = rows.values.filter { $0.persistentIdentifier.entityName == name }
///         return DataStoreFetchResult(descriptor: request.descriptor, fetchedSnapshots: found)
///     }
///
///     func save(_ request: DataStoreSaveChangesRequest<DefaultSnapshot>) throws
///         -> DataStoreSaveChangesResult<DefaultSnapshot>
///     {
///         var remapped: [PersistentIdentifier: PersistentIdentifier] = [:]
///         for new in request.inserted {
///             remapped[new.persistentIdentifier] = try PersistentIdentifier.identifier(
///                 for: identifier, entityName: new.persistentIdentifier.entityName, primaryKey: UUID()
///             )
///         }
///         for new in request.inserted + request.updated {
///             let id = remapped[new.persistentIdentifier] ?? new.persistentIdentifier
///             rows[id] = new.copy(persistentIdentifier: id, remappedIdentifiers: remapped)
///         }
///         for old in request.deleted { rows[old.persistentIdentifier] = nil }
///         return DataStoreSaveChangesResult(for: identifier, remappedIdentifiers: remapped)
///     }
/// }
/// ```
///
/// **Threads.** One thread at a time calls a store. A store must not use contexts of its container.
///
/// **Errors.** The caller of a fetch or a save gets the errors of the store unchanged. If a save throws, then the store must
/// have written nothing, and the changes stay in the context. If an answer is wrong, such as a new object without a permanent
/// identifier, then the caller gets `CocoaError.persistentStoreOperation` (134070).
public protocol DataStore: AnyObject {
    /// The type of the configuration, which names this type as its store.
    associatedtype Configuration: DataStoreConfiguration where Self == Self.Configuration.Store
    /// The form in which the store takes and gives the values of objects.
    associatedtype Snapshot: DataStoreSnapshot

    /// The identifier of the store, which is part of the identifiers of its objects. It never changes.
    var identifier: String { get }
    /// The classes whose objects the store keeps.
    var schema: Schema { get }
    /// The configuration that the store was made with.
    var configuration: Configuration { get }

    /// Opens the store. The container calls it.
    ///
    /// - Parameters:
    ///   - configuration: The configuration, whose schema is set.
    ///   - migrationPlan: The plan of the container, by which the store migrates its data; `nil` if there is none.
    /// - Throws: Any error. The container then throws `SwiftDataError.loadIssueModelContainer` with its description.
    init(_ configuration: Configuration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws

    /// Finds objects.
    ///
    /// - Parameter request: The description of the objects. Its limit may be higher than that of the program, which leaves
    ///   room for unsaved changes.
    /// - Returns: The snapshots of the objects, in order. They are of the class or of its subclasses.
    /// - Throws: Any error. After ``DataStoreError/preferInMemoryFilter`` the store is asked again without a predicate and a
    ///   limit, and after ``DataStoreError/preferInMemorySort`` without an order and a limit. The library does the rest.
    func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> DataStoreFetchResult<T, Snapshot>

    /// Counts objects. The default is the number of snapshots of ``fetch(_:)``.
    ///
    /// - Parameter request: The description of the objects.
    /// - Returns: The number.
    /// - Throws: As ``fetch(_:)``.
    func fetchCount<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int

    /// Finds the identifiers of objects. The default are those of the snapshots of ``fetch(_:)``.
    ///
    /// - Parameter request: The description of the objects.
    /// - Returns: The identifiers, in order.
    /// - Throws: As ``fetch(_:)``.
    func fetchIdentifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> [PersistentIdentifier]

    /// Writes the changes of a context, all of them or none.
    ///
    /// The library finds conflicts between the contexts of a container before it calls this. The store itself checks unique
    /// values.
    ///
    /// - Parameter request: The changes.
    /// - Returns: The permanent identifiers of the new objects.
    /// - Throws: Any error. The store has written nothing then.
    func save(_ request: DataStoreSaveChangesRequest<Snapshot>) throws -> DataStoreSaveChangesResult<Snapshot>

    /// Removes all data. The default throws ``DataStoreError/unsupportedFeature``.
    ///
    /// - Throws: Any error.
    func erase() throws

    /// Prepares for an editor. The default does nothing.
    ///
    /// It is called before the first request of each context.
    ///
    /// - Parameter editingState: The editor.
    func initializeState(for editingState: EditingState)

    /// Forgets an editor. The default does nothing.
    ///
    /// It is called after the end of a context that has asked the store: at once, or with the next request if another context
    /// uses the store.
    ///
    /// - Parameter editingState: The editor.
    func invalidateState(for editingState: EditingState)

    /// The snapshots of objects that the store can give without a search. The default has none.
    ///
    /// A context asks it for an object that was not fetched, before it fetches the object by its identifier.
    ///
    /// - Parameters:
    ///   - persistentIdentifiers: The identifiers of the objects.
    ///   - editingState: The editor.
    /// - Returns: The snapshots by their identifiers; others may be missing.
    /// - Throws: Any error.
    func cachedSnapshots(
        for persistentIdentifiers: [PersistentIdentifier],
        editingState: EditingState
    ) throws -> [PersistentIdentifier: Snapshot]
}

extension DataStore {
    /// Counts the snapshots of ``fetch(_:)``.
    ///
    /// - Parameter request: The description of the objects.
    /// - Returns: The number.
    /// - Throws: As ``fetch(_:)``.
    public func fetchCount<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int {
        try fetch(request).fetchedSnapshots.count
    }

    /// Takes the identifiers of the snapshots of ``fetch(_:)``.
    ///
    /// - Parameter request: The description of the objects.
    /// - Returns: The identifiers, in order.
    /// - Throws: As ``fetch(_:)``.
    public func fetchIdentifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws
        -> [PersistentIdentifier]
    {
        try fetch(request).fetchedSnapshots.map(\.persistentIdentifier)
    }

    /// Refuses to remove all data.
    ///
    /// - Throws: ``DataStoreError/unsupportedFeature`` always.
    public func erase() throws { throw DataStoreError.unsupportedFeature }

    /// Does nothing.
    ///
    /// - Parameter editingState: The editor.
    public func initializeState(for editingState: EditingState) {}

    /// Does nothing.
    ///
    /// - Parameter editingState: The editor.
    public func invalidateState(for editingState: EditingState) {}

    /// Has no snapshots.
    ///
    /// - Parameters:
    ///   - persistentIdentifiers: The identifiers of the objects.
    ///   - editingState: The editor.
    /// - Returns: Nothing.
    /// - Throws: Nothing.
    public func cachedSnapshots(
        for persistentIdentifiers: [PersistentIdentifier],
        editingState: EditingState
    ) throws -> [PersistentIdentifier: Snapshot] { [:] }
}

/// The description of a store of your own, from which a container makes the store.
///
/// ```swift
/// let container = try ModelContainer(for: Trip.self, configurations: MemoryConfiguration(name: "trips"))
/// ```
public protocol DataStoreConfiguration: Hashable {
    /// The type of the store.
    associatedtype Store: DataStore where Self == Self.Store.Configuration

    /// The name. The configurations of a container have different ones.
    var name: String { get }
    /// The classes of this store; `nil` for all of the container's. A container sets it before it makes the store.
    var schema: Schema? { get set }

    /// Checks the configuration. The container calls it; the default does nothing.
    ///
    /// - Throws: Any error, which the container throws on.
    func validate() throws
}

extension DataStoreConfiguration {
    /// Does nothing.
    ///
    /// - Throws: Nothing.
    public func validate() throws {}
}

/// A store that can delete objects by a condition.
///
/// Contexts do not use it: ``ModelContext/delete(model:where:includeSubclasses:)`` applies the delete rules and deletes with
/// the next save, so the store gets those deletions with ``DataStore/save(_:)``.
///
/// ```swift
/// func empty(_ store: some DataStoreBatching, _ request: DataStoreBatchDeleteRequest<Trip>) throws {
///     try store.delete(request)
/// }
/// ```
public protocol DataStoreBatching: DataStore {
    /// Deletes objects.
    ///
    /// - Parameter request: The description of the objects.
    /// - Throws: Any error.
    func delete<T: PersistentModel>(_ request: DataStoreBatchDeleteRequest<T>) throws
}

/// An error by which a store says what it cannot do.
///
/// ```swift
/// func check(_ request: DataStoreFetchRequest<Trip>) throws {
///     if request.descriptor.predicate != nil { throw DataStoreError.preferInMemoryFilter }
/// }
/// ```
public enum DataStoreError: Error, Hashable {
    /// The store does not support the request.
    case unsupportedFeature
    /// The store does not evaluate predicates; the library filters the objects itself.
    case preferInMemoryFilter
    /// The store does not sort; the library sorts the objects itself.
    case preferInMemorySort
    /// The store cannot evaluate the predicate.
    case invalidPredicate
}
