import Foundation
import StrataLocks
import Testing

/// Starts a new thread, so that a blocked body takes no thread from the test runner.
///
/// - Parameter body: The work of the thread.
/// - Returns: The thread, which has to be joined.
package func onThread(_ body: @escaping @Sendable () throws -> Void) -> JoinableThread {
    JoinableThread(body)
}

/// A thread whose end a test can await, with a time limit.
package final class JoinableThread: Sendable {
    private let done = DispatchSemaphore(value: 0)
    private let failure = Locked<(any Error)?>(nil)

    fileprivate init(_ body: @escaping @Sendable () throws -> Void) {
        Thread.detachNewThread { [self] in
            do { try body() } catch { failure.withLock { $0 = error } }
            done.signal()
        }
    }

    /// Waits for the end of the thread.
    ///
    /// - Parameters:
    ///   - fileID: The file of the call. Callers pass neither this nor the next three.
    ///   - filePath: The path of the file.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    /// - Throws: The error that the body has thrown; ``RequirementFailed`` if it has not ended after half a minute.
    package func join(
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) throws {
        let result = done.wait(timeout: .now() + 30)
        try require(
            result == .success,
            "the thread did not end",
            fileID: fileID,
            filePath: filePath,
            line: line,
            column: column
        )
        if let error = failure.withLock({ $0 }) { throw error }
    }
}

/// Yields to other threads until a condition holds.
///
/// - Parameters:
///   - fileID: The file of the call. Callers pass neither this nor the next three.
///   - filePath: The path of the file.
///   - line: The line of the call.
///   - column: The column of the call.
///   - condition: The condition that shall hold.
/// - Throws: ``RequirementFailed`` if it does not hold after half a minute.
package func wait(
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column,
    until condition: () -> Bool
) throws {
    let deadline = DispatchTime.now() + 30
    while !condition() {
        try require(
            DispatchTime.now() < deadline,
            "waited in vain",
            fileID: fileID,
            filePath: filePath,
            line: line,
            column: column
        )
        sched_yield()
    }
}
