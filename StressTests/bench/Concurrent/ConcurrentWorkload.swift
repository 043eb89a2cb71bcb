import LoadFigures

/// Work that several threads do at the same time for some seconds.
///
/// The result is how much they get done.
enum ConcurrentWorkload: String, CaseIterable {
    case readersAndWriter = "W10"
    case readers = "W17"
    case load = "W26"

    var name: String { rawValue }

    var summary: String {
        switch self {
        case .readersAndWriter: "2 readers (a random row by ID each time) beside 1 writer (load, change, save)"
        case .readers: "1, 2, 4 and 8 readers (a random row by ID each time)"
        case .load: "1, 4, 16 and 64 threads: of ten operations one changes a row, one inserts one, eight read one"
        }
    }

    /// The crews that are measured.
    var crews: [Crew.Size] {
        switch self {
        case .readersAndWriter: [Crew.Size(readers: 2, writers: 1)]
        case .readers: [1, 2, 4, 8].map { Crew.Size(readers: $0, writers: 0) }
        case .load: [1, 4, 16, 64].map { Crew.Size(readers: 0, writers: 0, mixed: $0) }
        }
    }
}

/// How much a crew has done in a second.
struct Throughput {
    let reads: Double
    let writes: Double
    /// How long single reads and writes took.
    let readTimes: Latencies
    let writeTimes: Latencies
    /// The longest read and write.
    let longestRead: Duration
    let longestWrite: Duration

    /// The median of each number, and the times of all runs together; of the longest times the median as well.
    static func median(_ all: [Throughput]) -> Throughput {
        func sum(_ times: [Latencies]) -> Latencies { times.reduce(into: Latencies()) { $0.add($1) } }
        return Throughput(
            reads: median(all.map(\.reads)),
            writes: median(all.map(\.writes)),
            readTimes: sum(all.map(\.readTimes)),
            writeTimes: sum(all.map(\.writeTimes)),
            longestRead: all.map(\.longestRead).sorted()[all.count / 2],
            longestWrite: all.map(\.longestWrite).sorted()[all.count / 2]
        )
    }

    private static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return .nan }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}

/// A side on which several threads can work at the same time.
protocol ConcurrentSide: Side {
    /// Opens what the crew shares, and returns the work that each of its threads repeats until it has to stop.
    static func crew(_ size: Crew.Size, in folder: String, scale: Scale) throws -> Crew
}
