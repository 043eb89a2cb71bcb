import Dispatch

/// A thread asleep until it gets what it waits for, its deadline passes, or its operation is cancelled.
package final class Waiter: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    /// Why a sleep ended.
    ///
    /// Whether the thread got what it waits for, only the queue that it stands in knows.
    package enum Awakening {
        case called
        case timedOut
    }

    /// Ends the sleep.
    package func call() {
        semaphore.signal()
    }

    /// Sleeps up to `timeout` seconds.
    ///
    /// - Returns: What ended the sleep, and its seconds. Cancellation calls too.
    package func sleep(timeout: Double, cancellation: Cancellation?) -> (Awakening, waited: Double) {
        let start = ContinuousClock.now
        cancellation?.wake(semaphore)
        defer { cancellation?.stopWaking() }
        // A year stands for "for ever": nobody waits without a bound, and the sum below cannot overflow.
        let deadline = DispatchTime.now() + min(max(timeout, 0), 31_536_000)
        let result = semaphore.wait(timeout: deadline)
        return (result == .success ? .called : .timedOut, (ContinuousClock.now - start) / .seconds(1))
    }
}
