import Foundation
import Synchronization

/// Reads that nobody's thread waits for: a few run at a time, the others stand in line.
///
/// However many fetches are started, no more than ``limit`` threads and reader connections are taken by them, so that
/// there are connections left for those who do wait. In the order of submission. Any thread may submit.
///
/// Each of the threads belongs to a serial queue. Dispatch's global queues would not do: on Linux Swift's tasks run there as
/// well, on as many threads as there are processors, and some long fetches would bring all tasks of the process to a halt.
final class ReadQueue: Sendable {
    private struct State {
        var waiting: [@Sendable () -> Void] = []
        /// How many of `waiting` have left the line already.
        var taken = 0
        /// The queues that have nothing to do, and how many there are in all.
        var idle: [DispatchQueue] = []
        var made = 0
    }

    /// How many run at a time: as many as there are processors, but fewer than a store has readers by default.
    let limit: Int

    private let state = Mutex(State())

    init(limit: Int = min(max(ProcessInfo.processInfo.activeProcessorCount, 2), 6)) {
        self.limit = limit
    }

    /// Runs `work` when its turn has come.
    func submit(_ work: @escaping @Sendable () -> Void) {
        let queue = state.withLock { state -> DispatchQueue? in
            state.waiting.append(work)
            if let idle = state.idle.popLast() { return idle }
            guard state.made < limit else { return nil }
            state.made += 1
            return DispatchQueue(label: "CoreData reads \(state.made)")
        }
        guard let queue else { return }
        queue.async {
            while let work = self.next(queue) { work() }
        }
    }

    /// The next in line; `nil` ends the work of the queue.
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
