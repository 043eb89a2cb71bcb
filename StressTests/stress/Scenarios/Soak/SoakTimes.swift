import LoadFigures
import Synchronization

/// How long saves and fetches took in each third of the time.
enum SoakTimes {
    private static let thirds = Mutex<[String: [Latencies]]>([:])

    /// Notes one operation, with the moment it ended.
    static func note(_ name: String, _ duration: Duration, _ run: Run) {
        let share = (ContinuousClock.now - run.start) / (run.end - run.start)
        let third = min(max(Int(share * 3), 0), 2)
        thirds.withLock { $0[name, default: [Latencies(), Latencies(), Latencies()]][third].add(duration) }
    }

    /// In the last third nothing may take three times as long as in the second, if it takes longer than other work on the
    /// machine may make it.
    static func judge(_ run: Run) {
        let all = thirds.withLock { all in
            defer { all = [:] }
            return all
        }
        for (name, thirds) in all.sorted(by: { $0.key < $1.key }) where thirds.allSatisfy({ $0.count > 20 }) {
            for (share, least) in [(0.5, 30.0), (0.99, 200.0)] {
                let (before, after) = (thirds[1].milliseconds(share), thirds[2].milliseconds(share))
                run.count("\(name)-p\(Int(share * 100))-third-percent", Int((after / before * 100).rounded()))
                guard after > before * 3, after > least else { continue }
                run.find(
                    "a \(name) takes \(Int(after)) ms in the last third (p\(Int(share * 100))), and \(Int(before)) before"
                )
            }
        }
    }
}
