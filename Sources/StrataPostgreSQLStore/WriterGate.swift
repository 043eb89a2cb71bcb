import Foundation
import StrataKeys
import Synchronization

/// Lets the writers of a process in, until somebody wants to be alone with its store.
///
/// Writers that wait hold no connection, so that whoever is alone can read. Any thread may use it.
final class WriterGate: Sendable {
    private struct State {
        var writers = 0
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Whether somebody is alone with the store, or waits to be.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Runs `body` as a writer, once nobody is alone with the store.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) if that takes longer than a number of seconds.
    func writing<R>(timeout: Double, _ body: () throws -> R) throws -> R {
        try wait(timeout) {
            state.withLock { state in
                guard !state.isClosed else { return false }
                state.writers += 1
                return true
            }
        }
        defer { state.withLock { $0.writers -= 1 } }
        return try body()
    }

    /// Runs `body` while no writer of this process is under way.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) if that takes longer than a number of seconds.
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
            // A store moves once, if at all.
            usleep(1_000)
        }
    }
}
