import CoreData

/// Shows the state of the queue as it changes: a table that is redrawn on a terminal, and a line each second elsewhere.
package final class Monitor: Sendable {
    private let container: NSPersistentContainer
    private let isTerminal: Bool
    private let patience: Double
    private let write: @Sendable (String) -> Void

    /// Makes a monitor that writes to the standard output, unless another place is given.
    ///
    /// `patience` is the number of seconds after which it reads the queue even without a notification of a change: the
    /// rate falls, and it may be time to stop.
    package init(
        container: NSPersistentContainer,
        isTerminal: Bool = isatty(STDOUT_FILENO) == 1,
        patience: Double = 0.25,
        write: @escaping @Sendable (String) -> Void = { FileHandle.standardOutput.write(Data($0.utf8)) }
    ) {
        self.container = container
        self.isTerminal = isTerminal
        self.patience = patience
        self.write = write
    }

    /// Follows the queue until `isOver` returns true, and then shows its last state.
    package func run(until isOver: @escaping @Sendable () -> Bool) async throws {
        let context = container.newBackgroundContext()
        let doorbell = Doorbell(container.persistentStoreCoordinator)
        let interval = isTerminal ? 0.1 : 1.0
        var last: (status: QueueStatus, time: Date)?
        var height = 0
        while true {
            // The count is read before the queue, so that a later change wakes the monitor once more.
            let (ends, count) = (isOver(), doorbell.count)
            let status = try await context.perform { try QueueStatus(context) }
            let now = Date()
            let rate = last.map { Double(status.done - $0.status.done) / max(now.timeIntervalSince($0.time), 1e-3) }
            height = show(status, rate ?? 0, over: height)
            if ends { return }
            last = (status, now)
            // It shows the queue no more often than it can be read, and only if there is something new.
            try await Task.sleep(for: .seconds(interval))
            await doorbell.wait(beyond: count, atMost: patience)
        }
    }

    /// Draws over the `height` lines of the last time, and returns the number of lines.
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
