import Foundation
import Synchronization

/// Lets one thread at a time into the notification centre, as far as that helps.
///
/// Foundation guards the centre's table with a mutex that hands itself to whoever has waited longest. Once a thread waits, each
/// post switches threads: eight threads that save on two processors spent a third of their time there. So threads wait here
/// first, and whoever comes when the gate is free goes through.
///
/// The gate decides nothing but speed. It makes no promise of an order, and it is no lock: whoever has come ``patience`` times
/// in vain goes through all the same. So an observer that waits for another thread's save never waits for ever.
enum NotificationGate {
    private static let isTaken = Atomic(false)

    /// How often a thread lets others run before it goes through a closed gate.
    private static let patience = 16

    /// Posts what probably nobody observes.
    static func pass(_ post: () -> Void) {
        var attempts = 0
        while isTaken.load(ordering: .relaxed) || isTaken.exchange(true, ordering: .acquiring) {
            attempts += 1
            guard attempts <= patience else { return post() }
            sched_yield()
        }
        post()
        isTaken.store(false, ordering: .releasing)
    }
}
