import StrataPredicates

/// A query: which objects of an entity to find, in what order, and in what form to give them.
///
/// `ResultType` is what the fetch gives: a class of managed objects, `NSManagedObjectID`, `NSDictionary`, or `NSNumber`. It is
/// not constrained, because `NSFetchRequest<NSFetchRequestResult>` must be possible too.
///
/// A request belongs to whoever made it; nothing in it is tied to a queue. A request that a model owns (a template, or that
/// of a fetched property) cannot be changed once the model is in use: `copy()` it.
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
    /// All that the request says.
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

    /// Creates a request that says what `specification` says.
    package convenience init(specification: FetchSpecification) {
        self.init()
        self.specification = specification
    }

    /// Always ``NSPersistentStoreRequestType/fetchRequestType``.
    open override var requestType: NSPersistentStoreRequestType { .fetchRequestType }

    /// A copy of the request that gives its results as another type.
    ///
    /// Where code for Apple's platforms casts (`request as? NSFetchRequest<Venue>`), which generic classes of Swift do not allow:
    ///
    /// ```swift
    /// let request: NSFetchRequest<any NSFetchRequestResult> = Venue.fetchRequest()
    /// let venues = try context.fetch(request.typed(as: Venue.self))
    /// ```
    ///
    /// - Parameter type: A class of managed objects, `NSManagedObjectID`, a dictionary, or `NSNumber` for a count: the copy's
    ///   ``resultType`` is the one that fits. Any other type leaves it as it is.
    /// - Returns: The copy, which can be changed.
    public final func typed<Result>(as type: Result.Type) -> NSFetchRequest<Result> {
        let request = NSFetchRequest<Result>()
        request.adopt(self)
        if let fitting = NSFetchRequestResultType(of: type) { request.resultType = fitting }
        return request
    }

    // MARK: - What to find

    /// The entity to fetch.
    ///
    /// `nil` while a request that was made with a name or a class has not been executed.
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
    /// Of a request that was made with a class only, the name of the entity that the models in use have for it; without such a
    /// model, the name of the class.
    open var entityName: String? {
        if let name = specification.entity?.name ?? specification.entityName { return name }
        return (specification.managedClass as? NSManagedObject.Type)?.entity().name
    }

    /// What the objects must fulfil.
    ///
    /// Default `nil`, for all objects. An AND or OR of no predicates is none: the property becomes `nil`.
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

    /// The most results to give.
    ///
    /// Default 0, for no limit. A negative one makes the fetch throw 134070.
    ///
    /// ```swift
    /// request.fetchLimit = 20
    /// request.fetchOffset = 40  // the third page
    /// ```
    open var fetchLimit: Int {
        get { specification.fetchLimit }
        set { change { $0.fetchLimit = newValue } }
    }

    /// How many results to leave out at the start.
    ///
    /// Default 0. A negative one makes the fetch throw 134070.
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
    /// request.includesSubentities = false  // venues, and no special kinds of them
    /// ```
    open var includesSubentities: Bool {
        get { specification.includesSubentities }
        set { change { $0.includesSubentities = newValue } }
    }

    /// Whether unsaved changes of the context count.
    ///
    /// Default `true`. Without effect on dictionary results.
    ///
    /// ```swift
    /// request.includesPendingChanges = false  // what is stored, whatever the context has changed
    /// ```
    open var includesPendingChanges: Bool {
        get { specification.includesPendingChanges }
        set { change { $0.includesPendingChanges = newValue } }
    }

    /// The processor time, in seconds, that each store may take to find the results.
    ///
    /// Ours. A fetch that would take longer throws 134070. Default `nil`: 10 seconds for a predicate with collections inside of
    /// collections (`ANY a.b.c`, where several are to-many, or nested `SUBQUERY`s), with a regular expression, or with more than
    /// a thousand comparisons (`ANY {…} IN {…}` makes as many as the product of both), since a short text can make these
    /// run without end, and no limit for others. `.infinity` is no limit for any. What is computed of rows, and
    /// `havingPredicate`, count like the predicate.
    open var evaluationTimeLimit: TimeInterval? {
        get { specification.evaluationTimeLimit }
        set { change { $0.evaluationTimeLimit = newValue } }
    }

    // MARK: - In what form

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

    /// How many objects to read at a time.
    ///
    /// Default 0, for all at once. Otherwise the fetch finds identities only, and the rows of a whole batch come with one
    /// query, and with what the request prefetches, when the first of its objects is touched:
    ///
    /// - ``NSManagedObjectContext/fetch(_:)`` gives an array, which has all objects from the start, as faults. Objects of
    ///   batches that were passed by become faults again, unless other code holds them or they have changes.
    /// - ``NSManagedObjectContext/batchedResults(for:)`` gives a collection that makes objects as they are used.
    ///
    /// An array is read at once where batches would save nothing: if the limit is no larger than a batch, if the objects
    /// come from several stores, or are to be refreshed. A negative size makes the fetch throw 134070.
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
    /// Default `true`. With `false` the objects are faults each of which goes to the row cache, then to the store, when it is
    /// realised.
    ///
    /// ```swift
    /// request.includesPropertyValues = false  // enough to delete objects
    /// for venue in try context.fetch(request) { context.delete(venue) }
    /// ```
    open var includesPropertyValues: Bool {
        get { specification.includesPropertyValues }
        set { change { $0.includesPropertyValues = newValue } }
    }

    /// Whether objects come as faults, to be filled when a property is first read.
    ///
    /// Default `true`. Their rows are read all the same, so that filling them does not go to the store. With `false` they are
    /// realised at once; those of a batch, when the batch is read.
    ///
    /// ```swift
    /// request.returnsObjectsAsFaults = false  // for objects whose values are all read soon
    /// ```
    open var returnsObjectsAsFaults: Bool {
        get { specification.returnsObjectsAsFaults }
        set { change { $0.returnsObjectsAsFaults = newValue } }
    }

    /// Whether objects that the context has already are brought up to date with the store.
    ///
    /// Default `false`. Unsaved changes stay on top. With `true` rows are read whatever ``includesPropertyValues`` says.
    open var shouldRefreshRefetchedObjects: Bool {
        get { specification.shouldRefreshRefetchedObjects }
        set { change { $0.shouldRefreshRefetchedObjects = newValue } }
    }

    /// The relationships, as key paths, whose objects are read along with the results.
    ///
    /// Default empty. Each relationship on a path takes one query, to-one or to-many, whatever the number of objects; none for
    /// what is known already. Relationships and objects that are loaded or changed stay as they are. A path that leads
    /// through something else than stored relationships makes the fetch throw 134070.
    ///
    /// ```swift
    /// request.relationshipKeyPathsForPrefetching = ["city"]  // one query, in place of one for each venue
    /// for venue in try context.fetch(request) { print(venue.city?.name ?? "") }
    /// ```
    open var relationshipKeyPathsForPrefetching: [String]? {
        get { specification.relationshipKeyPathsForPrefetching }
        set { change { $0.relationshipKeyPathsForPrefetching = newValue } }
    }

    // MARK: - Dictionary results

    /// What to fetch, as names or property descriptions.
    ///
    /// Default `nil`, for all attributes. A fetch of objects gives faults that know the attributes and to-one relationships that
    /// are named here; to read another property, or to change one, fills the object. Whole rows are read where they are
    /// needed anyhow: for objects that are no faults, with unsaved changes, in batches, and from several stores. What is no
    /// stored property makes the fetch throw 134070.
    ///
    /// ```swift
    /// request.propertiesToFetch = ["name"]
    /// for venue in try context.fetch(request) { print(venue.name) }
    /// ```
    open var propertiesToFetch: [Any]? {
        get { specification.propertiesToFetch }
        set { change { $0.propertiesToFetch = newValue } }
    }

    /// Whether equal dictionaries are given once.
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

    /// What to group by, as names or property descriptions.
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

    /// What a group must fulfil.
    ///
    /// Default `nil`. Only with ``propertiesToGroupBy``.
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

    /// Takes over all that describes `other`.
    package override func adopt(_ other: NSPersistentStoreRequest) {
        super.adopt(other)
        guard let other = other as? any AnyFetchRequest else { return }
        specification = other.specification
    }

    /// A mutable copy, typed.
    package func duplicate() -> NSFetchRequest<ResultType> {
        let copy = Swift.type(of: self).init()
        copy.adopt(self)
        return copy
    }

    /// Makes the request immutable; its model does so when it is frozen.
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
    /// Whether the predicate joins no others.
    fileprivate var isEmptyCompound: Bool {
        guard let compound = self as? NSCompoundPredicate else { return false }
        return compound.compoundPredicateType != .not && compound.subpredicates.isEmpty
    }
}
