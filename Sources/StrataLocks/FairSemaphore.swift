/// A number of permits, given out strictly in the order of asking, with a deadline for the wait.
///
/// Any thread may call any method. A permit that is returned goes directly to the thread that has waited longest, so no
/// thread can starve, and none can overtake the queue except one that asks to.
package final class FairSemaphore: Sendable {
    package enum Outcome {
        case acquired(waited: Double)
        case timedOut(waited: Double)
        case cancelled
    }

    private struct State {
        var permits: Int
        var waiters: [Waiter] = []
    }

    private let state: Locked<State>

    package init(permits: Int) {
        state = Locked(State(permits: permits))
    }

    /// Takes a permit, and waits up to `timeout` seconds for it.
    ///
    /// - Parameters:
    ///   - timeout: The most seconds to wait.
    ///   - cancellation: Ends the wait.
    ///   - goesFirst: Whether to overtake all threads that wait. It is for one caller that seldom asks.
    /// - Returns: Whether the caller has a permit, and how long it has waited.
    package func acquire(timeout: Double, cancellation: Cancellation? = nil, goesFirst: Bool = false) -> Outcome {
        let (isAcquired, waiter): (Bool, Waiter?) = state.withLock { state in
            if state.permits > 0 {
                state.permits -= 1
                return (true, nil)
            }
            // A caller without a time-out does not enter the queue.
            guard timeout > 0 else { return (false, nil) }
            let waiter = Waiter()
            state.waiters.insert(waiter, at: goesFirst ? 0 : state.waiters.count)
            return (false, waiter)
        }
        guard let waiter else { return isAcquired ? .acquired(waited: 0) : .timedOut(waited: 0) }
        let (awakening, waited) = waiter.sleep(timeout: timeout, cancellation: cancellation)

        // Only the queue knows why the wait ended: the permit may have come at the same moment as the deadline.
        let isStillQueued = state.withLock { state in
            guard let index = state.waiters.firstIndex(where: { $0 === waiter }) else { return false }
            state.waiters.remove(at: index)
            return true
        }
        guard isStillQueued else { return .acquired(waited: waited) }
        return awakening == .called ? .cancelled : .timedOut(waited: waited)
    }

    /// Returns a permit.
    package func release() {
        let next: Waiter? = state.withLock { state in
            guard state.waiters.isEmpty else { return state.waiters.removeFirst() }
            state.permits += 1
            return nil
        }
        next?.call()
    }

    /// The number of free permits.
    package var freeCount: Int { state.withLock { $0.permits } }

    /// The number of waiting threads, for tests that script an interleaving.
    package var waiterCount: Int {
        state.withLock { $0.waiters.count }
    }
}
