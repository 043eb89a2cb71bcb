import CStrataSQLite
import CoreData
import LoadFigures

/// The result of a run.
struct Report {
    let scenario: String
    let seed: UInt64
    let store: String
    let contexts: Int
    let seconds: Double
    /// The scenario's own options, given or drawn.
    let options: [(name: String, value: Int)]
    let tally: Tally
    let isBelowFloor: Bool

    var exit: StressExit {
        if tally.findingCount > 0 { return .anomaly }
        return isBelowFloor ? .belowFloor : .clean
    }

    /// The first findings.
    var findings: ArraySlice<String> { tally.findings.prefix(20) }

    private var verdict: String {
        switch exit {
        case .clean: "ok"
        case .belowFloor: "BELOW THE FLOOR"
        default: "FAILED"
        }
    }

    private var figures: [(String, Int)] { tally.figures.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
    private var latencies: [(String, Latencies)] {
        tally.latencies.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private var optionsInJSON: String {
        "{" + options.map { #""\#($0.name)": \#($0.value)"# }.joined(separator: ", ") + "}"
    }

    /// The report as a line of text.
    var line: String {
        var words = [
            "\(scenario) seed=\(seed) store=\(store) contexts=\(contexts)", String(format: "secs=%.1f", seconds),
        ]
        words += options.map { "\($0.name)=\($0.value)" } + figures.map { "\($0)=\($1)" }
        words += ["anomalies=\(tally.findingCount)"]
        words += latencies.map { name, times in
            let (half, most) = (times.milliseconds(0.5), times.milliseconds(0.99))
            return String(format: "%@ p50=%.2fms p99=%.2fms", name, half, most)
        }
        return words.joined(separator: " ") + " " + verdict
    }

    /// The report as one JSON object.
    var json: String {
        var members = [
            #""scenario": "\#(scenario)""#, #""seed": \#(seed)"#, #""store": "\#(store)""#,
            #""contexts": \#(contexts)"#, #""options": \#(optionsInJSON)"#, #""sqlite": "\#(Self.sqliteVersion)""#,
            #""build": "\#(Self.build)""#, #""commit": "\#(Self.commit)""#,
            String(format: #""seconds": %.1f"#, seconds),
        ]
        members += figures.map { #""\#($0)": \#($1)"# }
        members += [#""anomalies": \#(tally.findingCount)"#]
        members += latencies.map { name, times in
            let (half, most) = (times.milliseconds(0.5), times.milliseconds(0.99))
            return String(format: #""%@_p50_ms": %.3f, "%@_p99_ms": %.3f"#, name, half, name, most)
        }
        let texts = findings.map { finding in
            // A string always has a JSON form, so the encoder does not fail.
            String(decoding: (try? JSONEncoder().encode(finding)) ?? Data(), as: UTF8.self)
        }
        members.append(#""findings": [\#(texts.joined(separator: ", "))]"#)
        return "{" + members.joined(separator: ", ") + #", "exit": \#(exit.rawValue)}"#
    }

    static var sqliteVersion: String { String(cString: sqlite3_libversion()) }

    /// The commit that was built, which the makefile passes on.
    static var commit: String { ProcessInfo.processInfo.environment["STRATA_COMMIT"] ?? "unknown" }

    static var build: String {
        #if DEBUG
        "debug"
        #else
        "release"
        #endif
    }
}
