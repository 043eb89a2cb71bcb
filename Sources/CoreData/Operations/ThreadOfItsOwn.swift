import Foundation
import StrataLocks

/// Runs what may block for long on a thread that nobody else waits for.
func runOnThreadOfItsOwn(_ body: @escaping @Sendable () -> Void) {
    let thread = Thread { body() }
    thread.stackSize = 1 << 20
    thread.start()
}

/// Runs what may block for long on a thread of its own, and suspends meanwhile.
nonisolated(nonsending) func onThreadOfItsOwn(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withAnswer { (answer: @escaping @Sendable (Result<Void, any Error>) -> Void) in
        runOnThreadOfItsOwn { answer(Result { try body() }) }
    }.get()
}
