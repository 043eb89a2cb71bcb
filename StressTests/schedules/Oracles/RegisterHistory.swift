import StrataLocks
import Synchronization

/// Judges whether the writes and reads of one row look as if each had happened at one moment between its begin and end.
///
/// Each write has a different value. So the rule of Gibbons and Korach decides: a value's zone is the time from the first
/// end among its write and its reads to the last begin among them. If all of them overlap, then the zone is the time that
/// they share. The history is linearizable if no read ends before its write begins, no two zones of the first kind overlap,
/// and none of the second kind lies inside one of the first.
struct RegisterHistory {
    /// A value, with the time at which its write or read began and ended.
    struct Access {
        var value: Int
        var start: Int
        var end: Int
    }

    /// A clock of the program: each look at it is later than the one before.
    final class Clock: Sendable {
        private let time = Atomic(0)

        func now() -> Int { time.add(1, ordering: .sequentiallyConsistent).newValue }
    }

    private struct Zone {
        let value: Int
        let from: Int
        let to: Int
        /// Whether the accesses of the value do not all overlap.
        let isForward: Bool
    }

    private let writes: [Access]
    private let reads: [Access]

    /// A history that begins with the value 0.
    init(writes: [Access], reads: [Access]) {
        self.writes = writes + [Access(value: 0, start: -2, end: -1)]
        self.reads = reads
    }

    /// The accesses that contradict each order; empty if there is an order.
    var contradictions: [String] {
        var found: [String] = []
        var clusters: [Int: [Access]] = [:]
        for write in writes { clusters[write.value] = [write] }
        for read in reads {
            guard let write = clusters[read.value]?.first else {
                found.append("a read gives \(read.value), which nothing has written")
                continue
            }
            if write.start > read.end { found.append("a read gives \(read.value) before it is written") }
            clusters[read.value]?.append(read)
        }
        let zones = clusters.map { value, accesses -> Zone in
            let (end, start) = (accesses.map(\.end).min() ?? 0, accesses.map(\.start).max() ?? 0)
            return Zone(value: value, from: min(end, start), to: max(end, start), isForward: end < start)
        }.sorted { $0.from < $1.from }
        let forward = zones.filter(\.isForward)
        for (earlier, later) in zip(forward, forward.dropFirst()) where later.from < earlier.to {
            found.append("\(earlier.value) is seen again after \(later.value) was there")
        }
        for zone in zones where !zone.isForward {
            guard let around = forward.first(where: { $0.from < zone.from && zone.to < $0.to }) else { continue }
            found.append("\(around.value) is seen before and after \(zone.value), which came in between")
        }
        return found
    }
}
