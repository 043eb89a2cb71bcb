import Foundation
import StrataLocks
import Synchronization

/// Lets one block or visitor at a time into the scope of a private context.
///
/// Blocks of the context's queue come one after the other anyway. Visitors come from outside of the queue, on the
/// threads that they occupy already, so a visitor needs no second thread. However many children read from one parent at
/// the same time, they never wait for threads that other children occupy. Contexts of the main queue have no gate,
/// since they are also used outside of blocks. Their visitors come by the main queue, whose thread serves no other
/// queue.
///
/// Entering and leaving costs about 20 ns if there is no contention.
///
/// Glances go through the gate as well. A glance is the access to one value of one object by a thread outside of the
/// scope: it takes a few nanoseconds, waits for nothing, and runs no code of the program. It is refused if a block or a
/// visitor is in the scope, or if a block was submitted and has not ended. So a thread that has submitted a block, such
/// as the merge of a save, sees what the block has done. A refused glance becomes a block.
package final class ScopeGate: Sendable {
    private enum Entrant {
        /// The next block of the queue.
        case block(Waiter)
        case visitor(Visit)
    }

    private struct State {
        var isTaken = false
        var waiting: [Entrant] = []
    }

    private let state = Locked(State())
    /// The number of blocks that were submitted and have not ended.
    private let blocks = AtomicCell<Int>(0)
    /// The occupant of the scope: none (0), a block or a visitor (1), or a glance (2).
    private let occupant = AtomicCell<UInt32>(0)

    // MARK: - Glances

    /// Enters for a glance, if the scope is free and no block waits for its turn.
    ///
    /// The caller leaves at once, and neither waits nor runs code of the program in between.
    ///
    /// - Returns: Whether the glance is inside.
    @inline(__always)
    final func enterForGlance() -> Bool {
        blocks.load(ordering: .acquiring) == 0
            && occupant.compareExchange(expected: 0, desired: 2, successOrdering: .acquiring, failureOrdering: .relaxed)
                .exchanged
    }

    /// Leaves after a glance.
    @inline(__always)
    final func leaveAfterGlance() { occupant.store(0, ordering: .releasing) }

    /// Notes that a block is about to be submitted to the queue; until it has ended, there are no glances.
    func awaitBlock() { blocks.add(1, ordering: .relaxed) }

    /// Notes that a block has ended, which was awaited.
    func endBlock() { blocks.subtract(1, ordering: .releasing) }

    /// Waits until a glance has ended, and keeps others out; for the one block or visitor that has taken the gate.
    private func occupy() {
        // A glance ends within nanoseconds, unless its thread has lost its processor.
        var attempts = 0
        while !occupant.compareExchange(
            expected: 0,
            desired: 1,
            successOrdering: .acquiring,
            failureOrdering: .relaxed
        ).exchanged {
            attempts += 1
            Schedule.pause()
            if attempts > Self.attemptsBeforeYielding { sched_yield() }
        }
    }

    private static let attemptsBeforeYielding = 64

    // MARK: - Blocks and visitors

    /// Enters, for a block whose turn on the queue has come; waits until the scope is free.
    func enter() {
        let turn = state.withLock { state -> Waiter? in
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            let turn = Waiter()
            state.waiting.append(.block(turn))
            return turn
        }
        if let turn { turn.sleep() } else { occupy() }
    }

    /// Enters, for a block that was not submitted, if the scope is free and no submitted block waits for its turn.
    ///
    /// - Returns: Whether the block is inside.
    func enterAhead() -> Bool {
        guard blocks.load(ordering: .acquiring) == 0 else { return false }
        let isInside = state.withLock { state in
            guard !state.isTaken else { return false }
            state.isTaken = true
            return true
        }
        if isInside { occupy() }
        return isInside
    }

    /// Enters, for a visitor, if the scope is free; else the visit is awoken when its turn has come.
    ///
    /// - Returns: Whether the visitor is inside.
    func enter(_ visit: Visit) -> Bool {
        let isInside = state.withLock { state in
            guard state.isTaken else {
                state.isTaken = true
                return true
            }
            state.waiting.append(.visitor(visit))
            return false
        }
        if isInside { occupy() }
        return isInside
    }

    /// Leaves, and lets in the block or visitor that has waited longest.
    func leave() {
        while true {
            let next = state.withLock { state -> Entrant? in
                guard !state.waiting.isEmpty else {
                    // The next block waits for this in `occupy`, once it has taken the gate.
                    occupant.store(0, ordering: .releasing)
                    state.isTaken = false
                    return nil
                }
                return state.waiting.removeFirst()
            }
            switch next {
            case nil: return
            case .block(let turn):
                turn.call()
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
    /// Submits a block to the queue, which runs with no visitor in the scope.
    final func enqueueAlone(_ body: @escaping @Sendable () -> Void) {
        gate?.awaitBlock()
        Schedule.async(on: queue) {
            self.alone(body)
            self.gate?.endBlock()
        }
    }

    /// Runs a block whose turn on the queue has come, with no visitor in the scope.
    @inline(__always)
    private final func alone<T>(_ body: () throws -> T) rethrows -> T {
        gate?.enter()
        defer { gate?.leave() }
        return try body()
    }
}
