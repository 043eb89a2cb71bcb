import StrataLocks

/// Combines the messages that one observer of a context has not taken yet into one.
///
/// Any thread may call any member.
final class ChangeFeed: Sendable {
    private struct Messages: PendingNews {
        /// The greatest number of rows that a message names.
        private static let limit = 10_000

        private var messages = CoalescingQueue(minimumLimit: limit)
        private var isOverflowing = false

        init() {}

        var isEmpty: Bool { !isOverflowing && messages.isEmpty }

        mutating func add(_ message: ChangeMessage) {
            guard !isOverflowing else { return }
            messages.append(message)
            if messages.combinedCount > Self.limit { overflow() }
        }

        mutating func overflow() {
            messages = CoalescingQueue(minimumLimit: Self.limit)
            isOverflowing = true
        }

        mutating func take() -> ManagedObjectChanges {
            defer { self = Messages() }
            return isOverflowing ? .everything : ManagedObjectChanges(messages.combined)
        }
    }

    private let box = NewsBox<Messages>()

    init() {}

    /// Adds a message; `nil` means that anything may have changed.
    func add(_ message: ChangeMessage?) {
        if let message, message.isEmpty { return }
        box.note { messages in
            if let message { messages.add(message) } else { messages.overflow() }
        }
    }

    /// Ends the sequence; messages that were not taken are lost.
    func finish() { box.finish() }

    /// Returns the changes since the last call; waits if there are none yet.
    ///
    /// - Returns: `nil` after the context was released or the task was cancelled.
    func next() async -> ManagedObjectChanges? { await box.next() }
}
