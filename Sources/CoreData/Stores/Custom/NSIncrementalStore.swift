import Foundation
import StrataRows

/// The base class for stores of your own that answer request by request: a web service, another database, memory.
///
/// A subclass overrides ``loadMetadata()``, ``execute(_:with:)``, ``newValuesForObject(with:with:)``,
/// ``newValue(forRelationship:forObjectWith:with:)`` and ``obtainPermanentIDs(for:)``. Register it with
/// ``NSPersistentStoreCoordinator/registerStoreClass(_:type:)`` and add it like any other store:
///
/// ```swift
/// final class ServerStore: NSIncrementalStore {
///     static let storeType = NSPersistentStore.StoreType(rawValue: "Server")
///     override var type: String { Self.storeType.rawValue }
///     override func loadMetadata() throws { metadata = [NSStoreTypeKey: type, NSStoreUUIDKey: UUID().uuidString] }
///
///     override func execute(_ request: NSPersistentStoreRequest, with context: NSManagedObjectContext?) throws -> Any {
///         []  // asks the server
///     }
/// }
/// NSPersistentStoreCoordinator.registerStoreClass(ServerStore.self, type: ServerStore.storeType)
/// ```
///
/// A store names each object by a *reference*, a text or a whole number that it knows the object by for ever. IDs are
/// made of them by ``newObjectID(for:referenceObject:)``.
///
/// **Values** are read when a fault fires, once, and kept by the coordinator; a fetch reads none. **Conflicts** are
/// found by the version of the nodes; a store that finds one itself throws 133020 with `NSMergeConflict`s under
/// `NSPersistentStoreSaveConflictsErrorKey`, and the context's merge policy decides. Uniqueness constraints are the
/// store's affair.
///
/// **Threads.** The coordinator's contexts use a store one at a time, on whatever thread the context runs; a store may
/// use the context it is given, but may not wait for another one. Errors that a store throws reach the caller as they
/// are.
open class NSIncrementalStore: NSPersistentStore, @unchecked Sendable {
    // @unchecked Sendable: what is here is Sendable or guarded by `turn`. A subclass answers for its own state.

    let names = StoreNames()
    let turn: StoreTurn
    let versions = NodeVersions()
    let mailbox = RegistrationMailbox()

    /// Makes a store, which the coordinator does.
    ///
    /// - Parameters:
    ///   - root: The coordinator that the store is for.
    ///   - name: A configuration of the coordinator's model, or `nil` for all its entities.
    ///   - url: Where the store lies; `/dev/null` if it was added without a URL.
    ///   - options: Options, by the keys of the coordinator and your own.
    public required init(
        persistentStoreCoordinator root: NSPersistentStoreCoordinator?,
        configurationName name: String?,
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) {
        turn = StoreTurn(timeout: StoreOption.timeout(options))
        super.init(persistentStoreCoordinator: root, configurationName: name, at: url, options: options)
        super.identifier = "\(Self.identifierForNewStore(at: url))"
    }

    override func saveMetadata() throws {
        guard hasNewMetadata else { return }
        try writeMetadata()
        hasNewMetadata = false
    }

    // MARK: - To be overridden

    /// The identifier of a store that is made anew, which ``NSPersistentStore/identifier`` is at first.
    ///
    /// Default: a new UUID's text.
    ///
    /// - Parameter storeURL: Where the store lies; `/dev/null` if it was added without a URL.
    /// - Returns: A text, a UUID unless a subclass says otherwise.
    open class func identifierForNewStore(at storeURL: URL) -> Any { UUID().uuidString }

    /// Sets ``NSPersistentStore/metadata``, with `NSStoreUUIDKey` and `NSStoreTypeKey` at least.
    ///
    /// Called once, when the store is added, before it knows any object.
    ///
    /// - Throws: Any error, which keeps the store from being added.
    open override func loadMetadata() throws { try super.loadMetadata() }

