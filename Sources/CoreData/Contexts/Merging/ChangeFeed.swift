import Synchronization

/// The messages that one observer of a context has not taken yet, as one.
///
/// Any thread may call any member; the mutex is a leaf in the lock order.
final class ChangeFeed: Sendable {
    /// How many rows are named at most.
    private static let limit = 10_000

    private struct State {
        var messages: [ChangeMessage] = []
        var rowCount = 0
        /// At how many rows the messages are made one, to see how many there really are.
        var coalesceAt = limit
        var isOverflowing = false
        var isFinished = false
        var waiter: CheckedContinuation<Void, Never>?

        var hasNews: Bool { isOverflowing || !messages.isEmpty }

        mutating func add(_ message: ChangeMessage) {
            guard !isOverflowing else { return }
            messages.append(message)
            rowCount += message.count
            guard rowCount > coalesceAt else { return }
            messages = [ChangeMessage(coalescing: messages)]
            rowCount = messages[0].count
            coalesceAt = max(limit, rowCount * 2)
            if rowCount > limit { overflow() }
        }

        mutating func overflow() {
            messages = []
            isOverflowing = true
        }

        mutating func take() -> ManagedObjectChanges {
            defer { (messages, rowCount, coalesceAt, isOverflowing) = ([], 0, limit, false) }
            return isOverflowing ? .everything : ManagedObjectChanges(ChangeMessage(coalescing: messages))
        }
    }

    private let state = Mutex(State())

    init() {}

    /// Adds a message; `nil` for one that anything may have changed.
    func note(_ message: ChangeMessage?) {
        if let message, message.isEmpty { return }
        update { state in
            guard !state.isFinished else { return }
            if let message { state.add(message) } else { state.overflow() }
        }
    }

    /// Ends the sequence; what was not taken is lost.
    func finish() {
        update { state in
            state.isFinished = true
            state.messages = []
            state.isOverflowing = false
        }
    }

    private func update(_ change: (inout State) -> Void) {
        let waiter = state.withLock { state in
            change(&state)
            guard state.isFinished || state.hasNews else { return nil as CheckedContinuation<Void, Never>? }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// What has changed since the last call; waits for something.
    ///
    /// - Returns: `nil` once the context has gone or the task was cancelled.
    func next() async -> ManagedObjectChanges? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    if state.isFinished || state.hasNews { return true }
                    state.waiter = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            finish()
        }
        return state.withLock { $0.hasNews ? $0.take() : nil }
    }
}
