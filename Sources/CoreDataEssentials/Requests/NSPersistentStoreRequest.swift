import StrataPredicates

/// The kind of a request to a store.
///
/// ```swift
/// print(NSFetchRequest<Venue>(entityName: "Venue").requestType == .fetchRequestType)
/// ```
public enum NSPersistentStoreRequestType: UInt, Sendable {
    /// Reads objects, IDs, values or a count: ``NSFetchRequest``.
    case fetchRequestType = 1

    /// Writes the changes of a context.
    case saveRequestType = 2

    /// Inserts many rows without objects.
    case batchInsertRequestType = 5

    /// Changes many rows without objects.
    case batchUpdateRequestType = 6

    /// Deletes many rows without objects.
    case batchDeleteRequestType = 7

    /// Reads or purges history: ``NSPersistentHistoryChangeRequest``.
    ///
    /// An addition to Apple's cases, with the number that its framework uses but does not declare.
    case persistentHistoryRequestType = 8
}

/// A request of a context to its stores.
///
/// Use one of the subclasses.
///
/// A request is plain data. It is not thread-safe, but is not tied to a queue.
///
/// ```swift
/// let request: NSPersistentStoreRequest = NSBatchDeleteRequest(objectIDs: [id])
/// request.affectedStores = coordinator.persistentStores
/// try context.execute(request)
/// ```
open class NSPersistentStoreRequest: NSObject, NSCopying {
    /// Creates a request.
    public required override init() {
        super.init()
    }

    /// The stores that execute the request.
    ///
    /// Default `nil`, for all stores that hold the entity.
    open var affectedStores: [NSPersistentStore]?

    /// The kind of the request.
    ///
    /// Every subclass overrides it.
    open var requestType: NSPersistentStoreRequestType {
        fatalError("\(type(of: self)) does not say what it requests; override `requestType`.")
    }

    /// Returns a copy that can be changed.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: A request of the same class.
    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = type(of: self).init()
        copy.copyProperties(from: self)
        return copy
    }

    /// Copies all properties of `other`.
    package func copyProperties(from other: NSPersistentStoreRequest) {
        affectedStores = other.affectedStores
    }
}
