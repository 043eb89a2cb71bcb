import CoreData
import StrataLocks

/// Wakes tasks that wait for a change of the store by any process.
///
/// It counts the remote changes that the coordinator posts. A task that has found nothing to do waits for a count above
/// the one before its check. So no change between check and wait is missed.
package final class Doorbell: @unchecked Sendable {
    // @unchecked Sendable: `token` is set in the initialiser and read in the deinitialiser; the rest is locked.

    private struct State {
        var count = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastWaiter = 0
    }

    private let state = Locked(State())
    private var token: (any NSObjectProtocol)?

    package init(_ coordinator: NSPersistentStoreCoordinator) {
        token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: coordinator,
            queue: nil
        ) { [weak self] _ in self?.ring() }
    }

    deinit {
        if let token { NotificationCenter.default.removeObserver(token) }
    }

    /// The number of changes so far.
    package var count: Int { state.withLock { $0.count } }

    private func ring() {
        let waiters = state.withLock { state in
            state.count += 1
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume() }
    }

    /// Waits until there are more than `count` changes, but no longer than `seconds`.
    package func wait(beyond count: Int, atMost seconds: Double) async {
        await withCheckedContinuation { continuation in
            let number: Int? = state.withLock { state in
                guard state.count <= count else { return nil }
                state.lastWaiter += 1
                state.waiters[state.lastWaiter] = continuation
                return state.lastWaiter
            }
            guard let number else { return continuation.resume() }
            DispatchQueue.global().asyncAfter(deadline: .now() + seconds) {
                self.state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
            }
        }
    }
}
