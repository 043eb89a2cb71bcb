import Foundation
import StrataLocks

/// Shows the progress of work: one line that is redrawn on a terminal, and a plain line at each tenth elsewhere.
///
/// Any task may call any method.
final class ProgressBar: Sendable {
    private struct State {
        var done = 0
        var lastDrawn = ContinuousClock.now - .seconds(1)
        var tenths = 0
    }

    private let label: String
    private let total: Int
    private let isTerminal: Bool
    private let write: @Sendable (String) -> Void
    private let state = Locked(State())

    /// Makes a bar for `total` pieces of work.
    ///
    /// By default it writes to standard error, so that standard output contains only the answers.
    init(
        _ label: String,
        total: Int,
        isTerminal: Bool = isatty(STDERR_FILENO) == 1,
        write: @escaping @Sendable (String) -> Void = { FileHandle.standardError.write(Data($0.utf8)) }
    ) {
        self.label = label
        self.total = total
        self.isTerminal = isTerminal
        self.write = write
    }

    /// Adds `count` finished pieces, and redraws from time to time.
    func advance(by count: Int) {
        state.withLock { state in
            state.done += count
            if isTerminal {
                // Thirty frames a second look smooth; more would only cost time.
                let now = ContinuousClock.now
                guard now - state.lastDrawn >= .milliseconds(33) || state.done >= total else { return }
                state.lastDrawn = now
                write("\r" + frame(done: state.done))
            } else {
                let tenths = total == 0 ? 10 : min(10, state.done * 10 / total)
                guard tenths > state.tenths else { return }
                state.tenths = tenths
                write(plainLine(done: state.done))
            }
        }
    }

    /// Leaves the bar unchanged and ends its line.
    func finish() {
        guard isTerminal else { return }
        state.withLock { write("\r" + frame(done: $0.done) + "\n") }
    }

    private func frame(done: Int) -> String {
        let width = 32
        let filled = total == 0 ? width : min(width, done * width / total)
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
        return "\(label) \(bar) \(done.grouped) of \(total.grouped)"
    }

    private func plainLine(done: Int) -> String {
        let percent = total == 0 ? 100 : min(100, done * 100 / total)
        return "\(label) \(done.grouped) of \(total.grouped) (\(percent) %)\n"
    }
}
