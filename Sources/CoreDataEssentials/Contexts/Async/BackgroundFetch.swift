import Foundation
import StrataLocks
import StrataRows

/// A fetch that reads its rows outside of the context's queue.
///
/// The queue is used only to find out what to read, and to make objects. The fetch ends once: with results or an error
/// inside the context's scope, or by ``cancel()`` on the thread that calls it.
///
/// Whatever happens during the reads, it guarantees the following:
///
/// - Pending changes count as they are when the results are made, as in a fetch made at that moment.
/// - The results contain everything that this context had saved by then: a read that began before such a save is
///   repeated.
/// - Rows have the newest values that saves on this coordinator gave them, and rows that such a save removed are left
///   out. A save that has not returned by then may or may not count.
final class BackgroundFetch<Element>: @unchecked Sendable {
    // @unchecked Sendable: `reads`, `overtakenReads` and `saves` are used inside the context's scope only, the
    // specification is a copy that never changes, and the rest is constant or behind a mutex.

    enum Outcome {
        case found([Element])
        case failed(any Error)
        case cancelled
    }

    private enum Round {
        case needs(PreparedReads.Unanswered)
        case ends(Outcome)
    }

    let context: NSManagedObjectContext
    private let specification: FetchSpecification
    private let stores: [NSPersistentStore]?
    private let control: FetchControl
    /// Stops reads that are made on the context's queue in the end; their progress is not reported.
    private let lastControl: FetchControl
    private let completion: Locked<(@Sendable (Outcome) -> Void)?>

    /// The time when the fetch was made, if an instrument needs it.
    private let beginning: ContinuousClock.Instant?

    private let reads = PreparedReads()
    /// The number of reads that were useless, since a save came in between.
    private var overtakenReads = 0
    /// The number of saves of the context, and of those above it, when the reads began.
    private var saves: Int?

    /// The number of useless reads after which the rest is read on the context's queue, so that every fetch ends.
    private static var overtakenReadLimit: Int { 8 }

    /// Prepares a fetch.
    ///
    /// - Parameters:
    ///   - context: The context that fetches.
    ///   - specification: The request.
    ///   - stores: The stores to read from; `nil` for all.
    ///   - control: Stops the fetch, and receives its progress.
    ///   - completion: Called once, inside the context's scope unless the outcome is `cancelled`.
    init(
        context: NSManagedObjectContext,
        specification: FetchSpecification,
        stores: [NSPersistentStore]?,
        control: FetchControl,
        completion: @escaping @Sendable (Outcome) -> Void
    ) {
        self.context = context
        self.specification = specification
        self.stores = stores
        self.control = control
        lastControl = FetchControl(cancellation: control.cancellation)
        self.completion = Locked(completion)
        let isInstrumented =
            Instrumentation.isAnyOn && context.persistentStoreCoordinator?.instrumentation.listener != nil
        beginning = isInstrumented ? .now : nil
    }

    /// Begins the fetch, inside the context's scope.
    ///
    /// The fetch ends later, and never inside this call.
    func start() {
        control.mayReadReplica = context.readsFromReplicas
        // A child would have to wait for its parent here, so it begins in an internal block.
        guard context.upward == nil else { return context.performInternallyInTree { self.go(on: self.round()) } }
        switch round() {
        case .needs(let read): submit(read)
        case .ends(let outcome):
            let outcome = UncheckedBox(outcome)
            context.submitCall { self.finish(outcome.value) }
        }
    }

    private func go(on round: Round) {
        switch round {
        case .needs(let read): submit(read)
        case .ends(let outcome): finish(outcome)
        }
    }

    /// Ends the fetch if it has not ended, and stops the store's work for it.
    ///
    /// May be called on any thread.
    func cancel() {
        cancellation.cancel()
        finish(.cancelled)
    }

    /// Stops the store's work for the fetch, and shows whether ``cancel()`` was called.
    ///
    /// May be used on any thread.
    var cancellation: Cancellation { control.cancellation }

    private func finish(_ outcome: Outcome) {
        let completion = completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        guard let completion else { return }
        reportEvent(for: outcome)
        completion(outcome)
    }

