import CoreDataEssentials
import StrataPredicates

/// Deletes many rows in the store, without making objects.
///
/// See <doc:Batches>.
///
/// ```swift
/// let free = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
/// free.predicate = NSPredicate(format: "price < %d", 10)
/// try context.execute(NSBatchDeleteRequest(fetchRequest: free))
/// ```
///
/// Delete rules are applied in the store, in the same transaction: nullify, cascade to any depth, and deny, which
/// refuses the whole request. There is no other validation, and no hook is called. Objects that contexts have loaded
/// stay until the result is merged. Contexts that follow changes
/// (``NSManagedObjectContext/automaticallyMergesChangesFromParent``) merge it automatically.
///
/// A request is not thread-safe, but is not tied to a queue.
open class NSBatchDeleteRequest: NSPersistentStoreRequest {
    private var request: NSFetchRequest<NSFetchRequestResult>
    /// The reason why the IDs of the request cannot be deleted together; `nil` if they can.
    private(set) var misuse: String?

    /// Creates a request that deletes the objects that a fetch would find in the store.
    ///
    /// ```swift
    /// let old = NSFetchRequest<any NSFetchRequestResult>(entityName: "Venue")
    /// old.predicate = NSPredicate(format: "openedAt < %@", Date(timeIntervalSince1970: 0) as NSDate)
    /// try context.execute(NSBatchDeleteRequest(fetchRequest: old))
    /// ```
    ///
    /// - Parameter fetch: The fetch request, which is copied. Its predicate, sort descriptors, limit, offset and
    ///   sub-entities are used; limit and offset count over all affected stores together.
    public init(fetchRequest fetch: NSFetchRequest<NSFetchRequestResult>) {
        request = fetch.duplicate()
        super.init()
    }

    /// Creates a request like ``init(fetchRequest:)``, from a request of any result type.
    ///
    /// - Parameter fetch: The request, which is copied.
    public convenience init<ResultType>(fetchRequest fetch: NSFetchRequest<ResultType>) {
        let request = NSFetchRequest<NSFetchRequestResult>(specification: fetch.specification)
        request.affectedStores = fetch.affectedStores
        self.init(fetchRequest: request)
    }

    /// Creates a request that deletes objects by their IDs.
    ///
    /// ```swift
    /// try context.execute(NSBatchDeleteRequest(objectIDs: [venue.objectID]))
    /// ```
    ///
    /// - Parameter objects: IDs of saved objects of one entity hierarchy. Rows that no longer exist are no error.
    public convenience init(objectIDs objects: [NSManagedObjectID]) {
        let fetch = NSFetchRequest<NSFetchRequestResult>()
        fetch.predicate = NSPredicate(format: "SELF IN %@", objects)
        fetch.entity = objects.first?.entity.rootEntity
        self.init(fetchRequest: fetch)
        let roots = Set(objects.map(\.layout.rootNumber))
        if roots.count > 1 {
            let names = Set(objects.compactMap { $0.entity.rootEntity.name }).sorted().joined(separator: ", ")
            misuse = "The IDs are of several hierarchies of entities (\(names)); make a request for each."
        } else if let id = objects.first(where: { !$0.isOfPermanentObject }) {
            misuse = "\(id) is temporary: the object was never saved, so there is no row to delete."
        }
        isOfNothing = objects.isEmpty
    }

    /// Creates a request without an entity, which every store refuses.
    @available(*, deprecated, message: "Use init(fetchRequest:) or init(objectIDs:)")
    public required init() {
        request = NSFetchRequest<NSFetchRequestResult>()
        super.init()
    }

    /// Whether the request was made with an empty list of IDs.
    private(set) var isOfNothing = false

    /// Always ``NSPersistentStoreRequestType/batchDeleteRequestType``.
    open override var requestType: NSPersistentStoreRequestType { .batchDeleteRequestType }

    /// A copy of the fetch request for the objects to delete.
    open var fetchRequest: NSFetchRequest<NSFetchRequestResult> { request.duplicate() }

    /// The contents of the result.
    ///
    /// Default ``NSBatchDeleteRequestResultType/resultTypeStatusOnly``.
    ///
    /// ```swift
    /// let delete = NSBatchDeleteRequest(fetchRequest: request)
    /// delete.resultType = .resultTypeCount
    /// print((try context.execute(delete) as? NSBatchDeleteResult)?.result as? Int ?? 0)
    /// ```
    open var resultType: NSBatchDeleteRequestResultType = .resultTypeStatusOnly

    /// Returns a copy that can be changed.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: A request of the same class.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = super.copy(with: zone)
        (copy as? NSBatchDeleteRequest)?.copyOwnProperties(from: self)
        return copy
    }

    /// Copies the properties that this class declares.
    private func copyOwnProperties(from other: NSBatchDeleteRequest) {
        request = other.fetchRequest
        misuse = other.misuse
        isOfNothing = other.isOfNothing
        resultType = other.resultType
    }

    /// The stores that the fetch request names.
    var fetchStores: [NSPersistentStore]? { request.affectedStores }

    /// The specification of the rows to delete.
    var specification: FetchSpecification { request.specification }

    /// The request for some of its rows in one store, if they still match.
    func part(_ objects: [NSManagedObjectID], of store: NSPersistentStore) -> NSBatchDeleteRequest {
        var specification = request.specification
        let these = NSPredicate(format: "SELF IN %@", objects)
        specification.predicate = NSCompoundPredicate(
            andPredicateWithSubpredicates: [these] + [specification.predicate].compactMap { $0 }
        )
        specification.sortDescriptors = nil
        (specification.fetchLimit, specification.fetchOffset) = (0, 0)
        let part = NSBatchDeleteRequest(
            fetchRequest: NSFetchRequest<NSFetchRequestResult>(specification: specification)
        )
        part.resultType = resultType
        part.affectedStores = [store]
        part.isOfNothing = objects.isEmpty
        return part
    }

    /// The fetch request for the objects to delete.
    open override var description: String { "NSBatchDeleteRequest (\(request))" }
}

/// The contents of the result of a batch delete.
///
/// ```swift
/// let delete = NSBatchDeleteRequest(objectIDs: [id])
/// delete.resultType = .resultTypeObjectIDs
/// let deleted = (try context.execute(delete) as? NSBatchDeleteResult)?.result as? [NSManagedObjectID]
/// ```
public enum NSBatchDeleteRequestResultType: UInt, Sendable {
    /// Whether it succeeded.
    case resultTypeStatusOnly = 0
    /// The IDs of all deleted rows, including those that delete rules have added.
    case resultTypeObjectIDs = 1
    /// The number of deleted rows, including those that delete rules have added.
    case resultTypeCount = 2
}
