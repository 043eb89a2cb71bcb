import StrataPredicates

/// What a request asks of a store.
///
/// ```swift
/// print(NSFetchRequest<Venue>(entityName: "Venue").requestType == .fetchRequestType)
/// ```
public enum NSPersistentStoreRequestType: UInt, Sendable {
    /// Read objects, IDs, values or a count: ``NSFetchRequest``.
    case fetchRequestType = 1

    /// Write what a context has changed.
    case saveRequestType = 2

    /// Insert many rows without objects.
    case batchInsertRequestType = 5

    /// Change many rows without objects.
    case batchUpdateRequestType = 6

    /// Delete many rows without objects.
    case batchDeleteRequestType = 7

    /// Read or purge history: ``NSPersistentHistoryChangeRequest``.
    ///
    /// An addition to Apple's cases, with the number that its framework uses but does not declare.
    case persistentHistoryRequestType = 8
}

/// Something that a context asks of its stores.
///
/// Use one of the subclasses.
///
/// A request is plain data and belongs to whoever made it; nothing in it is tied to a queue.
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

    /// The stores to ask.
    ///
    /// Default `nil`, for all stores that hold the entity.
    open var affectedStores: [NSPersistentStore]?

    /// What the request asks for.
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
        copy.adopt(self)
        return copy
    }

    /// Takes over all that describes `other`.
    package func adopt(_ other: NSPersistentStoreRequest) {
        affectedStores = other.affectedStores
    }
}
