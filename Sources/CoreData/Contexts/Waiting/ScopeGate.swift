import Foundation
import Synchronization

/// Lets one at a time into the scope of a private context: blocks of its queue, which come one after the other anyway,
/// and visitors, who do not come by the queue.
///
/// So a visitor, who occupies one of the threads that serve queues, needs no other to get on: however many children
/// want to ask one parent at the same time, they do not wait for each other's threads. Contexts of the main queue have
/// no gate, since they are used without blocks, too; their visitors come by the queue, whose thread serves no other.
///
/// Uncontended, to enter and to leave costs about 20 ns.
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

    private let state = Mutex(State())

    /// Enters, for a block whose turn on the queue has come; waits for whoever is inside.
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

    /// Enters, for a visitor, if nobody is inside; else the visit is awoken when its turn has come.
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

    /// Leaves, and lets in who has waited longest.
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
                // Or it was granted meanwhile.
                guard WaitGraph.end(visit) else { continue }
                visit.awake()
                return
            }
        }
    }
}

extension NSManagedObjectContext {
    /// Runs a block whose turn on the queue has come, with nobody else in the scope.
    @inline(__always)
    final func alone<T>(_ body: () throws -> T) rethrows -> T {
        gate?.enter()
        defer { gate?.leave() }
        return try body()
    }
}
