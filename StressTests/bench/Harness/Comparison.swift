import Foundation

/// The times of a workload on all sides.
struct Comparison {
    let workload: Workload
    let width: RowWidth
    let caches: CacheState
    let raw: [Duration]
    /// Those of the raw side with SQLite's own settings; empty if they were not measured.
    let rawDefaults: [Duration]
    let framework: [Duration]
    /// The number of operations in the work, if the time of each is of interest.
    let operations: Int?
    let peakMemory: Int?
    /// The bytes by which the process grows for each realised object, if the work is to read all objects.
    let objectBytes: (raw: Int, framework: Int)?

    var rawMedian: Double { Self.median(raw) }
    var frameworkMedian: Double { Self.median(framework) }
    var ratio: Double { frameworkMedian / rawMedian }
    /// The median of the raw side with SQLite's own settings, and the ratio to it; `nil` if it was not measured.
    var defaults: (median: Double, ratio: Double)? {
        guard !rawDefaults.isEmpty else { return nil }
        let median = Self.median(rawDefaults)
        return (median, frameworkMedian / median)
    }

    /// The nanoseconds of one operation, and the part of them by which it exceeds the raw C API.
    var nanosecondsEach: (all: Double, overRaw: Double)? {
        guard let operations else { return nil }
        let unit = 1_000_000 / Double(operations)
        return (frameworkMedian * unit, (frameworkMedian - rawMedian) * unit)
    }

    /// The goal as the table shows it.
    private var goal: String {
        func text(_ reached: Double, _ goal: Double, _ unit: String) -> String {
            let reachedText = unit.isEmpty ? "" : " (is \(digits(reached)))"
            return "≤ \(digits(goal))\(unit)\(reachedText)\(reached > goal ? " missed" : "")"
        }
        switch workload.goal {
        case .ratio(let goal): return text(ratio, goal, "")
        case .each(let goal): return text(nanosecondsEach?.all ?? .nan, goal, " ns each")
        case .eachOverRaw(let goal): return text(nanosecondsEach?.overRaw ?? .nan, goal, " ns each over raw")
        }
    }

    /// The median in milliseconds.
    static func median(_ durations: [Duration]) -> Double {
        let sorted = durations.map { $0 / .milliseconds(1) }.sorted()
        guard !sorted.isEmpty else { return .nan }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    /// The comparison as one JSON object.
    var json: String {
        var members = [
            "\"name\": \"\(workload.name)\"", "\"raw_ms\": \(digits(rawMedian))",
            "\"coredata_ms\": \(digits(frameworkMedian))", "\"ratio\": \(digits(ratio))", "\"runs\": \(raw.count)",
            "\"caches\": \"\(caches.rawValue)\"", "\"width\": \"\(width.rawValue)\"",
        ]
        if let defaults {
            members.append("\"raw_defaults_ms\": \(digits(defaults.median))")
            members.append("\"ratio_to_defaults\": \(digits(defaults.ratio))")
        }
        if let nanosecondsEach { members.append("\"each_ns\": \(digits(nanosecondsEach.all))") }
        if let objectBytes {
            members.append("\"object_bytes\": \(objectBytes.framework), \"raw_object_bytes\": \(objectBytes.raw)")
        }
        members.append("\"peak_rss_mib\": \(peakMemory.map { digits(Double($0) / 1_048_576) } ?? "null")")
        return "{\(members.joined(separator: ", "))}"
    }

    /// The memory of a realised object, in words; `nil` if it was not measured.
    var objectMemory: String? {
        objectBytes.map {
            "\(workload.name): a realised object takes \($0.framework) bytes, a raw one \($0.raw)"
        }
    }

    /// The comparisons as a table.
    static func table(_ comparisons: [Comparison]) -> [String] {
        let header = [
            "", "work", "caches", "raw ms", "defaults ms", "coredata ms", "ratio", "to defaults", "goal", "peak RSS",
        ]
        let goal = 8
        let rows = comparisons.map { comparison in
            let (defaults, memory) = (comparison.defaults, comparison.peakMemory)
            return [
                comparison.workload.name, comparison.workload.summary, comparison.caches.rawValue,
                digits(comparison.rawMedian), defaults.map { digits($0.median) } ?? "",
                digits(comparison.frameworkMedian), digits(comparison.ratio),
                defaults.map { digits($0.ratio) } ?? "", comparison.goal,
                memory.map { "\($0 / 1_048_576) MiB" } ?? "unknown",
            ]
        }
        let widths = header.indices.map { column in ([header] + rows).map { $0[column].count }.max() ?? 0 }
        return ([header] + rows).map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                line += (column == 0 ? "" : "  ") + (column < 3 || column == goal ? cell + padding : padding + cell)
            }
            while line.last == " " { line.removeLast() }
            return line
        }
    }
}

/// Three significant digits, or a whole number where that is enough.
private func digits(_ value: Double) -> String {
    String(format: value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value)
}
