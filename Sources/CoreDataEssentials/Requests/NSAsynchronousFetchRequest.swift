import StrataPredicates

/// A fetch that its caller does not wait for.
///
/// Pass it to ``NSManagedObjectContext/execute(_:)``.
///
/// See <doc:AsynchronousFetches>.
///
/// ```swift
/// let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { result in
///     for venue in result.finalResult ?? [] { print(venue.name) }
/// }
/// try context.execute(fetch)
/// ```
///
/// A request is plain data and not thread-safe; it may be executed any number of times. It can fetch objects,
/// dictionaries, IDs and counts.
open class NSAsynchronousFetchRequest<ResultType>: NSPersistentStoreRequest {
    /// The fetch request, the same object that was passed to the initialiser.
    ///
    /// Its contents at the time of the execution are used; later changes are ignored.
    public private(set) var fetchRequest: NSFetchRequest<ResultType>

    /// Called once for each execution, on the context's queue and inside its scope, when the fetch has ended.
    ///
    /// It is never called inside `execute`. It ends an event, as a block of `perform` does.
    public private(set) var completionBlock: (@Sendable (NSAsynchronousFetchResult<ResultType>) -> Void)?

    /// The expected number of results, for the total of the progress.
    ///
    /// Default 0: the store counts them, in the transaction in which it reads them. It has no effect if no progress is
    /// requested.
    open var estimatedResultCount = 0

    /// Creates a request.
    ///
    /// ```swift
    /// let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { result in print(result.finalResult?.count ?? 0) }
    /// try context.execute(fetch)
    /// ```
    ///
    /// - Parameters:
    ///   - request: The fetch request.
    ///   - completionBlock: A closure that receives the result; see ``completionBlock``. Default: none.
    public init(
        fetchRequest request: NSFetchRequest<ResultType>,
        completionBlock: (@Sendable (NSAsynchronousFetchResult<ResultType>) -> Void)? = nil
    ) {
        fetchRequest = request
        self.completionBlock = completionBlock
        super.init()
    }

    /// Creates a request whose fetch request has no entity, as the target of a copy.
    public required init() {
        fetchRequest = NSFetchRequest()
        super.init()
    }

    /// Always ``NSPersistentStoreRequestType/fetchRequestType``.
    open override var requestType: NSPersistentStoreRequestType { .fetchRequestType }

    /// Copies all properties of `other`, including its fetch request.
    package override func copyProperties(from other: NSPersistentStoreRequest) {
        super.copyProperties(from: other)
        guard let other = other as? NSAsynchronousFetchRequest else { return }
        fetchRequest = other.fetchRequest.duplicate()
        completionBlock = other.completionBlock
        estimatedResultCount = other.estimatedResultCount
    }
}

/// The type of the completion block of an asynchronous fetch request with any results.
///
/// ```swift
/// let log: NSPersistentStoreAsynchronousFetchResultCompletionBlock = { print($0.operationError ?? "fetched") }
/// ```
public typealias NSPersistentStoreAsynchronousFetchResultCompletionBlock =
    @Sendable (NSAsynchronousFetchResult<any NSFetchRequestResult>) -> Void
