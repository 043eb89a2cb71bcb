import Foundation
import StrataLocks
import Synchronization

/// Lets one thread at a time into the notification centre, as far as that is useful.
///
/// Foundation guards the centre's table with a mutex that always goes to the thread that has waited longest. Once a
/// thread waits, each post switches threads: eight threads that save on two processors spent a third of their time on
/// that. So threads wait here first, and a thread that arrives while the gate is open goes through.
///
/// The gate affects speed only. It guarantees no order, and it is no lock: a thread that has tried ``patience`` times
/// in vain goes through as well. So an observer that waits for another thread's save never waits for ever.
enum NotificationGate {
    private static let isTaken = AtomicCell(false)

    /// The number of times that a thread lets others run before it goes through a closed gate.
    private static let patience = 16

    /// Posts a notification that is probably not observed.
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
