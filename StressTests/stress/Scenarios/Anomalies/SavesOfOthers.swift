import CoreData

/// Waits until all coordinators of a store with a history are notified of the saves, as a program that uses the
/// notification does.
///
/// The notification is posted when rows that others have changed have been read anew.
final class SavesOfOthers: @unchecked Sendable {
    // @unchecked Sendable: the mutable state is guarded by the condition, or belongs to the thread that waits.

    static var options: [AnyHashable: Any] {
        [NSPersistentHistoryTrackingKey: true, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
    }

    private let run: Run
    private let stacks: [NSPersistentStoreCoordinator]
    private let condition = NSCondition()
    /// The number of the last transaction of which each coordinator was notified.
    private var heard: [Int64]
    private var tokens: [any NSObjectProtocol] = []
    /// How long each wait took, in seconds.
    private var waits: [Double] = []
    private var isDeaf = false
    /// In seconds.
    ///
    /// Without a wake-up a coordinator looks once a second, and it has just looked.
    private static let slow = 0.5
    /// After so many waits it is clear whether the coordinators are woken up.
    private static let telling = 20

    init(_ run: Run, _ stacks: [NSPersistentStoreCoordinator]) {
        (self.run, self.stacks) = (run, stacks)
        heard = stacks.map { _ in 0 }
        tokens = stacks.indices.map { index in
            NotificationCenter.default.addObserver(
                forName: .NSPersistentStoreRemoteChange,
                object: stacks[index],
                queue: nil
            ) { [weak self] notification in
                let token = notification.userInfo?[NSPersistentHistoryTokenKey] as? NSPersistentHistoryToken
                self?.note(token?.transactionNumbers.values.max() ?? 0, index)
            }
        }
    }

    deinit { for token in tokens { NotificationCenter.default.removeObserver(token) } }

    private func note(_ number: Int64, _ index: Int) {
        condition.lock()
        heard[index] = max(heard[index], number)
        condition.broadcast()
        condition.unlock()
    }

    /// Waits until all coordinators are notified of everything that is saved.
    func hear() throws {
        guard !isDeaf else { return }
        let token = stacks[0].currentPersistentHistoryToken(fromStores: nil)
        let last = token?.transactionNumbers.values.max() ?? 0
        let start = ContinuousClock.now
        let end = Date(timeIntervalSinceNow: run.options.stall)
        condition.lock()
        defer { condition.unlock() }
        while let least = heard.min(), least < last {
            guard condition.wait(until: end) else {
                run.find("a coordinator is not notified of number \(last), but of \(least) only")
                isDeaf = true
                return
            }
        }
        waits.append((ContinuousClock.now - start) / .seconds(1))
        if waits.count == Self.telling { judge() }
    }

    /// Checks how long the waits took.
    private func judge() {
        let middle = waits.sorted()[waits.count / 2]
        guard middle > Self.slow else { return }
        run.find("half of \(waits.count) saves were noticed after \(middle) s only: there was no wake-up")
        isDeaf = true
    }

    /// Reports how often it has waited.
    func end() {
        run.count("heard", waits.count)
    }
}
