import Foundation

/// How a job is queued: where, when, how often, and beside which others.
///
/// ```swift
/// var options = JobOptions()
/// options.queue = "mail"
/// options.start = .after(.seconds(60))
/// options.maximumAttempts = 3
/// ```
public struct JobOptions: Sendable {
    /// The name of the queue; `default` by default.
    public var queue = "default"

    /// The rank in the queue; 0 by default.
    ///
    /// Jobs with a higher one come first, then those that wait longest.
    public var priority: Int16 = 0

    /// When the job may run; at once by default.
    public var start = JobStart.now

    /// The number of times that the job is tried before it has failed, from 1 to 10,000; 10 by default.
    ///
    /// An attempt counts when a worker takes the job. So a job that kills its worker fails as well.
    public var maximumAttempts: Int16 = 10

    /// How long the job waits after a failed attempt.
    public var backoff = JobBackoff.exponential()

    /// The key that no two jobs have; `nil`, the default, for none.
    public var unique: JobUniqueness?

    /// The key of which only some jobs run at once; `nil`, the default, for none.
    public var key: JobKey?

    /// How long the job and its output are kept after it is done or cancelled; a day by default.
    ///
    /// With zero the save that completes a job deletes it. A job with a unique key is kept at least for the period of the key.
    /// A job that has failed is kept until it is retried, cancelled or deleted.
    public var keep = Duration.seconds(86_400)

    /// Makes the default options.
    public init() {}
}

/// When a job may run.
///
/// ```swift
/// let start = JobStart.after(.seconds(300))
/// print(start)
/// ```
public enum JobStart: Hashable, Sendable {
    /// As soon as a worker is free.
    case now
    /// At a time, by the clock of the workers.
    case at(Date)
    /// A time after now, by the clock of the process that enqueues it.
    case after(Duration)
}

/// A key that no other job in the store has.
///
/// ```swift
/// let uniqueness = JobUniqueness("report 2026-11", for: .seconds(3600))
/// print(uniqueness.key)
/// ```
public struct JobUniqueness: Hashable, Sendable {
    /// The key, among the jobs of all types and queues.
    public var key: String
    /// How long the key is taken, at least; it is taken until the job has finished in any case.
    public var period: Duration

    /// Names the key.
    ///
    /// - Parameters:
    ///   - key: The key, among the jobs of all types and queues.
    ///   - period: How long after it was enqueued a finished job keeps the key; by default it does not.
    public init(_ key: String, for period: Duration = .zero) {
        self.key = key
        self.period = period
    }
}

/// A key of which only some jobs run at once, in all workers together.
///
/// Jobs of one key and one queue run in the order of the queue. A job that waits for its next attempt does not hold up the
/// others.
///
/// ```swift
/// let key = JobKey("customer 7")  // one at a time
/// print(key.limit)
/// ```
public struct JobKey: Hashable, Sendable {
    /// The key.
    public var name: String
    /// The number of jobs with this key that may run at once, at least 1.
    public var limit: Int16

    /// Names the key.
    ///
    /// - Parameters:
    ///   - name: The key.
    ///   - limit: The number of jobs with this key that may run at once; one by default. All jobs of a key should name the
    ///     same.
    public init(_ name: String, limit: Int16 = 1) {
        self.name = name
        self.limit = limit
    }
}

/// How long a job waits after a failed attempt.
///
/// ```swift
/// let patient = JobBackoff.exponential(from: .seconds(15), to: .seconds(3600))
/// let even = JobBackoff.constant(.seconds(5))
/// print(patient, even)
/// ```
public struct JobBackoff: Codable, Hashable, Sendable {
    /// The wait after the first attempt, in seconds.
    var first: Double
    var factor: Double
    var most: Double
    /// The part of each wait that is left to chance.
    var jitter: Double

    /// The same wait after each attempt.
    ///
    /// - Parameter wait: The wait.
    /// - Returns: The back-off.
    public static func constant(_ wait: Duration) -> JobBackoff {
        JobBackoff(first: wait.seconds, factor: 1, most: wait.seconds, jitter: 0)
    }

    /// A wait that grows with each attempt.
    ///
    /// - Parameters:
    ///   - first: The wait after the first attempt; 15 seconds by default.
    ///   - factor: The ratio of a wait to the one before; 2 by default.
    ///   - most: The longest wait; 6 hours by default.
    ///   - jitter: The part of a wait that is left to chance, from 0 to 1, so that jobs which fail together are not tried
    ///     together; 0.2 by default, which makes a wait up to 20 per cent longer.
    /// - Returns: The back-off.
    public static func exponential(
        from first: Duration = .seconds(15),
        factor: Double = 2,
        to most: Duration = .seconds(21_600),
        jitter: Double = 0.2
    ) -> JobBackoff {
        JobBackoff(first: first.seconds, factor: max(factor, 1), most: most.seconds, jitter: min(max(jitter, 0), 1))
    }

    /// The seconds to wait after an attempt.
    ///
    /// - Parameters:
    ///   - attempt: The number of the attempt that has failed, from 1 on.
    ///   - chance: A number from 0 to 1.
    /// - Returns: The seconds.
    func wait(after attempt: Int, chance: Double) -> Double {
        // The exponent is bounded, so that the power is a number.
        min(first * pow(factor, Double(min(max(attempt - 1, 0), 512))), most) * (1 + jitter * chance)
    }
}

extension Duration {
    var seconds: Double { self / .seconds(1) }
}
