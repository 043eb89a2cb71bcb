import CoreDataEssentials
import Dispatch
import StrataLocks

/// Ends blocks that lock rows at their deadlines, with one timer for all blocks of the process.
///
/// A timer for each block would cost more than a short block itself: the system's timer is set, and two threads are woken.
/// Most blocks end long before their deadlines. So the timer stays as it is when a block ends, and it is set only if a new
/// deadline is the earliest one.
///
/// Any thread may call its members.
final class BlockDeadlines: Sendable {
    static let shared = BlockDeadlines()

    private struct Entry {
        let block: RowLockingBlock
        let deadline: ContinuousClock.Instant
    }

    private struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        /// The time for which the timer is set; `nil` if it is not.
        var next: ContinuousClock.Instant?
        /// The timer, from the first block on.
        var timer: UncheckedBox<any DispatchSourceTimer>?
    }

    private let state = Locked(State())
    private let queue = DispatchQueue(label: "strata.locking.deadlines", qos: .userInitiated)

    /// Calls `expire()` of a block at its deadline, unless it is removed before.
    func add(_ block: RowLockingBlock, _ deadline: ContinuousClock.Instant) {
        state.withLock { state in
            state.entries[ObjectIdentifier(block)] = Entry(block: block, deadline: deadline)
            if let next = state.next, next <= deadline { return }
            setTimer(&state, deadline)
        }
    }

    func remove(_ block: RowLockingBlock) {
        _ = state.withLock { $0.entries.removeValue(forKey: ObjectIdentifier(block)) }
    }

    private func setTimer(_ state: inout State, _ deadline: ContinuousClock.Instant) {
        if state.timer == nil {
            let timer = DispatchSource.makeTimerSource(queue: queue)
            timer.setEventHandler { [weak self] in self?.endDueBlocks() }
            state.timer = UncheckedBox(timer)
            timer.resume()
        }
        state.next = deadline
        state.timer?.value.schedule(deadline: .now() + max((deadline - .now) / .seconds(1), 0))
    }

    private func endDueBlocks() {
        let due = state.withLock { state -> [RowLockingBlock] in
            let now = ContinuousClock.now
            let due = state.entries.filter { $0.value.deadline <= now }
            for key in due.keys { state.entries[key] = nil }
            state.next = nil
            // The timer's clock may be a little ahead of this one.
            if let next = state.entries.values.map(\.deadline).min() { setTimer(&state, next) }
            return due.values.map(\.block)
        }
        // A server may let the caller of a roll-back wait, and other blocks must not wait for it.
        for block in due {
            DispatchQueue(label: "strata.locking", qos: .userInitiated).async { Schedule.adopt { block.expire() } }
        }
    }
}
