import StrataLocks

/// Notifies live queries of the commits of one coordinator.
///
/// It keeps no query alive. Any thread may call any member; the mutex is a leaf in the lock order.
package final class CommitFeed: Sendable {
    private struct Subscriber {
        weak var observer: CommitObserver?
    }

    private let subscribers = Locked<[Subscriber]>([])

    init() {}

    package func subscribe(_ observer: CommitObserver) {
        let held = subscribers.withLock { subscribers in
            // No observer ends here, where the lock is taken: all are held until it is free.
            let held = subscribers.compactMap(\.observer)
            subscribers.removeAll { $0.observer == nil }
            subscribers.append(Subscriber(observer: observer))
            return held
        }
        withExtendedLifetime(held) {}
    }

    /// Whether any live query is subscribed.
    var hasSubscribers: Bool { !subscribers.withLock { $0.compactMap(\.observer) }.isEmpty }

    /// Reports changes that the stores have already committed.
    ///
    /// O(changes × subscribers).
    package func publish(_ message: ChangeMessage) {
        for subscriber in subscribers.withLock({ $0 }) { subscriber.observer?.committed(message) }
    }

    /// Reports that the stores have changed in an unknown way.
    package func publishUnknownChanges() {
        for subscriber in subscribers.withLock({ $0 }) { subscriber.observer?.committed(nil) }
    }
}
