import Foundation
import StrataRows
import Synchronization

/// The result of a request that goes on after `execute(_:)` has returned.
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

    /// Why the request failed.
    ///
    /// `nil` before the end, after a success, and when the request was cancelled. Read it inside the context's scope.
    public fileprivate(set) var operationError: (any Error)?

    /// How far the request is.
    ///
    /// `nil` unless `Progress.current()` was set when the request was executed; then a child of that. Counts rows:
    /// the total is the request's estimate, or else indeterminate until the store has counted. Cancelling it, or one that
    /// it belongs to, cancels the request, as long as the completion block has not been called. It is changed inside the context's scope only, since `Progress` on Linux is not safe to use on
    /// several threads.
    public let progress: Progress?

    init(_ context: NSManagedObjectContext, _ progress: Progress?) {
        managedObjectContext = context
        self.progress = progress
    }

    /// Stops the request, if it has not ended.
    ///
    /// The completion block is called all the same, later and on the context's queue, with an empty result and no
    /// error, even if the store has answered already. Any thread may call it; when the block has been called it does
    /// nothing.
    open func cancel() {}
}

/// The result of an asynchronous fetch.
///
/// The completion block gets the very object that `execute(_:)` returned.
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

    /// What was found, in order; objects of the executing context, or what else the request asks for.
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
        context.noteClass(ResultType.self, of: asked.specification)
        let stores = asked.affectedStores ?? request.affectedStores
        let fetch = BackgroundFetch<ResultType>(context, asked.specification, stores, control) { ending.come($0) }
        let result = NSAsynchronousFetchResult(request, fetch, mirror?.progress)
        ending.result = result
        mirror?.progress.cancellationHandler = { [weak fetch] in fetch?.cancel() }
        fetch.start()
        return result
    }

    private init(
        _ request: NSAsynchronousFetchRequest<ResultType>,
        _ fetch: BackgroundFetch<ResultType>,
        _ progress: Progress?
    ) {
        fetchRequest = request
        self.fetch = fetch
        super.init(fetch.context, progress)
    }

    /// Stops the fetch, if it has not ended: SQLite itself is interrupted.
    ///
    /// The completion block is called all the same, later and on the context's queue, with an empty ``finalResult``
    /// and no error. Any thread may call it; when the block has been called it does nothing.
    open override func cancel() { fetch.cancel() }

    /// Whether somebody has cancelled the fetch, its progress or one above.
    ///
    /// Foundation calls the handler of a cancelled progress later, on a queue of its own. So its flag is asked as well.
    private var isCancelled: Bool { fetch.isCancelled || progress?.isCancelled == true }

    /// Keeps the result until the fetch has ended, and brings the outcome to it.
    private final class Ending: @unchecked Sendable {
        // @unchecked Sendable: `result` is set before the fetch starts and taken inside the context's scope, once.
        var result: NSAsynchronousFetchResult?

        func come(_ outcome: BackgroundFetch<ResultType>.Outcome) {
            guard case .cancelled = outcome else { return end(outcome) }
            // Whoever cancels may be anywhere, so the scope has to be entered first.
            guard let context = result?.managedObjectContext else { return }
            context.perform { self.end(.cancelled) }
        }

        private func end(_ outcome: BackgroundFetch<ResultType>.Outcome) {
            guard let result else { return }
            self.result = nil
            // Whoever cancels before the block is called gets nothing, also when the store has answered.
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
