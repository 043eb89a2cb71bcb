import Foundation

/// The worker processes.
enum WorkerProcesses {
    /// The number of jobs that each takes at once.
    static let jobsAtOnce = 8

    /// Lets the workers do all jobs, and waits for their ends.
    static func run(_ part: ChildPart, in folder: String, _ processes: Int) throws -> Duration {
        let children = try (0..<processes).map { _ in try BenchChild(part, in: folder) }
        let clock = ContinuousClock()
        let start = clock.now
        for child in children { try child.ask() }
        for child in children { try child.end() }
        return clock.now - start
    }
}
