import StrataPredicates

/// A fetch that does not keep its caller waiting: hand it to ``NSManagedObjectContext/execute(_:)``.
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
/// A request is plain data and belongs to whoever made it; it may be executed any number of times. Dictionaries, IDs
/// and counts are fetched as well as objects.
open class NSAsynchronousFetchRequest<ResultType>: NSPersistentStoreRequest {
    /// What to fetch, the very object that the request was made with.
    ///
    /// What it says when the request is executed counts, and not what is changed later.
    public private(set) var fetchRequest: NSFetchRequest<ResultType>

    /// Called once for each execution, on the context's queue and inside its scope, when the fetch has ended.
    ///
    /// Never called inside `execute`. It ends an event, as a block of `perform` does.
    public private(set) var completionBlock: (@Sendable (NSAsynchronousFetchResult<ResultType>) -> Void)?

    /// How many results to expect, for the total of the progress.
    ///
    /// Default 0: the store counts them, in the transaction in which it reads them. Without effect if no progress is
    /// asked for.
    open var estimatedResultCount = 0

    /// Creates a request.
    ///
    /// ```swift
    /// let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { result in print(result.finalResult?.count ?? 0) }
    /// try context.execute(fetch)
    /// ```
    ///
    /// - Parameters:
    ///   - request: What to fetch.
    ///   - completionBlock: What to do with the result; see ``completionBlock``. Default: nothing.
    public init(
        fetchRequest request: NSFetchRequest<ResultType>,
        completionBlock: (@Sendable (NSAsynchronousFetchResult<ResultType>) -> Void)? = nil
    ) {
        fetchRequest = request
        self.completionBlock = completionBlock
        super.init()
    }

    /// Creates a request whose fetch request has no entity, to be copied into.
    public required init() {
        fetchRequest = NSFetchRequest()
        super.init()
    }

    /// Always ``NSPersistentStoreRequestType/fetchRequestType``.
    open override var requestType: NSPersistentStoreRequestType { .fetchRequestType }

    /// Takes over all that describes `other`, with a fetch request of its own.
    package override func adopt(_ other: NSPersistentStoreRequest) {
        super.adopt(other)
        guard let other = other as? NSAsynchronousFetchRequest else { return }
        fetchRequest = other.fetchRequest.duplicate()
        completionBlock = other.completionBlock
        estimatedResultCount = other.estimatedResultCount
    }
}

/// What an asynchronous fetch request calls in the end, whatever it fetches.
///
/// ```swift
/// let log: NSPersistentStoreAsynchronousFetchResultCompletionBlock = { print($0.operationError ?? "fetched") }
/// ```
public typealias NSPersistentStoreAsynchronousFetchResultCompletionBlock =
    @Sendable (NSAsynchronousFetchResult<any NSFetchRequestResult>) -> Void
