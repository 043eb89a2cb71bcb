/// The messages that one observer of a context has not taken yet, as one.
///
/// Any thread may call any member.
final class ChangeFeed: Sendable {
    private struct Messages: PendingNews {
        /// How many rows are named at most.
        private static let limit = 10_000

        private var messages: [ChangeMessage] = []
        private var rowCount = 0
        /// At how many rows the messages are made one, to see how many there really are.
        private var coalesceAt = limit
        private var isOverflowing = false

        init() {}

        var isEmpty: Bool { !isOverflowing && messages.isEmpty }

        mutating func add(_ message: ChangeMessage) {
            guard !isOverflowing else { return }
            messages.append(message)
            rowCount += message.count
            guard rowCount > coalesceAt else { return }
            messages = [ChangeMessage(coalescing: messages)]
            rowCount = messages[0].count
            coalesceAt = max(Self.limit, rowCount * 2)
            if rowCount > Self.limit { overflow() }
        }

        mutating func overflow() {
            messages = []
            isOverflowing = true
        }

        mutating func take() -> ManagedObjectChanges {
            defer { self = Messages() }
            return isOverflowing ? .everything : ManagedObjectChanges(ChangeMessage(coalescing: messages))
        }
    }

    private let box = NewsBox<Messages>()

    init() {}

    /// Adds a message; `nil` for one that anything may have changed.
    func note(_ message: ChangeMessage?) {
        if let message, message.isEmpty { return }
        box.note { messages in
            if let message { messages.add(message) } else { messages.overflow() }
        }
    }

    /// Ends the sequence; what was not taken is lost.
    func finish() { box.finish() }

    /// What has changed since the last call; waits for something.
    ///
    /// - Returns: `nil` once the context has gone or the task was cancelled.
    func next() async -> ManagedObjectChanges? { await box.next() }
}
