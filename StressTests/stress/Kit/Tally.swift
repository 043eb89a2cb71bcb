import LoadFigures

/// The figures and findings of a worker, or of a run.
struct Tally: Codable {
    private(set) var figures: [String: Int] = [:]
    private(set) var latencies: [String: Latencies] = [:]
    /// The first findings, one sentence each.
    private(set) var findings: [String] = []
    private(set) var findingCount = 0
    private static let keptFindings = 200

    subscript(name: String) -> Int {
        get { figures[name] ?? 0 }
        set { figures[name] = newValue }
    }

    mutating func count(_ name: String, _ number: Int = 1) { figures[name, default: 0] += number }

    mutating func time(_ name: String, _ duration: Duration) { latencies[name, default: Latencies()].add(duration) }

    mutating func find(_ text: String) {
        findingCount += 1
        if findings.count < Self.keptFindings { findings.append(text) }
    }

    mutating func add(_ other: Tally) {
        figures.merge(other.figures, uniquingKeysWith: +)
        for (name, times) in other.latencies { latencies[name, default: Latencies()].add(times) }
        findings += other.findings.prefix(Self.keptFindings - findings.count)
        findingCount += other.findingCount
    }
}
