import Dispatch

/// A thread that sleeps until it is called, its deadline passes, or its operation is cancelled.
package final class Waiter: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    /// The reason for which a sleep ended.
    ///
    /// It does not show whether the thread got what it waits for. Only the queue knows that.
    package enum Awakening {
        case called
        case timedOut
    }

    /// Ends the sleep.
    package func call() {
        semaphore.signal()
        Schedule.wake(self)
    }

    /// Sleeps until it is called.
    package func sleep() {
        let isScheduled = Schedule.wait(for: self) { semaphore.wait(timeout: .now()) == .success }
        if !isScheduled { semaphore.wait() }
    }

    /// Sleeps up to `timeout` seconds.
    ///
    /// - Returns: The reason for which the sleep ended, and its seconds. Cancellation counts as a call.
    package func sleep(timeout: Double, cancellation: Cancellation?) -> (Awakening, waited: Double) {
        let start = ContinuousClock.now
        // A year means "for ever": every wait has a limit, and the sum below cannot overflow.
        let deadline = DispatchTime.now() + min(max(timeout, 0), 31_536_000)
        let result =
            cancellation?.running(stoppedBy: { self.call() }) { wait(until: deadline) } ?? wait(until: deadline)
        return (result == .success ? .called : .timedOut, (ContinuousClock.now - start) / .seconds(1))
    }

    private func wait(until deadline: DispatchTime) -> DispatchTimeoutResult {
        let isCalled = Schedule.wait(for: self, deadline: deadline) { semaphore.wait(timeout: .now()) == .success }
        return isCalled.map { $0 ? .success : .timedOut } ?? semaphore.wait(timeout: deadline)
    }
}
