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
/// Delete rules are applied in the store, in the same transaction: nullify, cascade to any depth, and deny, which refuses the
/// whole request. Nothing else is validated, and no hook is called. Objects that contexts have loaded stay until the result is
/// merged, which contexts that follow (``NSManagedObjectContext/automaticallyMergesChangesFromParent``) do by
/// themselves.
///
/// A request belongs to whoever made it; nothing in it is tied to a queue.
open class NSBatchDeleteRequest: NSPersistentStoreRequest {
    private var request: NSFetchRequest<NSFetchRequestResult>
    /// Why the IDs that the request was made with cannot be deleted together; `nil` if they can.
    private(set) var misuse: String?

    /// Creates a request that deletes what a fetch would find in the store.
    ///
    /// ```swift
    /// let old = NSFetchRequest<any NSFetchRequestResult>(entityName: "Venue")
    /// old.predicate = NSPredicate(format: "openedAt < %@", Date(timeIntervalSince1970: 0) as NSDate)
    /// try context.execute(NSBatchDeleteRequest(fetchRequest: old))
    /// ```
    ///
    /// - Parameter fetch: Its predicate, sort descriptors, limit, offset and sub-entities count, limit and offset over all
    ///   affected stores together. It is copied.
    public init(fetchRequest fetch: NSFetchRequest<NSFetchRequestResult>) {
        request = fetch.duplicate()
        super.init()
    }

    /// As ``init(fetchRequest:)``, for a request of any result type.
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
    /// - Parameter objects: IDs of saved objects of one hierarchy of entities. Rows that are gone already are no error.
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

    /// Creates a request for nothing, which no store takes.
    @available(*, deprecated, message: "Use init(fetchRequest:) or init(objectIDs:)")
    public required init() {
        request = NSFetchRequest<NSFetchRequestResult>()
        super.init()
    }

    /// Whether the request was made with an empty list of IDs.
    private(set) var isOfNothing = false

    /// Always ``NSPersistentStoreRequestType/batchDeleteRequestType``.
    open override var requestType: NSPersistentStoreRequestType { .batchDeleteRequestType }

    /// What is deleted, as a copy.
    open var fetchRequest: NSFetchRequest<NSFetchRequestResult> { request.duplicate() }

    /// What the result has.
    ///
    /// Default ``NSBatchDeleteRequestResultType/resultTypeStatusOnly``.
    ///
    /// ```swift
    /// let delete = NSBatchDeleteRequest(fetchRequest: request)
    /// delete.resultType = .resultTypeCount
    /// print((try context.execute(delete) as? NSBatchDeleteResult)?.result as? Int ?? 0)
    /// ```
    open var resultType: NSBatchDeleteRequestResultType = .resultTypeStatusOnly

    /// Takes over all that describes `other`.
    package override func adopt(_ other: NSPersistentStoreRequest) {
        super.adopt(other)
        guard let other = other as? NSBatchDeleteRequest else { return }
        request = other.fetchRequest
        misuse = other.misuse
        isOfNothing = other.isOfNothing
        resultType = other.resultType
    }

    /// The stores that the fetch request names.
    var fetchStores: [NSPersistentStore]? { request.affectedStores }

    /// Which rows are meant.
    var specification: FetchSpecification { request.specification }

    /// The request for some of its rows in one store, as far as they still match.
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

    /// What is deleted.
    open override var description: String { "NSBatchDeleteRequest (\(request))" }
}

/// What the result of a batch delete has.
///
/// ```swift
/// let delete = NSBatchDeleteRequest(objectIDs: [id])
/// delete.resultType = .resultTypeObjectIDs
/// let deleted = (try context.execute(delete) as? NSBatchDeleteResult)?.result as? [NSManagedObjectID]
/// ```
public enum NSBatchDeleteRequestResultType: UInt, Sendable {
    /// Whether it succeeded.
    case resultTypeStatusOnly = 0
    /// The IDs of all rows that were deleted, those that delete rules have added included.
    case resultTypeObjectIDs = 1
    /// How many rows were deleted, as for the IDs.
    case resultTypeCount = 2
}
