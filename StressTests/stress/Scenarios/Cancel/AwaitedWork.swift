import CoreData
import StrataLocks

/// Work in a task that is cancelled at some moment, or not.
enum AwaitedWork {
    /// Runs a task, perhaps cancels it, and waits for its end.
    ///
    /// - Parameters:
    ///   - worker: Who does it.
    ///   - name: What it is, for findings.
    ///   - cancels: Whether to cancel it.
    ///   - body: What the task does, which gives a number.
    /// - Returns: What came of it, with no number if it said that it was cancelled, and whether it was.
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
            // At once, before the task has begun perhaps, or in its midst.
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

/// What came of a piece of work, from whatever thread.
final class Completions: Sendable {
    private struct State {
        var calls = 0
        var count: Int?
        var error: String?
    }

    /// What the work is, for findings.
    let name: String
    private let state = Locked(State())

    init(_ name: String) { self.name = name }

    var calls: Int { state.withLock { $0.calls } }
    var count: Int? { state.withLock { $0.count } }
    var error: String? { state.withLock { $0.error } }

    /// Notes an end with a number, or with none.
    func note(_ count: Int?) {
        state.withLock { state in
            state.calls += 1
            state.count = count
        }
    }

    /// Notes an end with an error.
    func fail(_ text: String) {
        state.withLock { state in
            state.calls += 1
            state.error = text
        }
    }
}
