import CoreData

/// What a run has done and found.
struct Report {
    let scenario: String
    let seed: UInt64
    let store: String
    let contexts: Int
    let seconds: Double
    /// Figures of the scenario, in the order in which they are printed.
    let figures: [(name: String, value: Int)]
    /// How long each acknowledged save took, in seconds.
    let latencies: [Double]
    /// What was wrong, one sentence each.
    let findings: [String]
    let isBelowFloor: Bool

    var exit: StressExit {
        if !findings.isEmpty { return .anomaly }
        return isBelowFloor ? .belowFloor : .clean
    }

    private var verdict: String {
        switch exit {
        case .clean: "ok"
        case .belowFloor: "below the floor"
        default: "FAILED"
        }
    }

    /// The report as a line of text.
    var line: String {
        var words = [
            "\(scenario) seed=\(seed) store=\(store) contexts=\(contexts)", String(format: "secs=%.1f", seconds),
        ]
        words += figures.map { "\($0.name)=\($0.value)" }
        words += ["anomalies=\(findings.count)"]
        words += [String(format: "p50=%.2fms p99=%.2fms", percentile(0.5) * 1000, percentile(0.99) * 1000)]
        return words.joined(separator: " ") + " " + verdict
    }

    /// The report as one JSON object.
    var json: String {
        var members = [
            #""scenario": "\#(scenario)""#, #""seed": \#(seed)"#, #""store": "\#(store)""#,
            #""contexts": \#(contexts)"#,
            String(format: #""seconds": %.1f"#, seconds),
        ]
        members += figures.map { #""\#($0.name)": \#($0.value)"# }
        members += [#""anomalies": \#(findings.count)"#]
        members += [
            String(format: #""p50_ms": %.3f, "p99_ms": %.3f"#, percentile(0.5) * 1000, percentile(0.99) * 1000),
            #""exit": \#(exit.rawValue)"#,
        ]
        return "{" + members.joined(separator: ", ") + "}"
    }

    private func percentile(_ share: Double) -> Double {
        guard !latencies.isEmpty else { return 0 }
        return latencies.sorted()[min(latencies.count - 1, Int(Double(latencies.count) * share))]
    }
}
