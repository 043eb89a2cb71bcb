import Foundation
import StrataLocks
import StrataRows

extension NSManagedObjectContext {
    /// Fetches the results of a request without occupying the context's queue or the caller's thread during the reads.
    ///
    /// ```swift
    /// let venues = try await context.fetch(request) { progress in print(progress.completedRows) }
    /// ```
    ///
    /// Rows are read on a thread of the coordinator; the context's queue is used only to make objects from them.
    /// Pending changes count as they are at that time. Cancelling the task interrupts the statement of SQLite (within
    /// milliseconds) or PostgreSQL, and leaves nothing open.
    ///
    /// May be called anywhere. But the objects may be used inside the context's scope only. So call it on the main
    /// actor for a context of the main queue, or in an actor that runs on the context (``unownedExecutor``). Elsewhere
    /// use ``fetch(_:progress:_:)``, or fetch IDs.
    ///
    /// - Parameters:
    ///   - request: The request, which is read before the first suspension.
    ///   - progress: Called now and then, on the reading thread, with the number of rows that were read. The rows are
    ///     counted first then, in the same transaction; `nil` avoids that. During a call, a connection of the store's
    ///     pool is in use, so keep the closure short. If the closure itself reads from the store, it needs a second
    ///     connection. If the pool has no other (`NSPersistentStoreConnectionPoolMaxSizeKey`), it waits for one, up to
    ///     the store's timeout.
    /// - Returns: Objects, IDs, dictionaries or a number, depending on the request's result type.
    /// - Throws: `CancellationError` when the task was cancelled; else as ``fetch(_:)``.
    nonisolated(nonsending) public func fetch<ResultType>(
        _ request: NSFetchRequest<ResultType>,
        progress: (@Sendable (FetchProgress) -> Void)?
    ) async throws -> [ResultType] {
        try await fetchInBackground(request, progress: progress) { $0 }.value
    }

    /// Fetches like ``fetch(_:progress:)``, and passes the results to a closure inside the context's scope.
    ///
    /// ```swift
    /// let names = try await context.fetch(request, progress: nil) { venues in venues.map(\.name) }
    /// ```
    ///
    /// May be called anywhere. Cancelling the task after `body` has begun has no effect.
    ///
    /// - Parameters:
    ///   - request: The request, which is read before the first suspension.
    ///   - progress: As in ``fetch(_:progress:)``.
    ///   - body: Receives the results, on the context's queue. It is one event, and it is sent to the context, like a
    ///     block of `perform`.
    /// - Returns: The result of `body`.
    /// - Throws: `CancellationError` when the task was cancelled; the error of `body`; else as ``fetch(_:)``.
    nonisolated(nonsending) public func fetch<ResultType, Value>(
        _ request: NSFetchRequest<ResultType>,
        progress: (@Sendable (FetchProgress) -> Void)?,
        _ body: sending @escaping ([ResultType]) throws -> sending Value
    ) async throws -> sending Value {
        // The closure was sent, so no other code uses it.
        let body = UncheckedBox(body)
        return try await fetchInBackground(request, progress: progress) { try body.value($0) }.value
    }

    nonisolated(nonsending) private func fetchInBackground<ResultType, Value>(
        _ request: NSFetchRequest<ResultType>,
        progress: (@Sendable (FetchProgress) -> Void)?,
        body: @escaping @Sendable ([ResultType]) throws -> Value
    ) async throws -> UncheckedBox<Value> {
        registerClass(ResultType.self, of: request.specification)
        let report = progress.map { progress -> FetchControl.Report in
            { progress(FetchProgress(completedRows: $0, expectedRows: $1)) }
        }
        let control = FetchControl(report: report)
        let ending = FetchEnding<Value>()
        let fetch = BackgroundFetch<ResultType>(
            context: self,
            specification: request.specification,
            stores: request.affectedStores,
            control: control
        ) {
            outcome in
            switch outcome {
            case .found(let found): ending.come(Result { UncheckedBox(try body(found)) })
            case .failed(let error): ending.come(.failure(error))
            case .cancelled: ending.come(.failure(CancellationError()))
            }
        }
        return try await withTaskCancellationHandler {
            try await withAnswer { answer in
                ending.wait(answer)
                if isInScope { fetch.start() } else { submitCall { fetch.start() } }
            }.get()
        } onCancel: {
            fetch.cancel()
        }
    }
}

/// Passes the outcome of a fetch to the task that waits for it; either may come first.
private final class FetchEnding<Value>: Sendable {
    typealias Outcome = Result<UncheckedBox<Value>, any Error>

    private enum State {
        case open
        case waiting(@Sendable (Outcome) -> Void)
        case ended(Outcome)
    }

    private let state = Locked<State>(.open)

    func wait(_ answer: @escaping @Sendable (Outcome) -> Void) {
        let outcome = state.withLock { state -> Outcome? in
            if case .ended(let outcome) = state { return outcome }
            state = .waiting(answer)
            return nil
        }
        if let outcome { answer(outcome) }
    }

    /// Takes the outcome, which comes once.
    func come(_ outcome: Outcome) {
        let answer = state.withLock { state -> (@Sendable (Outcome) -> Void)? in
            defer { state = .ended(outcome) }
            if case .waiting(let answer) = state { return answer }
            return nil
        }
        answer?(outcome)
    }
}
