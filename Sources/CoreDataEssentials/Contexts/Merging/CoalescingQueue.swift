/// Consecutive messages that wait; they are combined if they name many more rows than have changed.
///
/// The waiting messages name at most twice as many rows as have changed, or `minimumLimit`, however often rows changed.
struct CoalescingQueue: Sendable {
    private(set) var messages: [ChangeMessage] = []
    private var rowCount = 0
    /// The row count at which the messages are combined, to find out how many different rows there are.
    private var limit: Int
    private let minimumLimit: Int
    /// The number of different rows when the messages were last combined; zero if they never were.
    private(set) var combinedCount = 0

    init(minimumLimit: Int) {
        self.minimumLimit = minimumLimit
        limit = minimumLimit
    }

    var isEmpty: Bool { messages.isEmpty }

    /// The waiting messages in one.
    var combined: ChangeMessage { ChangeMessage(coalescing: messages) }

    /// Adds a message; O(1) per row in the long run.
    mutating func append(_ message: ChangeMessage) {
        messages.append(message)
        rowCount += message.count
        guard rowCount > limit else { return }
        messages = [combined]
        rowCount = messages[0].count
        combinedCount = rowCount
        limit = max(minimumLimit, rowCount * 2)
    }
}
