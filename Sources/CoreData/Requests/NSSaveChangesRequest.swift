import StrataPredicates

/// What a context asks a store of one's own to save: the objects that were inserted, changed and deleted.
///
/// The coordinator makes it for ``NSIncrementalStore/execute(_:with:)``. It and its objects belong to the queue of the
/// context that saves.
///
/// ```swift
/// let request = NSSaveChangesRequest(inserted: [venue], updated: nil, deleted: nil, locked: nil)
/// print(request.insertedObjects?.count ?? 0)
/// ```
open class NSSaveChangesRequest: NSPersistentStoreRequest {
    /// The objects to be stored for the first time, whose IDs are permanent already.
    ///
    /// `nil`, with the other sets, asks for nothing but the store's metadata to be written.
    open private(set) var insertedObjects: Set<NSManagedObject>?
    /// The stored objects that have changed, also in relationships that only other objects' rows tell.
    open private(set) var updatedObjects: Set<NSManagedObject>?
    /// The objects to be removed.
    open private(set) var deletedObjects: Set<NSManagedObject>?
    /// The objects that must not have changed in the store: those of `detectConflicts(for:)`.
    ///
    /// The coordinator has compared the versions it knows; a store that others change compares with what it holds.
    /// `nil` for none.
    open private(set) var lockedObjects: Set<NSManagedObject>?

    /// Makes a request.
    ///
    /// - Parameters:
    ///   - insertedObjects: The new objects.
    ///   - updatedObjects: The changed ones.
    ///   - deletedObjects: Those to be removed.
    ///   - lockedObjects: Those that must not have changed.
    public init(
        inserted insertedObjects: Set<NSManagedObject>?,
        updated updatedObjects: Set<NSManagedObject>?,
        deleted deletedObjects: Set<NSManagedObject>?,
        locked lockedObjects: Set<NSManagedObject>?
    ) {
        self.insertedObjects = insertedObjects
        self.updatedObjects = updatedObjects
        self.deletedObjects = deletedObjects
        self.lockedObjects = lockedObjects
        super.init()
    }

    /// Makes a request that saves nothing but metadata.
    public required init() { super.init() }

    /// Always ``NSPersistentStoreRequestType/saveRequestType``.
    open override var requestType: NSPersistentStoreRequestType { .saveRequestType }

    /// Takes over all that describes `other`.
    package override func adopt(_ other: NSPersistentStoreRequest) {
        super.adopt(other)
        guard let other = other as? NSSaveChangesRequest else { return }
        insertedObjects = other.insertedObjects
        updatedObjects = other.updatedObjects
        deletedObjects = other.deletedObjects
        lockedObjects = other.lockedObjects
    }
}
