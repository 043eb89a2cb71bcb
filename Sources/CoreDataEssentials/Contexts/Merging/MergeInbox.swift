import StrataLocks
import Synchronization

/// Changes made elsewhere that wait for a context to merge them; all that wait are merged as one message.
///
/// Invariants:
/// - Messages wait if and only if a block that merges them is in the context's queue.
/// - The waiting messages name at most twice as many rows as have changed, or a few thousand, however often rows
///   changed.
///
/// Any thread may call any member.
final class MergeInbox: Sendable {
    private let waiting = Locked(Waiting())
    private let follows = AtomicCell(false)

    init() {}

    /// Whether the context merges all saves of other contexts, or only the messages that it is requested to merge.
    var isFollowing: Bool {
        get { follows.load(ordering: .relaxed) }
        set { follows.store(newValue, ordering: .relaxed) }
    }

    /// Adds a message.
    ///
    /// - Parameters:
    ///   - message: The changes.
    ///   - isRequested: Whether the message is merged even if the context does not follow.
    ///   - waiter: The task to resume when the message has been merged.
    ///   - schedule: Submits the block that merges the waiting messages; called only if no such block is in the queue.
    func post(
        _ message: ChangeMessage,
        isRequested: Bool,
        _ waiter: CheckedContinuation<Void, Never>?,
        schedule: () -> Void
    ) {
        waiting.withLock { waiting in
            let isScheduled = !waiting.isEmpty
            waiting.add(message, isRequested: isRequested, waiter)
            // The lock stays held: a thread that adds the next message relies on this block being in the queue, because
            // blocks that it submits after that must find the message merged.
            if !isScheduled { schedule() }
        }
    }

    /// Removes all waiting messages and returns them as one, with the tasks to resume.
    func removeAll() -> (message: ChangeMessage, waiters: [CheckedContinuation<Void, Never>]) {
        waiting.withLock { $0.removeAll(isFollowing: isFollowing) }
    }

    /// The waiting messages, behind the inbox's mutex.
    private struct Waiting: Sendable {
        /// Messages that are merged only if the context follows the saves of others.
        private var followed = CoalescingQueue(minimumLimit: WorkSize.waitingMessages)
        /// Messages that have to be merged in any case.
        private var requested = CoalescingQueue(minimumLimit: WorkSize.waitingMessages)
        private var waiters: [CheckedContinuation<Void, Never>] = []

        init() {}

        var isEmpty: Bool { followed.isEmpty && requested.isEmpty }

        mutating func add(
            _ message: ChangeMessage,
            isRequested: Bool,
            _ waiter: CheckedContinuation<Void, Never>?
        ) {
            if isRequested { requested.append(message) } else { followed.append(message) }
            if let waiter { waiters.append(waiter) }
        }

        mutating func removeAll(
            isFollowing: Bool
        ) -> (message: ChangeMessage, waiters: [CheckedContinuation<Void, Never>]) {
            assert(!isEmpty, "CoreData: a block that merges what others have changed finds nothing.")
            let message = ChangeMessage(
                coalescing: isFollowing ? followed.messages + requested.messages : requested.messages
            )
            defer { self = Waiting() }
            return (message, waiters)
        }
    }
}
