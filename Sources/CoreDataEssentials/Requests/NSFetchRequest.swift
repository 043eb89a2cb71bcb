import StrataPredicates
import StrataRows

/// A query for objects of an entity, with the order and the form of the results.
///
/// `ResultType` is the type of the results: a class of managed objects, `NSManagedObjectID`, `NSDictionary`, or
/// `NSNumber`. It is not constrained, because `NSFetchRequest<NSFetchRequestResult>` must be possible too.
///
/// A request is not thread-safe, but is not tied to a queue. A request that a model owns (a template, or the request of
/// a fetched property) cannot be changed once the model is in use: `copy()` it. If a request makes no sense for the
/// model, then it throws 134070 when it is executed, before anything is read.
///
/// See <doc:Fetching>.
///
/// ```swift
/// let request = NSFetchRequest<Venue>(entityName: "Venue")
/// request.predicate = NSPredicate(format: "city.name == %@ AND price < %d", "Porto", 20)
/// request.sortDescriptors = [NSSortDescriptor(key: "price", ascending: true)]
/// request.fetchLimit = 50
/// let venues = try context.fetch(request)
/// ```
open class NSFetchRequest<ResultType>: NSPersistentStoreRequest, AnyFetchRequest {
    /// The contents of the request.
    package private(set) var specification = FetchSpecification()

    private var isFrozen = false

    /// Creates a request without an entity.
    ///
    /// Set ``entity`` before you execute it.
    public required init() {
        super.init()
    }

    /// Creates a request for the entity with a name, which is looked up when the request is executed.
    ///
    /// ```swift
    /// let request = NSFetchRequest<Venue>(entityName: "Venue")
    /// ```
    ///
    /// - Parameter entityName: The name of an entity of the context's model.
    public convenience init(entityName: String) {
        self.init()
        specification.entityName = entityName
    }

    /// Creates a request for the entity of a class of managed objects, which is looked up when the request is executed.
    ///
    /// `fetchRequest()` of a managed object class uses it, so that several models may have entities of one class.
    ///
    /// - Parameter managedClass: A class that one entity of the context's model has.
    public convenience init(managedClass: AnyClass) {
        self.init()
        specification.managedClass = managedClass
    }

    /// Creates a request with the contents of `specification`.
    package convenience init(specification: FetchSpecification) {
        self.init()
        self.specification = specification
    }

    /// Always ``NSPersistentStoreRequestType/fetchRequestType``.
    open override var requestType: NSPersistentStoreRequestType { .fetchRequestType }

    /// A copy of the request with another type of results.
    ///
    /// Use it where code for Apple's platforms casts (`request as? NSFetchRequest<Venue>`), because Swift's generic
    /// classes do not allow such a cast:
    ///
    /// ```swift
    /// let request: NSFetchRequest<any NSFetchRequestResult> = Venue.fetchRequest()
    /// let venues = try context.fetch(request.typed(as: Venue.self))
    /// ```
    ///
    /// - Parameter type: A class of managed objects, `NSManagedObjectID`, a dictionary, or `NSNumber` for a count. The
    ///   copy has the matching ``resultType``. For any other type the result type stays the same.
    /// - Returns: The copy, which can be changed.
    public final func typed<Result>(as type: Result.Type) -> NSFetchRequest<Result> {
        let request = NSFetchRequest<Result>()
        request.copyProperties(from: self)
        if let fitting = NSFetchRequestResultType(of: type) { request.resultType = fitting }
        return request
    }

    // MARK: - The objects to find

    /// The entity to fetch.
    ///
    /// `nil` if the request was made with a name or a class, and has not been executed.
    ///
    /// ```swift
    /// let request = NSFetchRequest<NSManagedObject>()
    /// request.entity = NSEntityDescription.entity(forEntityName: "City", in: context)
    /// print(try context.count(for: request))
    /// ```
    open var entity: NSEntityDescription? {
        get { specification.entity }
        set { change { $0.entity = newValue } }
    }

