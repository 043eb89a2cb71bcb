import CoreData
import StrataLocks

/// What handlers have written down about their runs.
///
/// All processes of a run are on one machine, and so is the server of a database. So the times in logs and the ends of
/// leases are of one clock, which does not jump.
struct JobsLog {
    /// One run of a handler.
    struct Record {
        let worker: String
        let serial: Int64
        let key: String?
        let limit: Int
        let begin: Double
        /// When the handler was about to return or throw; `nil` if its process was killed before.
        var end: Double?
        /// The latest end of the lease that the handler has read.
        var lease: Double

        /// The end of the time in which the worker certainly had the job.
        var heldUntil: Double { min(end ?? .infinity, lease) }
    }

    private(set) var runs: [Record] = []

    /// Reads the logs of workers.
    init(reading paths: [String]) {
        for path in paths {
            var numbers: [Int: Int] = [:]
            let name = URL(fileURLWithPath: path).lastPathComponent
            // A worker that was killed early has none.
            let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            for line in text.split(separator: "\n") {
                let words = line.split(separator: " ").map(String.init)
                guard words.count > 2, let number = Int(words[1]), let time = Double(words[2]) else { continue }
                if words[0] == "b", words.count == 6, let serial = Int64(words[3]), let limit = Int(words[5]) {
                    numbers[number] = runs.count
                    let key = words[4] == "-" ? nil : words[4]
                    runs.append(
                        Record(worker: name, serial: serial, key: key, limit: limit, begin: time, lease: time)
                    )
                } else if let index = numbers[number] {
                    if words[0] == "e" {
                        runs[index].end = time
                    } else {
                        runs[index].lease = max(runs[index].lease, time)
                    }
                }
            }
        }
    }

    /// Writes each line through to the system, so that it survives the death of the process.
    final class Writer: Sendable {
        private let file: Int32
        private let last = Locked(0)

        init(_ path: String) throws {
            file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            guard file >= 0 else { throw StressError("\(path) cannot be written") }
        }

        /// Notes the begin of a run.
        ///
        /// - Returns: The number of the run.
        func begin(_ errand: Errand) -> Int {
            let number = last.withLock { last in
                last += 1
                return last
            }
            write("b", number, Date(), " \(errand.serial) \(errand.key ?? "-") \(errand.limit)")
            return number
        }

        func note(_ number: Int, leaseUntil end: Date) { write("l", number, end) }

        func end(_ number: Int) { write("e", number, Date()) }

        private func write(_ mark: String, _ number: Int, _ time: Date, _ rest: String = "") {
            let line = Array("\(mark) \(number) \(time.timeIntervalSince1970)\(rest)\n".utf8)
            _ = line.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) }
        }
    }

    // MARK: - Judging

    /// Finds runs of a job while another worker's lease on it held, and more runs of a key or a queue at once than its limit.
    func judge(_ run: Run) {
        for (serial, runs) in Dictionary(grouping: runs, by: \.serial) {
            let inOrder = runs.sorted { $0.begin < $1.begin }
            for (index, later) in inOrder.enumerated() {
                guard let earlier = inOrder[..<index].first(where: { later.begin < $0.heldUntil }) else { continue }
                run.find(
                    "\(later.worker) runs job \(serial) while the lease of \(earlier.worker) holds"
                        + String(format: " for %.3f s", earlier.heldUntil - later.begin)
                )
            }
            run.count("taken-over", inOrder.count { $0.end == nil })
        }
        // The jobs with a key are those of the queue of lanes.
        let keyed = runs.filter { $0.key != nil }
        for (key, runs) in Dictionary(grouping: keyed, by: \.key) {
            judge(run, runs, "of key \(key ?? "")", limit: \.limit)
        }
        judge(run, keyed, "of the queue lanes") { _ in Jobs.laneLimit }
    }

    private func judge(_ run: Run, _ runs: [Record], _ what: String, limit: (Record) -> Int) {
        for one in runs {
            let serials = Set(runs.filter { $0.begin <= one.begin && one.begin < $0.heldUntil }.map(\.serial))
            guard serials.count > limit(one) else { continue }
            run.find("\(serials.count) jobs \(what) run at once: \(serials.sorted())")
        }
    }
}
