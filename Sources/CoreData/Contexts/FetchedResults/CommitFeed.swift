import Synchronization

/// Tells live queries what has been committed through one coordinator.
///
/// Holds nobody. Any thread may call any member; the mutex is a leaf in the lock order.
final class CommitFeed: Sendable {
    private struct Subscriber {
        weak var query: LiveQuery?
    }

    private let subscribers = Mutex<[Subscriber]>([])

    init() {}

    func subscribe(_ query: LiveQuery) {
        subscribers.withLock { subscribers in
            subscribers.removeAll { $0.query == nil }
            subscribers.append(Subscriber(query: query))
        }
    }

    /// Whether anybody listens.
    var hasSubscribers: Bool { subscribers.withLock { $0.contains { $0.query != nil } } }

    /// Tells of changes that the stores have committed already.
    ///
    /// O(changes × subscribers).
    func publish(_ message: ChangeMessage) {
        for subscriber in subscribers.withLock({ $0 }) { subscriber.query?.note(message) }
    }

    /// Tells that the stores have changed, when nobody knows in what.
    func publishUnknownChanges() {
        for subscriber in subscribers.withLock({ $0 }) { subscriber.query?.noteUnknownChanges() }
    }
}
