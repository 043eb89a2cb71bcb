import CoreData
import CoreDataJobs

/// Shows the state of the queue as it changes: a table that is redrawn on a terminal, and a line each second elsewhere.
package final class Monitor: Sendable {
    private let container: NSPersistentContainer
    private let isTerminal: Bool
    private let write: @Sendable (String) -> Void

    /// Makes a monitor that writes to the standard output, unless another place is given.
    package init(
        container: NSPersistentContainer,
        isTerminal: Bool = isatty(STDOUT_FILENO) == 1,
        write: @escaping @Sendable (String) -> Void = { FileHandle.standardOutput.write(Data($0.utf8)) }
    ) {
        self.container = container
        self.isTerminal = isTerminal
        self.write = write
    }

    /// Follows the queue until the task is cancelled, and then shows its last state.
    package func run() async throws {
        let coordinator = container.persistentStoreCoordinator
        // They are counted before the first look, so that a later commit of any process makes it look again.
        var commits = NotificationCenter.default.messages(of: coordinator, for: .remoteChange, bufferSize: 1)
            .makeAsyncIterator()
        var last = try await show(after: nil)
        while await commits.next(isolation: nil) != nil {
            // It looks no more often than its readers can.
            try? await Task.sleep(for: isTerminal ? .milliseconds(100) : .seconds(1))
            last = try await show(after: last)
        }
        _ = try await show(after: last)
    }

    private struct View {
        let done: Int
        let time: Date
        let height: Int
    }

    /// Draws the queue over the last view.
    private func show(after last: View?) async throws -> View {
        let context = container.newBackgroundContext()
        let status = try await context.perform { try QueueStatus(context) }
        let (done, now) = (status.jobs[.done] ?? 0, Date())
        let rate = last.map { Double(done - $0.done) / max(now.timeIntervalSince($0.time), 1e-3) } ?? 0
        let lines = isTerminal ? Self.table(status, rate) : [Self.line(status, rate)]
        let back = isTerminal && last != nil ? "\u{1B}[\(last?.height ?? 0)A" : ""
        let clear = isTerminal ? "\u{1B}[K" : ""
        write(back + lines.map { $0 + clear + "\n" }.joined())
        return View(done: done, time: now, height: lines.count)
    }

    private static let states: [JobState] = [.ready, .running, .done]

    /// The queue in one line.
    static func line(_ status: QueueStatus, _ rate: Double) -> String {
        let states = states.map { "\($0) \(status.jobs[$0] ?? 0)" } + ["\(Int(rate))/s"]
        let workers = status.receipts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        return states.joined(separator: "  ") + (workers.isEmpty ? "" : "  (\(workers.joined(separator: ", ")))")
    }

    /// The queue as a table, a line for each worker.
    static func table(_ status: QueueStatus, _ rate: Double) -> [String] {
        func row(_ name: String, _ value: Int) -> String {
            let text = "\(value)"
            return "  " + name.padding(toLength: 12, withPad: " ", startingAt: 0)
                + String(repeating: " ", count: max(0, 9 - text.count)) + text
        }
        let workers = status.receipts.sorted { $0.key < $1.key }.map { row($0.key, $0.value) }
        return states.map { row("\($0)", status.jobs[$0] ?? 0) } + [row("jobs/s", Int(rate))]
            + ["  " + String(repeating: "─", count: 21)] + workers
    }
}
