import Foundation
import StrataRows

/// The result of a request that continues after `execute(_:)` has returned.
///
/// Belongs to the context that executes the request; ``cancel()`` alone may be called on any thread.
///
/// ```swift
/// let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { print($0.operationError ?? "done") }
/// let result = try context.execute(fetch) as? NSPersistentStoreAsynchronousResult
/// result?.cancel()
/// ```
open class NSPersistentStoreAsynchronousResult: NSPersistentStoreResult {
    /// The context that executes the request.
    public let managedObjectContext: NSManagedObjectContext

    /// The error of the request, if it failed.
    ///
    /// `nil` before the end, after a success, and after a cancellation. Read it inside the context's scope.
    public fileprivate(set) var operationError: (any Error)?

    /// The progress of the request.
    ///
    /// `nil` unless `Progress.current()` was set when the request was executed; then it is a child of that. It counts
    /// rows. The total is the request's estimate; without one it is indeterminate until the store has counted.
    /// Cancelling this progress, or one that it belongs to, cancels the request, as long as the completion block has
    /// not been called. It is changed inside the context's scope only, since `Progress` on Linux is not safe to use on
    /// several threads.
    public let progress: Progress?

    init(_ context: NSManagedObjectContext, _ progress: Progress?) {
        managedObjectContext = context
        self.progress = progress
    }

    /// Stops the request, if it has not ended.
    ///
    /// The completion block is still called, later and on the context's queue, with an empty result and no error, even
    /// if the store has answered already. Any thread may call this method. After the block was called, the method does
    /// nothing.
    open func cancel() {}
}

/// The result of an asynchronous fetch.
///
/// The completion block gets the same object that `execute(_:)` returned.
///
/// ```swift
/// let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { result in
///     for venue in result.finalResult ?? [] { print(venue.name) }
/// }
/// try context.execute(fetch)
/// ```
open class NSAsynchronousFetchResult<ResultType>: NSPersistentStoreAsynchronousResult {
    /// The request that was executed.
    public let fetchRequest: NSAsynchronousFetchRequest<ResultType>

    /// The results, in order: objects of the executing context, or values of the type that the request asks for.
    ///
    /// `nil` before the end and after a failure; empty when the fetch was cancelled. Read it inside the context's
    /// scope.
    public private(set) var finalResult: [ResultType]?

    private let fetch: BackgroundFetch<ResultType>

    /// Starts a request; inside the context's scope.
    static func start(_ request: NSAsynchronousFetchRequest<ResultType>, in context: NSManagedObjectContext)
        -> NSAsynchronousFetchResult
    {
        let estimate = request.estimatedResultCount > 0 ? request.estimatedResultCount : nil
        let mirror = Progress.current() == nil ? nil : ProgressMirror(context, estimate)
        let control = FetchControl(estimate: estimate, report: mirror.map { $0.report })
        let ending = Ending()
        let asked = request.fetchRequest
        context.registerClass(ResultType.self, of: asked.specification)
        let stores = asked.affectedStores ?? request.affectedStores
        let fetch = BackgroundFetch<ResultType>(
            context: context,
            specification: asked.specification,
            stores: stores,
            control: control
        ) { ending.come($0) }
        let result = NSAsynchronousFetchResult(request: request, fetch: fetch, progress: mirror?.progress)
        ending.result = result
        mirror?.progress.cancellationHandler = { [weak fetch] in fetch?.cancel() }
        fetch.start()
        return result
    }

    private init(
        request: NSAsynchronousFetchRequest<ResultType>,
        fetch: BackgroundFetch<ResultType>,
        progress: Progress?
    ) {
        fetchRequest = request
        self.fetch = fetch
        super.init(fetch.context, progress)
    }

    /// Stops the fetch, if it has not ended, by interrupting the statement of SQLite or PostgreSQL.
    ///
    /// The completion block is still called, later and on the context's queue, with an empty ``finalResult`` and no
    /// error. Any thread may call this method. After the block was called, the method does nothing.
    open override func cancel() { fetch.cancel() }

    /// Whether the fetch, its progress or a progress above that was cancelled.
    private var isCancelled: Bool { fetch.cancellation.following(progress).isCancelled }

    /// Keeps the result alive until the fetch has ended, and stores the outcome in it.
    private final class Ending: @unchecked Sendable {
        // @unchecked Sendable: `result` is set before the fetch starts and taken inside the context's scope, once.
        var result: NSAsynchronousFetchResult?

        func come(_ outcome: BackgroundFetch<ResultType>.Outcome) {
            guard case .cancelled = outcome else { return end(outcome) }
            // Any thread may cancel, so the scope has to be entered first.
            guard let context = result?.managedObjectContext else { return }
            context.submitCall { self.end(.cancelled) }
        }

        private func end(_ outcome: BackgroundFetch<ResultType>.Outcome) {
            guard let result else { return }
            self.result = nil
            // A cancellation before the block is called makes the result empty, even if the store has answered.
            let outcome = result.isCancelled ? .cancelled : outcome
            switch outcome {
            case .found(let found): result.finalResult = found
            case .failed(let error): result.operationError = error
            case .cancelled: result.finalResult = []
            }
            if let progress = result.progress { ProgressMirror.end(progress, outcome.isCancelled) }
            result.fetchRequest.completionBlock?(result)
        }
    }
}

extension BackgroundFetch.Outcome {
    fileprivate var isCancelled: Bool {
        if case .cancelled = self { true } else { false }
    }
}