    private func reportEvent(for outcome: Outcome) {
        guard let beginning,
            let instrument = context.persistentStoreCoordinator?.instrumentation.instrument
        else { return }
        var rows = 0
        var code: Int?
        switch outcome {
        case .found(let found): rows = found.count
        case .failed(let error): code = (error as NSError).code
        case .cancelled: code = CocoaError.Code.userCancelled.rawValue
        }
        instrument.record(
            CoreDataEvent(
                kind: .asynchronousFetch,
                duration: .now - beginning,
                rows: rows,
                context: context.name,
                entity: entity?.name,
                errorCode: code
            )
        )
    }

    /// Announces a read that a store has answered, so that nothing can refuse it any more.
    private func announce(_ answer: PreparedReads.Answer) {
        // A read inside the scope is announced there.
        if case .askInScope = answer { return }
        guard ReadWatching.isOn, let layout = entity?.layout else { return }
        try? context.willRead(StoreRead(.fetch, layout, predicate: specification.predicate))
    }

    /// The entity that is fetched, which a request may name, describe or mean by a class.
    ///
    /// Any thread may ask for it.
    private var entity: NSEntityDescription? {
        context.persistentStoreCoordinator.flatMap {
            try? FetchPlanner(model: $0.frozenModel).entity(of: specification)
        }
    }

    // MARK: - Rounds, inside the context's scope

    private func round() -> Round { context.inChain { roundInChain() } }

    private func roundInChain() -> Round {
        let current = context.saveCountOfChain
        if saves != current {
            if !reads.isEmpty { overtakenReads += 1 }
            saves = current
            reads.removeAll()
        }
        if overtakenReads >= Self.overtakenReadLimit {
            return ending(Result { try context.fetch(specification, from: stores, stoppedBy: lastControl) })
        }
        let attempt: PreparedReads.Attempt<[Element]> = reads.attempt {
            try context.fetch(specification, from: stores, prepared: $0)
        }
        switch attempt {
        case .ended(let result): return ending(result)
        case .needs(let read): return .needs(read)
        }
    }

    private func ending(_ result: Result<[Element], any Error>) -> Round {
        switch result {
        case .success(let found): .ends(.found(found))
        case .failure(let error): .ends(.failed(error))
        }
    }

    private func submit(_ read: PreparedReads.Unanswered) {
        // The request was planned, so the context has a coordinator.
        guard let queue = context.coordinator?.asynchronousReads else { return }
        // If rows are read again, they are counted from the start.
        let begins = reads.isEmpty || reads.answersPart(of: read.question)
        queue.submit {
            guard !self.cancellation.isCancelled else { return }
            if begins { self.control.begin() }
            let answer = Result { try read.ask(self.control) }
            self.context.performInternallyInTree { self.proceed(answer, to: read.question) }
        }
    }

    private func proceed(_ answer: Result<PreparedReads.Answer, any Error>, to question: PreparedReads.Question) {
        guard !cancellation.isCancelled else { return }
        switch answer {
        case .failure(let error): finish(.failed(error))
        case .success(let answer):
            announce(answer)
            if reads.enter(answer, to: question) { overtakenReads += 1 }
            go(on: round())
        }
    }
}

extension NSManagedObjectContext {
    /// Fetches by reading from the stores now, in a way that can be stopped.
    ///
    /// Called inside the scopes of this context and those above it.
    fileprivate final func fetch<Element>(
        _ specification: FetchSpecification,
        from stores: [NSPersistentStore]?,
        stoppedBy control: FetchControl
    ) throws -> [Element] {
        var asked: NSManagedObjectContext? = self
        while let context = asked {
            context.fetchControl = control
            asked = context.upward?.parent
        }
        defer {
            asked = self
            while let context = asked {
                context.fetchControl = nil
                asked = context.upward?.parent
            }
        }
        return try fetch(specification, from: stores, prepared: nil)
    }

    /// The number of saves tried by this context and those above it, whose scopes the caller is in.
    fileprivate final var saveCountOfChain: Int { saving.count + (upward?.parent.saveCountOfChain ?? 0) }
}
