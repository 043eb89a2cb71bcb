import Foundation

/// The clock by which a worker decides which jobs are due, and for how long it waits.
///
/// Leases are another matter: they end by the clock of the store.
///
/// ```swift
/// let clock: any JobClock = SystemJobClock()
/// try await clock.sleep(until: clock.now)
/// ```
public protocol JobClock: Sendable {
    /// The time.
    var now: Date { get }

    /// Suspends the task until a time.
    ///
    /// - Parameter time: The time; one in the past returns at once.
    /// - Throws: `CancellationError` if the task is cancelled.
    func sleep(until time: Date) async throws
}

/// The clock of the system.
///
/// ```swift
/// print(SystemJobClock().now)
/// ```
public struct SystemJobClock: JobClock {
    /// Makes the clock.
    public init() {}

    /// The time.
    public var now: Date { Date() }

    /// Suspends the task until a time.
    ///
    /// - Parameter time: The time; one in the past returns at once.
    /// - Throws: `CancellationError` if the task is cancelled.
    public func sleep(until time: Date) async throws {
        let seconds = time.timeIntervalSinceNow
        guard seconds > 0 else { return try Task.checkCancellation() }
        // A bound, so that a time in the distant future does not overflow.
        try await Task.sleep(for: .seconds(min(seconds, 86_400)))
    }
}

/// A clock that stands still until it is set, for tests.
///
/// ```swift
/// let clock = ManualJobClock(Date(timeIntervalSince1970: 0))
/// clock.advance(by: .seconds(60))
/// print(clock.now.timeIntervalSince1970)  // 60.0
/// ```
public final class ManualJobClock: JobClock {
    private let time: WaitingTasks<Date>

    /// Makes a clock.
    ///
    /// - Parameter now: The time that it shows; by default that of the system.
    public init(_ now: Date = Date()) { time = WaitingTasks(now) }

    /// The time.
    public var now: Date { time.value }

    /// Sets the clock forward, and wakes the tasks whose time has come.
    ///
    /// - Parameter duration: The time to add.
    public func advance(by duration: Duration) { set(to: now.addingTimeInterval(duration.seconds)) }

    /// Sets the clock, forward or back, and wakes the tasks whose time has come.
    ///
    /// - Parameter time: The time that it shows from now on.
    public func set(to time: Date) { self.time.update { $0 = time } }

    /// The number of tasks that sleep.
    var sleeperCount: Int { time.count }

    /// Suspends the task until the clock is set to a time or beyond it.
    ///
    /// - Parameter time: The time; one in the past returns at once.
    /// - Throws: `CancellationError` if the task is cancelled.
    public func sleep(until time: Date) async throws {
        await self.time.wait { $0 >= time }
        try Task.checkCancellation()
    }
}
