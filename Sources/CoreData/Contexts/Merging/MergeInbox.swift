import Synchronization

/// The changes of others that wait until a context merges them: however many come while it is busy, they are merged as
/// one.
///
/// Invariants:
/// - Something waits if and only if a block that merges it is in the context's queue.
/// - What waits is no larger than twice the rows that changed, or a few thousand, however often they did.
///
/// Any thread may call any member.
final class MergeInbox: Sendable {
    private let waiting = Mutex(Waiting())
    private let follows = Atomic(false)

    init() {}

    /// Whether the context merges what others save by itself, and not only what somebody asks it to merge.
    var isFollowing: Bool {
        get { follows.load(ordering: .relaxed) }
        set { follows.store(newValue, ordering: .relaxed) }
    }

    /// Takes a message in.
    ///
    /// - Parameters:
    ///   - message: What has changed.
    ///   - isRequested: Whether it is merged even if the context does not follow.
    ///   - waiter: Who is resumed when it has been merged.
    ///   - schedule: Submits the block that merges what waits; called unless one is in the context's queue.
    func post(
        _ message: ChangeMessage,
        isRequested: Bool,
        _ waiter: CheckedContinuation<Void, Never>?,
        schedule: () -> Void
    ) {
        waiting.withLock { waiting in
            let isScheduled = !waiting.isEmpty
            waiting.add(message, isRequested: isRequested, waiter)
            // With the lock held: whoever adds the next message counts upon this block's being in the queue, since what
            // is submitted after that must find the message merged.
            if !isScheduled { schedule() }
        }
    }

    /// Takes everything out that waits, as one message, and those who are to be told.
    func take() -> (message: ChangeMessage, waiters: [CheckedContinuation<Void, Never>]) {
        waiting.withLock { $0.take(isFollowing: isFollowing) }
    }

    /// What waits, behind the inbox's mutex.
    private struct Waiting: Sendable {
        /// Messages that are merged only if the context follows what others save.
        private var followed: [ChangeMessage] = []
        /// Messages that somebody wants merged in any case.
        private var requested: [ChangeMessage] = []
        private var waiters: [CheckedContinuation<Void, Never>] = []
        private var rowCount = 0
        private var limit = Self.minimumLimit

        private static let minimumLimit = 4096

        init() {}

        var isEmpty: Bool { followed.isEmpty && requested.isEmpty }

        mutating func add(
            _ message: ChangeMessage,
            isRequested: Bool,
            _ waiter: CheckedContinuation<Void, Never>?
        ) {
            if isRequested { requested.append(message) } else { followed.append(message) }
            if let waiter { waiters.append(waiter) }
            rowCount += message.count
            if rowCount > limit { coalesce() }
            assert(rowCount <= limit, "CoreData: more messages wait to be merged than rows have changed.")
        }

        /// Keeps what waits no larger than the rows that changed, however often they did: O(1) a row in the long run.
        private mutating func coalesce() {
            followed = [ChangeMessage(coalescing: followed)]
            requested = [ChangeMessage(coalescing: requested)]
            rowCount = followed[0].count + requested[0].count
            limit = max(Self.minimumLimit, rowCount * 2)
        }

        mutating func take(
            isFollowing: Bool
        ) -> (message: ChangeMessage, waiters: [CheckedContinuation<Void, Never>]) {
            assert(!isEmpty, "CoreData: a block that merges what others have changed finds nothing.")
            let message = ChangeMessage(coalescing: isFollowing ? followed + requested : requested)
            defer { self = Waiting() }
            return (message, waiters)
        }
    }
}