    /// The name of the entity to fetch.
    ///
    /// If the request was made with a class only, then this is the name of the entity that the models in use have for
    /// the class. If there is no such model, then it is the name of the class.
    open var entityName: String? {
        if let name = specification.entity?.name ?? specification.entityName { return name }
        return (specification.managedClass as? NSManagedObject.Type)?.entity().name
    }

    /// The condition that the objects must fulfil.
    ///
    /// Default `nil`, for all objects. An AND or OR without predicates is no condition: the property becomes `nil`.
    ///
    /// ```swift
    /// request.predicate = NSPredicate(format: "city.name == %@ AND price < %d", "Porto", 20)
    /// ```
    open var predicate: NSPredicate? {
        get { specification.predicate }
        set { change { $0.predicate = newValue.flatMap { $0.isEmptyCompound ? nil : $0 } } }
    }

    /// The order of the results.
    ///
    /// Default `nil`, for any order.
    ///
    /// ```swift
    /// request.sortDescriptors = [NSSortDescriptor(key: "price", ascending: false), NSSortDescriptor(keyPath: \Venue.name, ascending: true)]
    /// ```
    open var sortDescriptors: [NSSortDescriptor]? {
        get { specification.sortDescriptors }
        set { change { $0.sortDescriptors = newValue } }
    }

    /// The maximum number of results.
    ///
    /// Default 0, for no limit. A negative limit makes the fetch throw 134070.
    ///
    /// ```swift
    /// request.fetchLimit = 20
    /// request.fetchOffset = 40  // the third page
    /// ```
    open var fetchLimit: Int {
        get { specification.fetchLimit }
        set { change { $0.fetchLimit = newValue } }
    }

    /// The number of results to skip at the start.
    ///
    /// Default 0. A negative offset makes the fetch throw 134070.
    ///
    /// ```swift
    /// request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
    /// (request.fetchOffset, request.fetchLimit) = (40, 20)  // the third page
    /// ```
    open var fetchOffset: Int {
        get { specification.fetchOffset }
        set { change { $0.fetchOffset = newValue } }
    }

    /// Whether objects of sub-entities are found too.
    ///
    /// Default `true`.
    ///
    /// ```swift
    /// request.includesSubentities = false  // only venues, without their sub-entities
    /// ```
    open var includesSubentities: Bool {
        get { specification.includesSubentities }
        set { change { $0.includesSubentities = newValue } }
    }

    /// Whether unsaved changes of the context are included.
    ///
    /// Default `true`. It has no effect on dictionary results.
    ///
    /// ```swift
    /// request.includesPendingChanges = false  // only stored objects, without the context's changes
    /// ```
    open var includesPendingChanges: Bool {
        get { specification.includesPendingChanges }
        set { change { $0.includesPendingChanges = newValue } }
    }

    /// The processor time, in seconds, that each store may take to find the results.
    ///
    /// An addition to Apple's API. A fetch that would take longer throws 134070. Default `nil`: the limit is 10 seconds
    /// for a predicate that can run without end even with a short text, and there is no limit for others. Such a
    /// predicate has collections inside of collections (`ANY a.b.c`, where several are to-many, or nested `SUBQUERY`s),
    /// a regular expression, or more than a thousand comparisons (`ANY {…} IN {…}` makes as many as the product of
    /// both). `.infinity` removes the limit for all predicates. Values that are computed from rows, and
    /// `havingPredicate`, are treated like the predicate.
    open var evaluationTimeLimit: TimeInterval? {
        get { specification.evaluationTimeLimit }
        set { change { $0.evaluationTimeLimit = newValue } }
    }

    /// The lock that the fetch takes on the rows that it finds; see `rowLock`.
    package final var rowLocking: RowLocking? {
        get { specification.rowLocking }
        set { change { $0.rowLocking = newValue } }
    }

    // MARK: - The form of the results

