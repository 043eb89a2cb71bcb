import Foundation
import StrataLocks

extension Cancellation {
    /// Cancels the operation if its `Progress`, or one above that, was cancelled.
    ///
    /// Foundation calls the handler of a cancelled progress later, on a separate queue, so an operation asks its
    /// progress too. It does that on a thread that may use the progress.
    ///
    /// - Parameters:
    ///   - progress: The progress of the operation; `nil` if it has none.
    ///   - reason: The error that `check()` throws from then on.
    /// - Returns: This cancellation.
    @discardableResult
    package func following(_ progress: Progress?, throwing reason: any Error = CancellationError()) -> Cancellation {
        if progress?.isCancelled == true { cancel(throwing: reason) }
        return self
    }
}
