import StrataLocks

/// Combines the messages that one observer of a context has not taken yet into one.
///
/// Any thread may call any member.
final class ChangeFeed: Sendable {
    private struct Messages: PendingNews {
        /// The greatest number of rows that a message names.
        private static let limit = 10_000

        private var messages: [ChangeMessage] = []
        private var rowCount = 0
        /// The row count at which the messages are combined, to find out how many different rows there are.
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

    /// Adds a message; `nil` means that anything may have changed.
    func note(_ message: ChangeMessage?) {
        if let message, message.isEmpty { return }
        box.note { messages in
            if let message { messages.add(message) } else { messages.overflow() }
        }
    }

    /// Ends the sequence; messages that were not taken are lost.
    func finish() { box.finish() }

    /// Returns the changes since the last call; waits if there are none yet.
    ///
    /// - Returns: `nil` once the context has gone or the task was cancelled.
    func next() async -> ManagedObjectChanges? { await box.next() }
}
