import Dispatch

/// Where the blocks of a context run, one after the other, and what those pass who come in by no block.
///
/// Invariants:
/// - A private context has a gate, and makes its queue once, for the level of the tree that it is at.
/// - A context of the main queue has neither: it is used without blocks as well.
///
/// Any thread may call any member.
struct ContextQueue: ~Copyable, Sendable {
    // Not private: Swift 6.3 fails to compile a debug build with a private type inside of one that is not copied.
    struct State {
        /// How many contexts are above.
        var depth = 0
        var queue: DispatchQueue?
        var executor: ContextExecutor?
    }

    /// What blocks pass, as do visitors who do not come by the queue; none for the main queue.
    let gate: ScopeGate?
    private let state: Mutex<State>

    /// The queue of a context that belongs to the main queue, or has one of its own.
    init(isMain: Bool) {
        gate = isMain ? nil : ScopeGate()
        state = Mutex(State())
    }

    /// How many contexts are above.
    var depth: Int { state.withLock { $0.depth } }

    /// Notes how many contexts are above, before the queue is needed.
    func noteDepth(_ depth: Int) { state.withLock { $0.depth = depth } }

    /// What blocks run on: made at the first use, when it is known how deep in its tree the context is.
    var dispatchQueue: DispatchQueue {
        guard gate != nil else { return .main }
        return state.withLock { state in
            if let queue = state.queue { return queue }
            let queue = ContextThreads.queue(depth: state.depth)
            state.queue = queue
            return queue
        }
    }

    /// The executor of actors that live on the context, made at the first use.
    func executor(of context: NSManagedObjectContext) -> ContextExecutor {
        state.withLock { state in
            if let executor = state.executor { return executor }
            let executor = ContextExecutor(context)
            state.executor = executor
            return executor
        }
    }
}

extension NSManagedObjectContext {
    /// What the context's blocks run on.
    final var queue: DispatchQueue { contextQueue.dispatchQueue }

    /// What blocks pass, as do visitors; none for the main queue.
    final var gate: ScopeGate? { contextQueue.gate }
}
