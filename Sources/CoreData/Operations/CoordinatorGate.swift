import Foundation
import StrataLocks
import StrataRows

/// Counts what writes through a coordinator, and lets nothing in any more once it is being closed.
///
/// Any thread may use it. Its mutex is a leaf: nothing is called with it held.
final class CoordinatorGate: Sendable {
    private struct State {
        var isClosed = false
        var writes = 0
        var waiters: [Waiter] = []
        /// All contexts, children included.
        var contexts = 0
        /// Those that have no parent.
        var roots = 0
        var contextLimit = CoreDataLimits().contexts
    }

    private let state = Mutex(State())

    /// Lets a save or a batch in.
    ///
    /// - Returns: Whether it was let in; then ``leave()`` has to be called once.
    func enter() -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.writes += 1
            return true
        }
    }

    /// Ends a save or a batch.
    func leave() {
        let waiters = state.withLock { state -> [Waiter] in
            state.writes -= 1
            guard state.writes == 0 else { return [] }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.call() }
    }

    /// Whether nothing is let in any more.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Lets nothing in any more, and waits until nobody is inside.
    ///
    /// - Parameter seconds: The most time to wait.
    /// - Returns: How many are still inside.
    func close(waiting seconds: Double) -> Int {
        let waiter: Waiter? = state.withLock { state in
            state.isClosed = true
            guard state.writes > 0 else { return nil }
            let waiter = Waiter()
            state.waiters.append(waiter)
            return waiter
        }
        guard let waiter else { return 0 }
        _ = waiter.sleep(timeout: seconds, cancellation: nil)
        return state.withLock { state in
            state.waiters.removeAll { $0 === waiter }
            return state.writes
        }
    }

    // MARK: - Contexts

    /// The most contexts that may have no parent.
    var contextLimit: Int {
        get { state.withLock { $0.contextLimit } }
        set { state.withLock { $0.contextLimit = newValue } }
    }

    /// How many contexts there are, children included.
    var contextCount: Int { state.withLock { $0.contexts } }

    /// Takes a context in.
    ///
    /// - Parameter isRoot: Whether it has no parent.
    /// - Returns: Whether it is one too many.
    func addContext(isRoot: Bool) -> Bool {
        state.withLock { state in
            state.contexts += 1
            guard isRoot else { return false }
            state.roots += 1
            return state.roots > state.contextLimit
        }
    }

    /// Lets a context go.
    ///
    /// - Parameter isRoot: Whether it had no parent when it was taken in.
    func removeContext(isRoot: Bool) {
        state.withLock { state in
            state.contexts -= 1
            if isRoot { state.roots -= 1 }
        }
    }
}
