import Foundation
import StrataLocks
import Testing

/// Starts a thread of its own, so that a blocked body takes no thread from the test runner.
///
/// - Parameter body: What it does.
/// - Returns: The thread, which has to be joined.
package func onThread(_ body: @escaping @Sendable () throws -> Void) -> JoinableThread {
    JoinableThread(body)
}

/// A thread whose end can be waited for, though not for ever.
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
    ///   - fileID: The file that calls, and so for the others: nobody passes these.
    ///   - filePath: Its path.
    ///   - line: The line of the call.
    ///   - column: Its column.
    /// - Throws: What the body has thrown; ``RequirementFailed`` if it has not ended after half a minute.
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

/// Gives way to other threads until something holds.
///
/// - Parameters:
///   - fileID: The file that calls, and so for the others: nobody passes these.
///   - filePath: Its path.
///   - line: The line of the call.
///   - column: Its column.
///   - condition: What shall hold.
/// - Throws: ``RequirementFailed`` if it does not after half a minute.
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
