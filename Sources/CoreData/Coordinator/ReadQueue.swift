import Foundation
import Synchronization

/// Reads that nobody's thread waits for: a few run at a time, the others stand in line.
///
/// However many fetches are started, no more than ``limit`` threads and reader connections are taken by them, so that
/// there are connections left for those who do wait. In the order of submission. Any thread may submit.
final class ReadQueue: Sendable {
    private struct State {
        var waiting: [@Sendable () -> Void] = []
        /// How many of `waiting` have left the line already.
        var taken = 0
        var running = 0
    }

    /// How many run at a time: as many as there are processors, but fewer than a store has readers by default.
    let limit: Int

    private let state = Mutex(State())

    init(limit: Int = min(max(ProcessInfo.processInfo.activeProcessorCount, 2), 6)) {
        self.limit = limit
    }

    /// Runs `work` when its turn has come, on whatever thread is free.
    func submit(_ work: @escaping @Sendable () -> Void) {
        let mayStart = state.withLock { state in
            state.waiting.append(work)
            guard state.running < limit else { return false }
            state.running += 1
            return true
        }
        guard mayStart else { return }
        DispatchQueue.global().async {
            while let work = self.next() { work() }
        }
    }

    /// The next in line; `nil` ends the thread's work.
    private func next() -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard state.taken < state.waiting.count else {
                state.running -= 1
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
