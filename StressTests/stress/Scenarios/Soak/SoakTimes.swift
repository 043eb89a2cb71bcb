import Foundation
import LoadFigures
import StrataLocks

/// The processor time that saves and fetches take in each third of the run.
///
/// The elapsed time would say more about what else the machine did in that hour. A block that a thread waits for runs
/// on that thread, so its time is included.
enum SoakTimes {
    private static let thirds = Locked<[String: [Latencies]]>([:])

    /// Runs `body`, and records the processor time that it takes.
    static func measure<R>(_ name: String, _ worker: Worker, _ body: () throws -> R) rethrows -> R {
        let before = processorTime
        let result = try worker.time(name, body)
        let took = processorTime - before
        let run = worker.run
        let share = (ContinuousClock.now - run.start) / (run.end - run.start)
        let third = min(max(Int(share * 3), 0), 2)
        thirds.withLock { $0[name, default: [Latencies(), Latencies(), Latencies()]][third].add(took) }
        return result
    }

    /// The processor time of the thread so far.
    private static var processorTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Keeps a processor busy for that time.
    static func burn(_ time: Duration) {
        let end = processorTime + time
        while processorTime < end {}
    }

    /// Demands that nothing takes three times as much in the last third as in the second, except very short times.
    static func judge(_ run: Run) {
        let all = thirds.withLock { all in
            defer { all = [:] }
            return all
        }
        for (name, thirds) in all.sorted(by: { $0.key < $1.key }) where thirds.allSatisfy({ $0.count > 20 }) {
            for (share, least) in [(0.5, 10.0), (0.99, 50.0)] {
                let (before, after) = (thirds[1].milliseconds(share), thirds[2].milliseconds(share))
                run.count("\(name)-cpu-p\(Int(share * 100))-percent", Int((after / before * 100).rounded()))
                guard after > before * 3, after > least else { continue }
                run.find(
                    String(
                        format: "a %@ takes %.1f ms of a processor in the last third (p%.0f), and %.1f before",
                        name,
                        after,
                        share * 100,
                        before
                    )
                )
            }
        }
    }
}
