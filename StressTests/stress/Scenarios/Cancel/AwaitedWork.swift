import CoreData
import StrataLocks

/// Work in a task, which may be cancelled at any moment.
enum AwaitedWork {
    /// Runs a task, perhaps cancels it, and waits for its end.
    ///
    /// - Parameters:
    ///   - worker: The worker that starts it.
    ///   - name: The name of the work, for findings.
    ///   - cancels: Whether to cancel the task.
    ///   - body: The work of the task, which returns a number.
    /// - Returns: How the task has ended, without a number if it threw a `CancellationError`, and whether it was
    ///   cancelled.
    static func run(
        _ worker: Worker,
        _ name: String,
        cancels: Bool,
        _ body: @escaping @Sendable () async throws -> Int
    ) -> (Completions, isCancelled: Bool) {
        let box = Completions(name)
        let done = DispatchSemaphore(value: 0)
        let task = Task {
            do { box.note(try await body()) } catch is CancellationError { box.note(nil) } catch {
                box.fail(describe(error))
            }
            done.signal()
        }
        if cancels {
            // The task is cancelled at once, perhaps before it has begun, or while it runs.
            if worker.stream.chance(0.7) { usleep(UInt32(worker.stream.below(6_000))) }
            task.cancel()
            worker.tally.count("cancelled")
        }
        if done.wait(timeout: .now() + worker.run.options.stall) != .success {
            worker.tally.find("\(name) has not ended")
        }
        if let error = box.error { worker.tally.find("\(name) gave \(error)") }
        return (box, cancels)
    }
}

/// The results of a piece of work, which any thread may report.
final class Completions: Sendable {
    private struct State {
        var calls = 0
        var count: Int?
        var error: String?
    }

    /// The name of the work, for findings.
    let name: String
    private let state = Locked(State())

    init(_ name: String) { self.name = name }

    var calls: Int { state.withLock { $0.calls } }
    var count: Int? { state.withLock { $0.count } }
    var error: String? { state.withLock { $0.error } }

    /// Records an end with a number, or without one.
    func note(_ count: Int?) {
        state.withLock { state in
            state.calls += 1
            state.count = count
        }
    }

    /// Records an end with an error.
    func fail(_ text: String) {
        state.withLock { state in
            state.calls += 1
            state.error = text
        }
    }
}
