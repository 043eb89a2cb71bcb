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
    /// The scope of the block that has the turn without being called by ``take(_:)``; `nil` if there is none.
    private let holder = Locked<(AnyObject & Sendable)?>(nil)
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
        guard !ConfinementScope.contains(self), !isHeldHere else {
            throw CocoaError.described(
                .persistentStoreTimeout,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store is being written to by the very call that this one is made in, such as a batch insert whose progress is told, or a block that has locked rows. Write when that has returned."
                ]
            )
        }
        return try take(body)
    }

    /// Whether the caller is in the scope of a block that has the turn.
    private var isHeldHere: Bool { holder.withLock { $0 }.map { ConfinementScope.contains($0) } ?? false }

    // MARK: - For a block

    /// Takes the turn for a block, until ``giveBack()``.
    ///
    /// - Parameters:
    ///   - holder: The scope of the block.
    ///   - timeout: The most seconds to wait.
    ///   - cancellation: Ends the wait.
    /// - Returns: Whether the block has the turn.
    package func take(for holder: AnyObject & Sendable, timeout: Double, cancellation: Cancellation) -> Bool {
        // A block that is inside the block which has the turn would wait for itself.
        guard !isHeldHere, !ConfinementScope.contains(self),
            case .acquired = semaphore.acquire(timeout: timeout, cancellation: cancellation)
        else { return false }
        self.holder.withLock { $0 = holder }
        return true
    }

    /// Ends the turn of a block; any thread may call it, once.
    package func giveBack() {
        holder.withLock { $0 = nil }
        semaphore.release()
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
