import Foundation
import LoadFigures

/// Measures what several threads get done, on all sides in turn.
struct ConcurrentBench {
    let options: BenchOptions
    let raw: any ConcurrentSide.Type
    /// The raw side with other settings; `nil` if it is not measured.
    let rawDefaults: (any ConcurrentSide.Type)?
    let framework: any ConcurrentSide.Type

    /// The results of one crew on all sides.
    struct Outcome {
        let workload: ConcurrentWorkload
        let size: Crew.Size
        let raw: Throughput
        let rawDefaults: Throughput?
        let framework: Throughput

        /// The outcome as one JSON object.
        var json: String {
            let threads = size.readers + size.mixed
            let name = size.writers > 0 ? workload.name : "\(workload.name)/\(threads)"
            var numbers = [
                ("raw_reads", raw.reads), ("coredata_reads", framework.reads), ("raw_writes", raw.writes),
                ("coredata_writes", framework.writes),
            ]
            if let rawDefaults {
                numbers += [("raw_defaults_reads", rawDefaults.reads), ("raw_defaults_writes", rawDefaults.writes)]
            }
            let times = [
                ("raw_read", raw.readTimes), ("coredata_read", framework.readTimes), ("raw_write", raw.writeTimes),
                ("coredata_write", framework.writeTimes),
            ]
            var members = numbers.map { "\"\($0)\": \(Int($1))" } + times.filter { $1.count > 0 }.map(member)
            if size.mixed > 0 {
                members += [("raw", raw), ("coredata", framework)].map {
                    let (read, write) = ($1.longestRead / .milliseconds(1), $1.longestWrite / .milliseconds(1))
                    return String(format: "\"%@_read_max_ms\": %.4f, \"%@_write_max_ms\": %.4f", $0, read, $0, write)
                }
            }
            return "{\"name\": \"\(name)\", \(members.joined(separator: ", "))}"
        }

        private func member(_ name: String, _ times: Latencies) -> String {
            let (half, most) = (times.milliseconds(0.5), times.milliseconds(0.99))
            let nearlyAll = times.milliseconds(0.999)
            let format = "\"%@_p50_ms\": %.4f, \"%@_p99_ms\": %.4f, \"%@_p999_ms\": %.4f"
            return String(format: format, name, half, name, most, name, nearlyAll)
        }
    }

    /// Measures every workload that the options name, and calls `report` with the outcome of each crew.
    func run(report: (Outcome) throws -> Void) throws {
        let scale = Scale(venues: options.rows)
        let folder = options.folder + "/strata-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for side in sides { try side.fill(folder, scale: scale) }
        for workload in options.concurrent {
            for size in workload.crews { try report(try measure(workload, size, folder, scale)) }
        }
    }

    private var sides: [any ConcurrentSide.Type] { [raw] + [rawDefaults].compactMap { $0 } + [framework] }

    private func measure(
        _ workload: ConcurrentWorkload,
        _ size: Crew.Size,
        _ folder: String,
        _ scale: Scale
    ) throws -> Outcome {
        let sides = sides
        var runs: [[Throughput]] = sides.map { _ in [] }
        for run in 0..<options.runs {
            // The sides take turns to go first, so that none always profits from what another left in the caches.
            for number in sides.indices.map({ ($0 + run) % sides.count }) {
                let crew = try sides[number].crew(size, in: folder, scale: scale)
                runs[number].append(try crew.run(seconds: options.seconds))
            }
        }
        return Outcome(
            workload: workload,
            size: size,
            raw: Throughput.median(runs[0]),
            rawDefaults: rawDefaults == nil ? nil : Throughput.median(runs[1]),
            framework: Throughput.median(runs[sides.count - 1])
        )
    }

    /// The outcomes as lines, with the goals.
    static func lines(_ outcomes: [Outcome]) -> [String] {
        outcomes.flatMap { outcome -> [String] in
            let (raw, defaults, framework) = (outcome.raw, outcome.rawDefaults, outcome.framework)
            switch outcome.workload {
            case .readersAndWriter:
                return [
                    line(
                        "W10 reads/s",
                        [raw, defaults, framework].map { $0?.reads },
                        goal: (framework.reads / raw.reads, 0.3)
                    ),
                    line(
                        "W10 writes/s",
                        [raw, defaults, framework].map { $0?.writes },
                        goal: (framework.writes / raw.writes, 0.6)
                    ),
                    line("W10 ms a read", raw.readTimes, framework.readTimes),
                    line("W10 ms a save", raw.writeTimes, framework.writeTimes),
                ]
            case .load:
                return loadLines(outcome)
            case .readers:
                let readers = outcome.size.readers
                let before = outcomes.filter { $0.workload == .readers && $0.size.readers < readers }
                var goal: (Double, Double)?
                // Two are to do nearly twice as much as one, and more are to do no less than two.
                if readers == 2, let one = before.first { goal = (framework.reads / one.framework.reads, 1.8) }
                if readers > 2, let two = before.first(where: { $0.size.readers == 2 }) {
                    goal = (framework.reads / two.framework.reads, 0.85)
                }
                return [line("W17 reads/s of \(readers)", [raw, defaults, framework].map { $0?.reads }, goal: goal)]
            }
        }
    }

    /// The rows of a table about W26: what one side has done, and how long it took.
    private static func loadLines(_ outcome: Outcome) -> [String] {
        let sides = [("raw", outcome.raw), ("coredata", outcome.framework)]
        let rows = sides.flatMap { name, done in
            [
                ("reads", done.reads, done.readTimes, done.longestRead),
                ("saves", done.writes, done.writeTimes, done.longestWrite),
            ].map { what, number, times, longest in
                let shares = [0.5, 0.99, 0.999].map { String(format: "%.3f", times.milliseconds($0)) }
                let most = String(format: "%.1f", longest / .milliseconds(1))
                let cells = ["\(outcome.size.mixed)", name, what, "\(Int(number))"] + shares + [most]
                return "| \(cells.joined(separator: " | ")) |"
            }
        }
        guard outcome.size.mixed == 1 else { return rows }
        let head = "| threads | side | operation | a second | p50 ms | p99 ms | p99.9 ms | longest ms |"
        return [head, "|---:|---|---|---:|---:|---:|---:|---:|"] + rows
    }

    /// A line about numbers of the raw side, of the raw side with SQLite's own settings, and of the framework.
    private static func line(_ name: String, _ numbers: [Double?], goal: (Double, Double)?) -> String {
        let (raw, framework) = (numbers[0] ?? .nan, numbers[2] ?? .nan)
        let defaults = numbers[1].map { ", defaults \(Int($0))" } ?? ""
        var line = "\(name): raw \(Int(raw))\(defaults), coredata \(Int(framework)), ratio \(digits(framework / raw))"
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
