import CoreData

/// Shows how the queue stands, as it changes: a table drawn over and over on a terminal, and a line each second elsewhere.
package final class Monitor: Sendable {
    private let container: NSPersistentContainer
    private let isTerminal: Bool
    private let write: @Sendable (String) -> Void

    package init(
        container: NSPersistentContainer,
        isTerminal: Bool = isatty(STDOUT_FILENO) == 1,
        write: @escaping @Sendable (String) -> Void = { FileHandle.standardOutput.write(Data($0.utf8)) }
    ) {
        self.container = container
        self.isTerminal = isTerminal
        self.write = write
    }

    /// Follows the queue until `isOver` says so, and shows its last state.
    package func run(until isOver: @escaping @Sendable () -> Bool) async throws {
        let context = container.newBackgroundContext()
        let doorbell = Doorbell(container.persistentStoreCoordinator)
        let interval = isTerminal ? 0.1 : 1.0
        var last = try await status(in: context)
        var lastShown = Date.distantPast
        var rate = 0.0
        var height = 0
        while true {
            let ends = isOver()
            let (now, count) = (Date(), doorbell.count)
            if ends || now.timeIntervalSince(lastShown) >= interval {
                let status = try await status(in: context)
                let seconds = now.timeIntervalSince(lastShown)
                if seconds < 10, seconds > 0 { rate = Double(status.done - last.done) / seconds }
                height = show(status, rate, over: height)
                (last, lastShown) = (status, now)
            }
            if ends { return }
            // Nothing new: no need to look. Now and then to see whether it is time to stop.
            await doorbell.wait(beyond: count, atMost: 0.25)
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    private func status(in context: NSManagedObjectContext) async throws -> QueueStatus {
        try await context.perform { try QueueStatus(context) }
    }

    /// Draws over the `height` lines of the last time; gives the number of lines.
    private func show(_ status: QueueStatus, _ rate: Double, over height: Int) -> Int {
        let lines = isTerminal ? Self.table(status, rate) : [Self.line(status, rate)]
        let back = isTerminal && height > 0 ? "\u{1B}[\(height)A" : ""
        let clear = isTerminal ? "\u{1B}[K" : ""
        write(back + lines.map { $0 + clear + "\n" }.joined())
        return lines.count
    }

    /// The queue in one line.
    static func line(_ status: QueueStatus, _ rate: Double) -> String {
        let workers = status.doneByWorker.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        return "waiting \(status.waiting)  claimed \(status.claimed)  done \(status.done)  \(Int(rate))/s"
            + (workers.isEmpty ? "" : "  (\(workers.joined(separator: ", ")))")
    }

    /// The queue as a table, a line for each worker.
    static func table(_ status: QueueStatus, _ rate: Double) -> [String] {
        func row(_ name: String, _ value: Int) -> String {
            let text = "\(value)"
            return "  " + name.padding(toLength: 12, withPad: " ", startingAt: 0)
                + String(repeating: " ", count: max(0, 9 - text.count)) + text
        }
        let workers = status.doneByWorker.sorted { $0.key < $1.key }.map { row($0.key, $0.value) }
        return [row("waiting", status.waiting), row("claimed", status.claimed), row("done", status.done)]
            + [row("jobs/s", Int(rate)), "  " + String(repeating: "─", count: 21)] + workers
    }
}
