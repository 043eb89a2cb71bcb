import Foundation
import StrataLocks
import StrataRows
import Synchronization

extension NSManagedObjectContext {
    /// Fetches what a request asks for and suspends meanwhile, without occupying the context's queue or the caller's
    /// thread.
    ///
    /// ```swift
    /// let venues = try await context.fetch(request) { progress in print(progress.completedRows) }
    /// ```
    ///
    /// Rows are read on a thread of the coordinator; the context's queue is taken to make objects of them. Pending
    /// changes count as they are then. Cancelling the task interrupts SQLite within milliseconds and leaves nothing
    /// open.
    ///
    /// May be called anywhere. The objects may be used inside the context's scope only, so call it where that is: on
    /// the main actor for a context of the main queue, or in an actor that lives on the context
    /// (``unownedExecutor``). Elsewhere use ``fetch(_:progress:_:)``, or fetch IDs.
    ///
    /// - Parameters:
    ///   - request: What to fetch, read before the first suspension.
    ///   - progress: Told now and then, on the reading thread, how many rows were read. They are counted first then,
    ///     in the same transaction. `nil` spares that. A connection of the store's pool is taken meanwhile, so keep it
    ///     short: one that itself reads the store needs a second connection, and waits for it, up to the store's
    ///     timeout, if the pool has no other (`NSPersistentStoreConnectionPoolMaxSizeKey`).
    /// - Returns: Objects, IDs, dictionaries or a number, as the request's result type says.
    /// - Throws: `CancellationError` when the task was cancelled; else as ``fetch(_:)``.
    nonisolated(nonsending) public func fetch<ResultType>(
        _ request: NSFetchRequest<ResultType>,
        progress: (@Sendable (FetchProgress) -> Void)?
    ) async throws -> [ResultType] {
        try await fetchInBackground(request, progress) { $0 }.value
    }

    /// Fetches as ``fetch(_:progress:)``, and makes something of the results inside the context's scope.
    ///
    /// ```swift
    /// let names = try await context.fetch(request, progress: nil) { venues in venues.map(\.name) }
    /// ```
    ///
    /// May be called anywhere. Cancelling the task after `body` has begun has no effect.
    ///
    /// - Parameters:
    ///   - request: What to fetch, read before the first suspension.
    ///   - progress: As in ``fetch(_:progress:)``.
    ///   - body: Takes the results, on the context's queue; one event, and sent to the context, as a block of `perform`.
    /// - Returns: What `body` returns.
    /// - Throws: `CancellationError` when the task was cancelled; what `body` throws; else as ``fetch(_:)``.
    nonisolated(nonsending) public func fetch<ResultType, Value>(
        _ request: NSFetchRequest<ResultType>,
        progress: (@Sendable (FetchProgress) -> Void)?,
        _ body: sending @escaping ([ResultType]) throws -> sending Value
    ) async throws -> sending Value {
        // Sent, so that nobody else uses it.
        let body = UncheckedBox(body)
        return try await fetchInBackground(request, progress) { try body.value($0) }.value
    }

    nonisolated(nonsending) private func fetchInBackground<ResultType, Value>(
        _ request: NSFetchRequest<ResultType>,
        _ progress: (@Sendable (FetchProgress) -> Void)?,
        _ body: @escaping @Sendable ([ResultType]) throws -> Value
    ) async throws -> UncheckedBox<Value> {
        noteClass(ResultType.self, of: request.specification)
        let report = progress.map { progress -> FetchControl.Report in
            { progress(FetchProgress(completedRows: $0, expectedRows: $1)) }
        }
        let control = FetchControl(report: report)
        let ending = FetchEnding<Value>()
        let fetch = BackgroundFetch<ResultType>(self, request.specification, request.affectedStores, control) {
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
                if isInScope { fetch.start() } else { perform { fetch.start() } }
            }.get()
        } onCancel: {
            fetch.cancel()
        }
    }
}

/// Tells a task when a fetch has ended, whichever of the two comes first.
private final class FetchEnding<Value>: Sendable {
    typealias Outcome = Result<UncheckedBox<Value>, any Error>

    private enum State {
        case open
        case waiting(@Sendable (Outcome) -> Void)
        case ended(Outcome)
    }

    private let state = Mutex<State>(.open)

    func wait(_ answer: @escaping @Sendable (Outcome) -> Void) {
        let outcome = state.withLock { state -> Outcome? in
            if case .ended(let outcome) = state { return outcome }
            state = .waiting(answer)
            return nil
        }
        if let outcome { answer(outcome) }
    }

    /// Takes the end, which comes once.
    func come(_ outcome: Outcome) {
        let answer = state.withLock { state -> (@Sendable (Outcome) -> Void)? in
            defer { state = .ended(outcome) }
            if case .waiting(let answer) = state { return answer }
            return nil
        }
        answer?(outcome)
    }
}
