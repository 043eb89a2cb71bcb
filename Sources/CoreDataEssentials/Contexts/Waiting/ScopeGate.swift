import Foundation
import StrataLocks

/// Lets one block or visitor at a time into the scope of a private context.
///
/// Blocks of the context's queue come one after the other anyway. Visitors come from outside of the queue, on the
/// threads that they occupy already, so a visitor needs no second thread. However many children read from one parent at
/// the same time, they never wait for threads that other children occupy. Contexts of the main queue have no gate,
/// since they are also used outside of blocks. Their visitors come by the main queue, whose thread serves no other
/// queue.
///
/// Entering and leaving costs about 20 ns if there is no contention.
final class ScopeGate: Sendable {
    private enum Waiter {
        /// The next block of the queue.
        case block(DispatchSemaphore)
        case visitor(Visit)
    }

    private struct State {
        var isTaken = false
        var waiting: [Waiter] = []
    }

    private let state = Locked(State())

    /// Enters, for a block whose turn on the queue has come; waits until the scope is free.
    func enter() {
        let turn = state.withLock { state -> DispatchSemaphore? in
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            let turn = DispatchSemaphore(value: 0)
            state.waiting.append(.block(turn))
            return turn
        }
        turn?.wait()
    }

    /// Enters, for a visitor, if the scope is free; else the visit is awoken when its turn has come.
    ///
    /// - Returns: Whether the visitor is inside.
    func enter(_ visit: Visit) -> Bool {
        state.withLock { state in
            guard state.isTaken else {
                state.isTaken = true
                return true
            }
            state.waiting.append(.visitor(visit))
            return false
        }
    }

    /// Leaves, and lets in the block or visitor that has waited longest.
    func leave() {
        while true {
            let next = state.withLock { state -> Waiter? in
                guard !state.waiting.isEmpty else {
                    state.isTaken = false
                    return nil
                }
                return state.waiting.removeFirst()
            }
            switch next {
            case nil: return
            case .block(let turn):
                turn.signal()
                return
            case .visitor(let visit):
                // The visit may have been granted meanwhile; then the next waiter is let in.
                guard WaitGraph.end(visit) else { continue }
                visit.awake()
                return
            }
        }
    }
}

extension NSManagedObjectContext {
    /// Runs a block whose turn on the queue has come, with no visitor in the scope.
    @inline(__always)
    final func alone<T>(_ body: () throws -> T) rethrows -> T {
        gate?.enter()
        defer { gate?.leave() }
        return try body()
    }
}