    /// The form of the results.
    ///
    /// Default ``NSFetchRequestResultType/managedObjectResultType``.
    ///
    /// ```swift
    /// let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
    /// request.resultType = .dictionaryResultType
    /// request.propertiesToFetch = ["name", "city.name"]
    /// print(try context.fetch(request))
    /// ```
    open var resultType: NSFetchRequestResultType {
        get { specification.resultType }
        set { change { $0.resultType = newValue } }
    }

    /// The number of objects to read at a time.
    ///
    /// Default 0, for all at once. Otherwise the fetch finds only IDs. When the first object of a batch is used, one
    /// query reads the rows of the whole batch, together with the objects that the request prefetches:
    ///
    /// - ``NSManagedObjectContext/fetch(_:)`` returns an array, which has all objects from the start, as faults. It
    ///   keeps the values of the latest eight batches, or of 4,096 objects if batches are small. Objects of earlier
    ///   batches become faults again, unless other code holds them or they have changes.
    /// - ``NSManagedObjectContext/batchedResults(for:)`` returns a collection that makes objects as they are used.
    ///
    /// An array is read at once if batches would have no advantage: if the limit is no larger than a batch, or if the
    /// objects come from several stores or are to be refreshed. A negative size makes the fetch throw 134070.
    ///
    /// ```swift
    /// request.fetchBatchSize = 100  // one batch in memory, for `batchedResults(for:)`
    /// ```
    open var fetchBatchSize: Int {
        get { specification.fetchBatchSize }
        set { change { $0.fetchBatchSize = newValue } }
    }

    /// Whether the rows are read, and not only their IDs.
    ///
    /// Default `true`. With `false` the objects are faults; each one reads its row, from the row cache or else from the
    /// store, when it is realised.
    ///
    /// ```swift
    /// request.includesPropertyValues = false  // sufficient for deleting objects
    /// for venue in try context.fetch(request) { context.delete(venue) }
    /// ```
    open var includesPropertyValues: Bool {
        get { specification.includesPropertyValues }
        set { change { $0.includesPropertyValues = newValue } }
    }

    /// Whether objects are returned as faults, which are filled when a property is first read.
    ///
    /// Default `true`. Their rows are still read, so that filling them does not go to the store. With `false` they are
    /// realised at once; objects of a batch are realised when the batch is read.
    ///
    /// ```swift
    /// request.returnsObjectsAsFaults = false  // for objects whose values are all read soon
    /// ```
    open var returnsObjectsAsFaults: Bool {
        get { specification.returnsObjectsAsFaults }
        set { change { $0.returnsObjectsAsFaults = newValue } }
    }

    /// Whether objects that the context already has are updated from the store.
    ///
    /// Default `false`. Unsaved changes are kept. With `true` rows are read whatever ``includesPropertyValues`` is.
    open var shouldRefreshRefetchedObjects: Bool {
        get { specification.shouldRefreshRefetchedObjects }
        set { change { $0.shouldRefreshRefetchedObjects = newValue } }
    }

    /// The relationships, as key paths, whose objects are read together with the results.
    ///
    /// Default empty. Each relationship on a path, to-one or to-many, takes one query, whatever the number of objects;
    /// it takes none if the rows are known already. Relationships and objects that are loaded or changed stay as they
    /// are. If a path contains anything other than stored relationships, then the fetch throws 134070.
    ///
    /// ```swift
    /// request.relationshipKeyPathsForPrefetching = ["city"]  // one query instead of one for each venue
    /// for venue in try context.fetch(request) { print(venue.city?.name ?? "") }
    /// ```
    open var relationshipKeyPathsForPrefetching: [String]? {
        get { specification.relationshipKeyPathsForPrefetching }
        set { change { $0.relationshipKeyPathsForPrefetching = newValue } }
    }

    // MARK: - Dictionary results

