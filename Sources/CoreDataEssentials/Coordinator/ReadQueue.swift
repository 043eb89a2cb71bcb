import Foundation
import StrataLocks

/// Reads that no thread waits for: a few run at the same time, and the others wait in a queue.
///
/// These reads never take more than ``limit`` threads and reader connections, however many fetches are started, so that
/// connections are left for threads that wait. Reads run in the order of submission. Any thread may submit.
///
/// Each of the threads belongs to a serial queue. Dispatch's global queues are not suitable: on Linux they also run
/// Swift's tasks, on as many threads as there are processors, so that some long fetches would block all tasks of the
/// process.
package final class ReadQueue: Sendable {
    private struct State {
        var waiting: [@Sendable () -> Void] = []
        /// The number of elements of `waiting` that were already taken.
        var taken = 0
        /// The queues that are idle, and the number of all queues.
        var idle: [DispatchQueue] = []
        var made = 0
    }

    /// The most reads at the same time: the number of processors, but fewer than a store's default readers.
    let limit: Int

    private let state = Locked(State())

    init(limit: Int = min(max(ProcessInfo.processInfo.activeProcessorCount, 2), WorkSize.backgroundReads)) {
        self.limit = limit
    }

    /// Runs `work` when its turn has come.
    package func submit(_ work: @escaping @Sendable () -> Void) {
        let queue = state.withLock { state -> DispatchQueue? in
            state.waiting.append(work)
            if let idle = state.idle.popLast() { return idle }
            guard state.made < limit else { return nil }
            state.made += 1
            return DispatchQueue(label: "CoreData reads \(state.made)")
        }
        guard let queue else { return }
        Schedule.async(on: queue) {
            while let work = self.next(queue) { work() }
        }
    }

    /// The next read in the queue; `nil` ends the work of the queue.
    private func next(_ queue: DispatchQueue) -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard state.taken < state.waiting.count else {
                state.idle.append(queue)
                state.waiting.removeAll(keepingCapacity: state.waiting.count <= 64)
                state.taken = 0
                return nil
            }
            let work = state.waiting[state.taken]
            state.taken += 1
            if state.taken >= 64, state.taken * 2 >= state.waiting.count {
                state.waiting.removeFirst(state.taken)
                state.taken = 0
            }
            return work
        }
    }
}
