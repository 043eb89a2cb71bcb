import Foundation
import StrataLocks

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
    private struct State {
        var now: Date
        var lastSleeper = 0
        var sleepers: [Int: (time: Date, continuation: CheckedContinuation<Void, Never>)] = [:]
        var woken: Set<Int> = []
    }

    private let state: Locked<State>

    /// Makes a clock.
    ///
    /// - Parameter now: The time that it shows; by default that of the system.
    public init(_ now: Date = Date()) { state = Locked(State(now: now)) }

    /// The time.
    public var now: Date { state.withLock { $0.now } }

    /// Sets the clock forward, and wakes the tasks whose time has come.
    ///
    /// - Parameter duration: The time to add.
    public func advance(by duration: Duration) { set(to: now.addingTimeInterval(duration.seconds)) }

    /// Sets the clock, forward or back, and wakes the tasks whose time has come.
    ///
    /// - Parameter time: The time that it shows from now on.
    public func set(to time: Date) {
        let due = state.withLock { state in
            state.now = time
            let due = state.sleepers.filter { $0.value.time <= time }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.map(\.continuation)
        }
        for sleeper in due { sleeper.resume() }
    }

    /// The number of tasks that sleep.
    var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// Suspends the task until the clock is set to a time or beyond it.
    ///
    /// - Parameter time: The time; one in the past returns at once.
    /// - Throws: `CancellationError` if the task is cancelled.
    public func sleep(until time: Date) async throws {
        let number = state.withLock { state in
            state.lastSleeper += 1
            return state.lastSleeper
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    guard state.now < time, state.woken.remove(number) == nil else { return true }
                    state.sleepers[number] = (time, continuation)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { state in
                let sleeper = state.sleepers.removeValue(forKey: number)
                if sleeper == nil { state.woken.insert(number) }
                return sleeper?.continuation
            }?.resume()
        }
        _ = state.withLock { $0.woken.remove(number) }
        try Task.checkCancellation()
    }
}
