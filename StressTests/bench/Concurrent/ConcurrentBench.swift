import Foundation
import LoadFigures

/// Measures what several threads get done, on both sides in turn.
struct ConcurrentBench {
    let options: BenchOptions
    let raw: any ConcurrentSide.Type
    let framework: any ConcurrentSide.Type

    /// The results of one crew on both sides.
    struct Outcome {
        let workload: ConcurrentWorkload
        let size: Crew.Size
        let raw: Throughput
        let framework: Throughput

        /// The outcome as one JSON object.
        var json: String {
            let name = size.writers > 0 ? workload.name : "\(workload.name)/\(size.readers)"
            let numbers = [
                ("raw_reads", raw.reads), ("coredata_reads", framework.reads), ("raw_writes", raw.writes),
                ("coredata_writes", framework.writes),
            ]
            let times = [
                ("raw_read", raw.readTimes), ("coredata_read", framework.readTimes), ("raw_write", raw.writeTimes),
                ("coredata_write", framework.writeTimes),
            ]
            let members = (numbers.map { "\"\($0)\": \(Int($1))" } + times.filter { $1.count > 0 }.map(member))
                .joined(separator: ", ")
            return "{\"name\": \"\(name)\", \(members)}"
        }

        private func member(_ name: String, _ times: Latencies) -> String {
            let (half, most) = (times.milliseconds(0.5), times.milliseconds(0.99))
            return String(format: "\"%@_p50_ms\": %.4f, \"%@_p99_ms\": %.4f", name, half, name, most)
        }
    }

    /// Measures every workload that the options name, and calls `report` with the outcome of each crew.
    func run(report: (Outcome) throws -> Void) throws {
        let scale = Scale(venues: options.rows)
        let folder = options.folder + "/strata-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try raw.fill(folder, scale: scale)
        try framework.fill(folder, scale: scale)
        for workload in options.concurrent {
            for size in workload.crews { try report(try measure(workload, size, folder, scale)) }
        }
    }

    private func measure(
        _ workload: ConcurrentWorkload,
        _ size: Crew.Size,
        _ folder: String,
        _ scale: Scale
    ) throws -> Outcome {
        var (rawRuns, frameworkRuns): ([Throughput], [Throughput]) = ([], [])
        for run in 0..<options.runs {
            // The sides take turns to go first, so that neither always profits from what the other left in the
            // caches.
            for isRaw in run % 2 == 0 ? [true, false] : [false, true] {
                let crew = try (isRaw ? raw : framework).crew(size, in: folder, scale: scale)
                let throughput = try crew.run(seconds: options.seconds)
                if isRaw { rawRuns.append(throughput) } else { frameworkRuns.append(throughput) }
            }
        }
        return Outcome(
            workload: workload,
            size: size,
            raw: Throughput.median(rawRuns),
            framework: Throughput.median(frameworkRuns)
        )
    }

    /// The outcomes as lines, with the goals.
    static func lines(_ outcomes: [Outcome]) -> [String] {
        outcomes.flatMap { outcome -> [String] in
            let (raw, framework) = (outcome.raw, outcome.framework)
            switch outcome.workload {
            case .readersAndWriter:
                return [
                    line("W10 reads/s", raw.reads, framework.reads, goal: (framework.reads / raw.reads, 0.3)),
                    line("W10 writes/s", raw.writes, framework.writes, goal: (framework.writes / raw.writes, 0.6)),
                    line("W10 ms a read", raw.readTimes, framework.readTimes),
                    line("W10 ms a save", raw.writeTimes, framework.writeTimes),
                ]
            case .readers:
                let readers = outcome.size.readers
                let before = outcomes.filter { $0.workload == .readers && $0.size.readers < readers }
                var goal: (Double, Double)?
                // Two are to do nearly twice as much as one, and more are to do no less than two.
                if readers == 2, let one = before.first { goal = (framework.reads / one.framework.reads, 1.8) }
                if readers > 2, let two = before.first(where: { $0.size.readers == 2 }) {
                    goal = (framework.reads / two.framework.reads, 0.85)
                }
                return [line("W17 reads/s of \(readers)", raw.reads, framework.reads, goal: goal)]
            }
        }
    }

    private static func line(_ name: String, _ raw: Double, _ framework: Double, goal: (Double, Double)?) -> String {
        var line = "\(name): raw \(Int(raw)), coredata \(Int(framework)), ratio \(digits(framework / raw))"
        if let (reached, goal) = goal {
            line += ", goal ≥ \(digits(goal)), is \(digits(reached))\(reached < goal ? " missed" : "")"
        }
        return line
    }

    private static func line(_ name: String, _ raw: Latencies, _ framework: Latencies) -> String {
        func times(_ times: Latencies) -> String {
            String(format: "p50 %.4f, p99 %.4f", times.milliseconds(0.5), times.milliseconds(0.99))
        }
        return "\(name): raw \(times(raw)); coredata \(times(framework))"
    }

    private static func digits(_ value: Double) -> String { String(format: "%.2f", value) }
}