    /// The properties to fetch, as names or property descriptions.
    ///
    /// Default `nil`, for all attributes. A fetch of objects returns faults that have only the named attributes and
    /// to-one relationships; reading another property, or changing one, fills the object. Complete rows are read if
    /// they are needed anyway: for objects that are no faults, with unsaved changes, in batches, and from several
    /// stores. If a name is no stored property, then the fetch throws 134070.
    ///
    /// ```swift
    /// request.propertiesToFetch = ["name"]
    /// for venue in try context.fetch(request) { print(venue.name) }
    /// ```
    open var propertiesToFetch: [Any]? {
        get { specification.propertiesToFetch }
        set { change { $0.propertiesToFetch = newValue } }
    }

    /// Whether equal dictionaries are returned only once.
    ///
    /// Default `false`.
    ///
    /// ```swift
    /// let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
    /// request.resultType = .dictionaryResultType
    /// request.propertiesToFetch = ["city.name"]
    /// request.returnsDistinctResults = true
    /// print(try context.fetch(request).count)
    /// ```
    open var returnsDistinctResults: Bool {
        get { specification.returnsDistinctResults }
        set { change { $0.returnsDistinctResults = newValue } }
    }

    /// The properties by which to group, as names or property descriptions.
    ///
    /// Default `nil`.
    ///
    /// ```swift
    /// let count = NSExpressionDescription()
    /// (count.name, count.resultType, count.expression) = ("count", .integer64, NSExpression(format: "count:(price)"))
    /// let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
    /// request.resultType = .dictionaryResultType
    /// request.propertiesToFetch = ["city.name", count]
    /// request.propertiesToGroupBy = ["city.name"]
    /// print(try context.fetch(request))
    /// ```
    open var propertiesToGroupBy: [Any]? {
        get { specification.propertiesToGroupBy }
        set { change { $0.propertiesToGroupBy = newValue } }
    }

    /// The condition that a group must fulfil.
    ///
    /// Default `nil`. It needs ``propertiesToGroupBy``.
    ///
    /// ```swift
    /// let count = NSExpressionDescription()
    /// (count.name, count.resultType, count.expression) = ("count", .integer64, NSExpression(format: "count:(price)"))
    /// let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
    /// request.resultType = .dictionaryResultType
    /// request.propertiesToFetch = ["city.name", count]
    /// request.propertiesToGroupBy = ["city.name"]
    /// request.havingPredicate = NSPredicate(format: "$count > 1")
    /// print(try context.fetch(request))
    /// ```
    open var havingPredicate: NSPredicate? {
        get { specification.havingPredicate }
        set { change { $0.havingPredicate = newValue } }
    }

    // MARK: - Copying and freezing

    /// Copies all properties of `other`.
    package override func copyProperties(from other: NSPersistentStoreRequest) {
        super.copyProperties(from: other)
        guard let other = other as? any AnyFetchRequest else { return }
        specification = other.specification
    }

    /// A mutable copy with the same type of results.
    package func duplicate() -> NSFetchRequest<ResultType> {
        let copy = Swift.type(of: self).init()
        copy.copyProperties(from: self)
        return copy
    }

    /// Makes the request immutable; its model calls this when it is frozen.
    func freeze() {
        isFrozen = true
    }

    private func change(_ body: (inout FetchSpecification) -> Void, member: StaticString = #function) {
        guard !isFrozen else {
            fatalError(
                "\(member) was set on a fetch request that belongs to a model in use; change a copy (`request.copy()`)."
            )
        }
        body(&specification)
    }

    /// The request's entity and predicate.
    open override var description: String {
        let name = entityName ?? specification.managedClass.map { "\($0)" } ?? "no entity"
        return "NSFetchRequest<\(ResultType.self)> (\(name)\(predicate.map { " where \($0)" } ?? ""))"
    }
}

extension NSPredicate {
    /// Whether the predicate is a compound predicate without members.
    fileprivate var isEmptyCompound: Bool {
        guard let compound = self as? NSCompoundPredicate else { return false }
        return compound.compoundPredicateType != .not && compound.subpredicates.isEmpty
    }
}
