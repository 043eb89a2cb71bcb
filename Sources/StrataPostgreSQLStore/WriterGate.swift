import Foundation
import StrataKeys
import StrataLocks

/// Lets the writers of a process in, until another thread needs the store for itself.
///
/// Waiting writers hold no connection, so the thread that has the store for itself can read. Any thread may use it.
final class WriterGate: Sendable {
    private struct State {
        var writers = 0
        var isClosed = false
    }

    private let state = Locked(State())

    /// Whether a thread has the store for itself, or waits for that.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Runs `body` as a writer, once no thread has the store for itself.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) if that takes longer than `timeout` seconds.
    func asWriter<R>(timeout: Double, _ body: () throws -> R) throws -> R {
        try enter(timeout: timeout)
        defer { leave() }
        return try body()
    }

    /// Enters as a writer, until ``leave()``, once no thread has the store for itself.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) if that takes longer than `timeout` seconds.
    func enter(timeout: Double) throws {
        try wait(timeout) {
            state.withLock { state in
                guard !state.isClosed else { return false }
                state.writers += 1
                return true
            }
        }
    }

    /// Leaves the gate; any thread may call it.
    func leave() { state.withLock { $0.writers -= 1 } }

    /// Runs `body` while no writer of this process is at work.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) if that takes longer than `timeout` seconds.
    func alone<R>(timeout: Double, _ body: () throws -> R) throws -> R {
        try wait(timeout) {
            state.withLock { state in
                guard !state.isClosed else { return false }
                state.isClosed = true
                return true
            }
        }
        defer { state.withLock { $0.isClosed = false } }
        try wait(timeout) { state.withLock { $0.writers == 0 } }
        return try body()
    }

    private func wait(_ timeout: Double, until isReady: () -> Bool) throws {
        if isReady() { return }
        let end = ContinuousClock.now + .seconds(timeout)
        while !isReady() {
            guard ContinuousClock.now < end else {
                throw CocoaError.described(
                    .persistentStoreTimeout,
                    userInfo: [NSLocalizedDescriptionKey: "Others were busy with the store for \(timeout) s."]
                ).marked(.deadline)
            }
            // A store is replaced at most once, so this loop runs seldom.
            usleep(1_000)
        }
    }
}
