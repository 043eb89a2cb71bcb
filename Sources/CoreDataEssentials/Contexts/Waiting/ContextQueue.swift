import Dispatch
import StrataLocks

/// The queue on which the blocks of a context run one after the other, and the gate of its scope.
///
/// Invariants:
/// - A private context has a gate, and makes its queue once, for its level of the tree.
/// - A block that waits for its caller runs without the queue if nothing has needed the queue yet. If something needs it
///   meanwhile, then it is suspended until the block has ended.
/// - A context of the main queue has no gate and makes no queue, since it is also used outside of blocks.
///
/// Any thread may call any member.
struct ContextQueue: ~Copyable, Sendable {
    // Not private: Swift 6.3 fails to compile a debug build with a private type inside of one that is not copied.
    struct State {
        /// The number of contexts above.
        var depth = 0
        var queue: DispatchQueue?
        var executor: ContextExecutor?
        /// Whether a block runs without the queue.
        var isOccupied = false
    }

    /// The gate that blocks of the queue and visitors from outside of the queue pass; `nil` for the main queue.
    let gate: ScopeGate?
    private let state: Locked<State>

    /// Makes the queue of a private context, or of one that belongs to the main queue.
    init(isMain: Bool) {
        gate = isMain ? nil : ScopeGate()
        state = Locked(State())
    }

    /// The number of contexts above.
    var depth: Int { state.withLock { $0.depth } }

    /// Sets the number of contexts above, before the queue is needed.
    func setDepth(_ depth: Int) { state.withLock { $0.depth = depth } }

    /// The queue that blocks run on; made at the first use, when the level in the tree is known.
    var dispatchQueue: DispatchQueue {
        guard gate != nil else { return .main }
        return state.withLock { state in
            if let queue = state.queue { return queue }
            let queue = ContextThreads.queue(depth: state.depth)
            if state.isOccupied { Schedule.suspend(queue) }
            state.queue = queue
            return queue
        }
    }

    /// Whether something has needed the queue.
    var isMade: Bool { state.withLock { $0.queue != nil } }

    /// Takes the turn of a block that its caller waits for, without the queue; the caller passes the gate too.
    ///
    /// Many contexts of servers run one such block and are dropped. To make a queue costs them more than their work.
    ///
    /// - Returns: Whether the block has the turn; if so, then ``leaveUnmade()`` has to be called. It is false if the queue
    ///   exists, or if another block has the turn.
    func occupyUnmade() -> Bool {
        guard let gate, gate.enterAhead() else { return false }
        let isOccupied = state.withLock { state in
            guard state.queue == nil, !state.isOccupied else { return false }
            state.isOccupied = true
            return true
        }
        if !isOccupied { gate.leave() }
        return isOccupied
    }

    /// Ends the turn of a block without the queue, and lets the blocks run that were submitted meanwhile.
    func leaveUnmade() {
        gate?.leave()
        let queue = state.withLock { state in
            state.isOccupied = false
            return state.queue
        }
        if let queue { Schedule.resume(queue) }
    }

    /// The executor of actors that run on the context; made at the first use.
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
    /// The queue that the context's blocks run on.
    final var queue: DispatchQueue { contextQueue.dispatchQueue }

    /// The gate that blocks and visitors pass; `nil` for the main queue.
    final var gate: ScopeGate? { contextQueue.gate }
}
