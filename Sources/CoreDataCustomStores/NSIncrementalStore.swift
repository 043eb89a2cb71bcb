import CoreDataEssentials
import Foundation
import StrataRows

/// The base class of custom stores that answer requests one by one: a web service, another database, memory.
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
///         []  // calls the server
///     }
/// }
/// NSPersistentStoreCoordinator.registerStoreClass(ServerStore.self, type: ServerStore.storeType)
/// ```
///
/// A store identifies each object by a *reference*, a text or an integer that never changes.
/// ``newObjectID(for:referenceObject:)`` makes IDs from references.
///
/// **Values** are read once, when a fault fires, and the coordinator keeps them; a fetch reads none. **Conflicts** are
/// found by the version of the nodes. If a store finds a conflict itself, then it throws 133020 with `NSMergeConflict`s
/// under `NSPersistentStoreSaveConflictsErrorKey`, and the context's merge policy decides. The store itself has to
/// check uniqueness constraints.
///
/// **Threads.** The coordinator's contexts use a store one at a time, on the thread of the context; a store may use the
/// context that is passed to it, but must not wait for another one. Callers get the errors of a store unchanged.
open class NSIncrementalStore: NSPersistentStore, @unchecked Sendable {
    // @unchecked Sendable: the properties are Sendable or guarded by `turn`. A subclass is responsible for its own
    // state.

    package let names = StoreNames()
    package let turn: StoreTurn
    let versions = NodeVersions()
    let mailbox = RegistrationMailbox()
    /// The objects of the save under way whose values the store has changed: the save reads them again.
    package final var rereadAfterSave: [NSManagedObjectID] = []

    /// Makes a store; the coordinator calls this.
    ///
    /// - Parameters:
    ///   - root: The coordinator of the store.
    ///   - name: A configuration of the coordinator's model, or `nil` for all its entities.
    ///   - url: The place of the store; `/dev/null` if it was added without a URL.
    ///   - options: Options, with keys of the coordinator and keys of the subclass.
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

    package func saveNewMetadata() throws {
        guard hasNewMetadata else { return }
        try writeMetadata()
        hasNewMetadata = false
    }

    // MARK: - Methods to override

    /// The identifier of a new store, which is the initial value of ``NSPersistentStore/identifier``.
    ///
    /// Default: a new UUID's text.
    ///
    /// - Parameter storeURL: The place of the store; `/dev/null` if it was added without a URL.
    /// - Returns: A text; a UUID unless a subclass overrides it.
    open class func identifierForNewStore(at storeURL: URL) -> Any { UUID().uuidString }

    /// Sets ``NSPersistentStore/metadata``, with `NSStoreUUIDKey` and `NSStoreTypeKey` at least.
    ///
    /// Called once, when the store is added, before it knows any object.
    ///
    /// - Throws: Any error; the store is then not added.
    open override func loadMetadata() throws { try super.loadMetadata() }

    /// Answers a fetch, or writes a save.
    ///
    /// A **fetch** (``NSFetchRequest``) has its predicate, sort descriptors, limit and offset, which the store applies;
    /// the context then adds unsaved changes. The request's result type determines the answer: objects made by
    /// `context.object(with:)`, or their IDs; an array with one number for a count. If the store does not support a
    /// request, then it throws an error. Dictionaries are never requested, because the coordinator makes them from the
    /// objects' values. The limit may be higher than the caller's, to allow for unsaved changes.
    ///
    /// A **save** (``NSSaveChangesRequest``) is written completely or not at all, and the answer is an empty array. New
    /// objects already have the IDs of ``obtainPermanentIDs(for:)``. If all sets of the request are nil, then only the
    /// metadata are to be written.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - context: The context that makes the request.
    /// - Returns: An array, as described above.
    /// - Throws: Any error; the context is then as it was before.
    open func execute(_ request: NSPersistentStoreRequest, with context: NSManagedObjectContext?) throws -> Any {
        throw notOverridden("execute(_:with:)")
    }

    /// Reads the values of one object.
    ///
    /// - Parameters:
    ///   - objectID: The object.
    ///   - context: The context that makes the request.
    /// - Returns: A node of that object.
    /// - Throws: `managedObjectReferentialIntegrity` (133000) if the object no longer exists; any other error if it
    ///   cannot be read now.
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
    ///   - context: The context that makes the request.
    /// - Returns: For a to-many relationship an array of IDs, in order if it is ordered; otherwise an ID, or `NSNull`.
    /// - Throws: Any error, if it cannot be read now.
    open func newValue(
        forRelationship relationship: NSRelationshipDescription,
        forObjectWith objectID: NSManagedObjectID,
        with context: NSManagedObjectContext?
    ) throws -> Any {
        throw notOverridden("newValue(forRelationship:forObjectWith:with:)")
    }

    /// Gives new objects their permanent IDs.
    ///
    /// - Parameter array: Objects that were never saved.
    /// - Returns: An ID for each object, in the same order. ``newObjectID(for:referenceObject:)`` makes it from the
    ///   object's entity and a reference that no other object has or had.
    /// - Throws: Any error; no object has a new ID in that case.
    open func obtainPermanentIDs(for array: [NSManagedObject]) throws -> [NSManagedObjectID] {
        throw notOverridden("obtainPermanentIDs(for:)")
    }

    /// Called after contexts have registered objects of the store.
    ///
    /// Does nothing. Called once for each object and context, soon after the registration: at the end of the fetch or
    /// the event, or, if other threads are using the store, during its next call.
    ///
    /// - Parameter objectIDs: The IDs of the objects.
    open func managedObjectContextDidRegisterObjects(with objectIDs: [NSManagedObjectID]) {}

    /// Called after contexts have unregistered objects of the store, as often as the call for the registration.
    ///
    /// Does nothing.
    ///
    /// - Parameter objectIDs: The IDs of the objects.
    open func managedObjectContextDidUnregisterObjects(with objectIDs: [NSManagedObjectID]) {}

    private func notOverridden(_ member: String) -> CocoaError {
        refused("does not override \(member), which every subclass of NSIncrementalStore has to.")
    }

    // MARK: - IDs and references

    /// The ID of an object with a reference of the store.
    ///
    /// May be called on any thread once the store is added. There is one ID for each entity and reference. If the
    /// reference is neither a text nor an integer, then the ID refers to no object: it is refused wherever it is used.
    ///
    /// - Parameters:
    ///   - entity: The object's own entity.
    ///   - data: A `String`, an integer or a whole `NSNumber`, by which the store always identifies the object: it is
    ///     part of the ID's URI.
    /// - Returns: The ID.
    public func newObjectID(for entity: NSEntityDescription, referenceObject data: Any) -> NSManagedObjectID {
        names.id(entity: entity, object: data, coordinator: persistentStoreCoordinator)
    }

    /// The reference from which an ID was made.
    ///
    /// May be called on any thread. For an ID of another store, or a temporary one, it is `NSNull`.
    ///
    /// - Parameter objectID: The ID of an object of this store.
    /// - Returns: The reference that was passed to ``newObjectID(for:referenceObject:)``.
    public func referenceObject(for objectID: NSManagedObjectID) -> Any {
        names.object(of: objectID) ?? NSNull()
    }
}