    /// Answers a fetch, or writes a save.
    ///
    /// A **fetch** (``NSFetchRequest``) has its predicate, sort descriptors, limit and offset for the store to apply;
    /// the context then adds unsaved changes. A store answers with what the request's result type says: objects made by
    /// `context.object(with:)`, or their IDs; an array with one number for a count. What it does not support it throws
    /// for. Dictionaries are not asked for: the coordinator makes them of the objects' values. The limit may be wider
    /// than the caller's, to make up for unsaved changes.
    ///
    /// A **save** (``NSSaveChangesRequest``) is written wholly or not at all, and answered with an empty array. New
    /// objects have the IDs of ``obtainPermanentIDs(for:)`` by then. A request whose sets are all nil asks for the
    /// metadata to be written.
    ///
    /// - Parameters:
    ///   - request: What to do.
    ///   - context: The context that asks.
    /// - Returns: An array, as above.
    /// - Throws: Any error; the context is as it was before then.
    open func execute(_ request: NSPersistentStoreRequest, with context: NSManagedObjectContext?) throws -> Any {
        throw notOverridden("execute(_:with:)")
    }

    /// Reads the values of one object.
    ///
    /// - Parameters:
    ///   - objectID: The object.
    ///   - context: The context that asks.
    /// - Returns: A node of that object.
    /// - Throws: `managedObjectReferentialIntegrity` (133000) if there is no such object any more; any other error if
    ///   it cannot be read just now.
    open func newValuesForObject(
        with objectID: NSManagedObjectID,
        with context: NSManagedObjectContext
    ) throws -> NSIncrementalStoreNode {
        throw notOverridden("newValuesForObject(with:with:)")
    }

    /// Reads a relationship of one object.
    ///
    /// - Parameters:
    ///   - relationship: A to-many relationship, or a to-one relationship that the object's node did not have.
    ///   - objectID: The object.
    ///   - context: The context that asks.
    /// - Returns: For a to-many relationship an array of IDs, in order if it is ordered; else an ID, or `NSNull`.
    /// - Throws: Any error, if it cannot be read just now.
    open func newValue(
        forRelationship relationship: NSRelationshipDescription,
        forObjectWith objectID: NSManagedObjectID,
        with context: NSManagedObjectContext?
    ) throws -> Any {
        throw notOverridden("newValue(forRelationship:forObjectWith:with:)")
    }

    /// Gives new objects the IDs that they will be stored under.
    ///
    /// - Parameter array: Objects that were never saved.
    /// - Returns: An ID for each, in the same order, made by ``newObjectID(for:referenceObject:)`` of the object's
    ///   entity and a reference that no other object has or had.
    /// - Throws: Any error; no object has a new ID then.
    open func obtainPermanentIDs(for array: [NSManagedObject]) throws -> [NSManagedObjectID] {
        throw notOverridden("obtainPermanentIDs(for:)")
    }

    /// Called when contexts have come to hold objects of the store.
    ///
    /// Does nothing. Called once for each object and context, soon after: with the end of the fetch or the event, or,
    /// while others use the store, when it is next asked.
    ///
    /// - Parameter objectIDs: The IDs of the objects.
    open func managedObjectContextDidRegisterObjects(with objectIDs: [NSManagedObjectID]) {}

    /// Called when contexts have let go of objects of the store, as often for each as the other.
    ///
    /// Does nothing.
    ///
    /// - Parameter objectIDs: The IDs of the objects.
    open func managedObjectContextDidUnregisterObjects(with objectIDs: [NSManagedObjectID]) {}

    private func notOverridden(_ member: String) -> CocoaError {
        refused("does not override \(member), which every subclass of NSIncrementalStore has to.")
    }

    // MARK: - IDs and references

    /// The ID of an object that the store calls by a reference.
    ///
    /// May be called on any thread once the store is added. There is one ID for each entity and reference. An ID made
    /// of anything but text or a whole number leads nowhere: it is refused wherever it is used.
    ///
    /// - Parameters:
    ///   - entity: The object's own entity.
    ///   - data: A `String`, an integer or a whole `NSNumber`, by which the store knows the object for ever: it is part
    ///     of the ID's URI.
    /// - Returns: The ID.
    public func newObjectID(for entity: NSEntityDescription, referenceObject data: Any) -> NSManagedObjectID {
        names.id(entity, data, persistentStoreCoordinator)
    }

    /// The reference that an ID was made of.
    ///
    /// May be called on any thread. For an ID of another store, or a temporary one, `NSNull`.
    ///
    /// - Parameter objectID: The ID of an object of this store.
    /// - Returns: What ``newObjectID(for:referenceObject:)`` was called with.
    public func referenceObject(for objectID: NSManagedObjectID) -> Any {
        names.object(of: objectID) ?? NSNull()
    }
}
