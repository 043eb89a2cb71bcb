import Foundation
import StrataLocks
import StrataRows

/// Counts the writes through a coordinator, and refuses new ones after closing began.
///
/// Any thread may use it. Its mutex is a leaf: no other code is called while it is held.
package final class CoordinatorGate: Sendable {
    private struct State {
        var isClosed = false
        var writes = 0
        var waiters: [Waiter] = []
        /// The number of contexts, including children.
        var contexts = 0
        /// The number of contexts that have no parent.
        var roots = 0
        var contextLimit = CoreDataLimits().contexts
    }

    private let state = Locked(State())

    /// Admits a save or a batch.
    ///
    /// - Returns: Whether it was admitted; if so, then ``leave()`` has to be called once.
    package func enter() -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.writes += 1
            return true
        }
    }

    /// Ends a save or a batch.
    package func leave() {
        let waiters = state.withLock { state -> [Waiter] in
            state.writes -= 1
            guard state.writes == 0 else { return [] }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.call() }
    }

    /// Whether new writes are refused.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Refuses new writes, and waits until all running ones have ended.
    ///
    /// - Parameter seconds: The maximum time to wait.
    /// - Returns: The number of writes that are still running.
    package func close(waiting seconds: Double) -> Int {
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

    /// The maximum number of contexts without a parent.
    var contextLimit: Int {
        get { state.withLock { $0.contextLimit } }
        set { state.withLock { $0.contextLimit = newValue } }
    }

    /// The number of contexts, including children.
    package var contextCount: Int { state.withLock { $0.contexts } }

    /// Counts a new context.
    ///
    /// - Parameter isRoot: Whether it has no parent.
    /// - Returns: Whether the limit is exceeded.
    func addContext(isRoot: Bool) -> Bool {
        state.withLock { state in
            state.contexts += 1
            guard isRoot else { return false }
            state.roots += 1
            return state.roots > state.contextLimit
        }
    }

    /// Ends the count of a context.
    ///
    /// - Parameter isRoot: Whether it had no parent when it was counted.
    func removeContext(isRoot: Bool) {
        state.withLock { state in
            state.contexts -= 1
            if isRoot { state.roots -= 1 }
        }
    }
}

extension NSPersistentStoreCoordinator {
    /// Whether `close(within:)` was called.
    ///
    /// An addition to Apple's API.
    public var isClosed: Bool { gate.isClosed }

    /// The error for requests after the coordinator was closed.
    package var closedError: CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The coordinator\(name.map { " \"\($0)\"" } ?? "") is closed: close(within:) was called, and nothing is saved any more."
            ]
        ).marked(.environment)
    }
}
