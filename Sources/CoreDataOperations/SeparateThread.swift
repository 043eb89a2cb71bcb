import CoreDataEssentials
import Foundation
import StrataLocks

/// Runs code that may block for long on a separate thread.
func runOnSeparateThread(_ body: @escaping @Sendable () -> Void) {
    let thread = Thread { body() }
    thread.stackSize = 1 << 20
    thread.start()
}

/// Runs code that may block for long on a separate thread, and suspends until it has run.
nonisolated(nonsending) func onSeparateThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withAnswer { (answer: @escaping @Sendable (Result<Void, any Error>) -> Void) in
        runOnSeparateThread { answer(Result { try body() }) }
    }.get()
}
