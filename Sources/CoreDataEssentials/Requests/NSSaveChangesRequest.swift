import StrataPredicates

/// A request to a custom store to save the objects that were inserted, changed and deleted.
///
/// The coordinator makes it for ``NSIncrementalStore/execute(_:with:)``. Use the request and its objects only on the
/// queue of the context that saves.
///
/// ```swift
/// let request = NSSaveChangesRequest(inserted: [venue], updated: nil, deleted: nil, locked: nil)
/// print(request.insertedObjects?.count ?? 0)
/// ```
open class NSSaveChangesRequest: NSPersistentStoreRequest {
    /// The objects to be stored for the first time, which already have permanent IDs.
    ///
    /// If this and the other sets are `nil`, then only the store's metadata is to be written.
    open private(set) var insertedObjects: Set<NSManagedObject>?
    /// The stored objects that have changed, including changes of relationships that only other objects' rows contain.
    open private(set) var updatedObjects: Set<NSManagedObject>?
    /// The objects to be removed.
    open private(set) var deletedObjects: Set<NSManagedObject>?
    /// The objects that must not have changed in the store, from `detectConflicts(for:)`; `nil` for none.
    ///
    /// The coordinator has compared the versions that it knows. If others can change the store, then the store compares
    /// its current versions too.
    open private(set) var lockedObjects: Set<NSManagedObject>?

    /// Makes a request.
    ///
    /// - Parameters:
    ///   - insertedObjects: The new objects.
    ///   - updatedObjects: The changed objects.
    ///   - deletedObjects: The objects to be removed.
    ///   - lockedObjects: The objects that must not have changed.
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

    /// Copies all properties of `other`.
    package override func copyProperties(from other: NSPersistentStoreRequest) {
        super.copyProperties(from: other)
        guard let other = other as? NSSaveChangesRequest else { return }
        insertedObjects = other.insertedObjects
        updatedObjects = other.updatedObjects
        deletedObjects = other.deletedObjects
        lockedObjects = other.lockedObjects
    }
}
