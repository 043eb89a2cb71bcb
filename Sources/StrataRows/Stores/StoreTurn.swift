import Foundation
import StrataKeys
import StrataLocks

/// The turn to use a custom store, or to write to one in memory.
///
/// A custom store is asked by one thread at a time, as its author expects. The turn is not a lock but a place in a
/// queue: first come, first served, and no caller waits longer than the store's time-out. A caller that has the turn
/// may ask the store again, also from a block of another context that it waits for. The turn belongs to the scope of
/// the call (see ``ConfinementScope``) and not to the thread.
package final class StoreTurn: Sendable {
    private let semaphore = FairSemaphore(permits: 1)
    /// The longest wait, in seconds.
    private let timeout: Double

    /// Makes a turn for which each caller waits `timeout` seconds at most.
    package init(timeout: Double) { self.timeout = timeout }

    /// Runs `body`, which uses the store, as soon as no other caller does.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) if others use the store for too long; errors of `body`.
    package func take<T>(_ body: () throws -> T) throws -> T {
        if ConfinementScope.contains(self) { return try body() }
        let caller = ConfinementScope.innermost
        guard case .acquired = semaphore.acquire(timeout: timeout) else {
            throw CocoaError.described(
                .persistentStoreTimeout,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store was in use by others for \(timeout) s. Neither a store's methods nor who is told of a batch may wait for contexts that use the same store; NSPersistentStoreTimeoutOption sets the time."
                ]
            )
        }
        defer { semaphore.release() }
        return try ConfinementScope.enter(self) {
            // The caller's scope stays the innermost one.
            guard let caller else { return try body() }
            return try ConfinementScope.enter(caller, body)
        }
    }

    /// Runs `body` like ``take(_:)``, for work that must not run inside another write of the caller.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) at once if the caller has the turn already, because the wait would
    ///   not end.
    package func takeAlone<T>(_ body: () throws -> T) throws -> T {
        guard !ConfinementScope.contains(self) else {
            throw CocoaError.described(
                .persistentStoreTimeout,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store is being written to by the very call that this one is made in, such as a batch insert whose progress is told. Write when that has returned."
                ]
            )
        }
        return try take(body)
    }

    /// Runs `body` if no other caller uses the store, without waiting.
    package func takeIfFree(_ body: () -> Void) {
        if ConfinementScope.contains(self) { return body() }
        guard case .acquired = semaphore.acquire(timeout: 0) else { return }
        defer { semaphore.release() }
        ConfinementScope.enter(self, body)
    }

    /// The number of waiting threads, for tests that script an interleaving.
    package var waiterCount: Int { semaphore.waiterCount }
}
