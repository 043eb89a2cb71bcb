import Foundation

/// A kind of work that a worker does later: its values are what the work needs.
///
/// ```swift
/// struct SendWelcome: Job {
///     var address: String
/// }
/// print(SendWelcome.jobName)  // SendWelcome
/// ```
///
/// The values are stored as JSON, so they are small: identifiers, numbers and texts. A job that was stored by an older
/// version of the program is decoded by the newer one. So give new properties a default by making them optional.
public protocol Job: Codable, Sendable {
    /// The result that the handler returns, which is stored with the job; ``NoOutput`` by default.
    associatedtype Output: Codable & Sendable = NoOutput

    /// The name under which jobs of this type are stored; by default the name of the type, without its module.
    ///
    /// Set it to the old name if you rename the type while jobs are waiting.
    static var jobName: String { get }

    /// The options of a job of this type, unless the caller of `enqueue` sets others.
    static var options: JobOptions { get }
}

extension Job {
    /// The name of the type, without its module.
    public static var jobName: String { "\(Self.self)" }

    /// The default options: the queue `default`, ten attempts, results are kept for a day.
    public static var options: JobOptions { JobOptions() }
}

/// The output of jobs that return nothing.
///
/// ```swift
/// let nothing = NoOutput()
/// print(nothing)
/// ```
public struct NoOutput: Codable, Hashable, Sendable {
    /// Makes the output.
    public init() {}
}

/// The state of a job in its queue.
///
/// ```swift
/// let open = JobState.allCases.filter { !$0.isFinished }
/// print(open.count)  // 4
/// ```
public enum JobState: String, Codable, CaseIterable, Sendable {
    /// It waits for its time: the first one, or that of the next attempt.
    case scheduled
    /// It waits for a worker.
    case ready
    /// It waits until another job with the same key ends.
    case blocked
    /// A worker has it.
    case running
    /// Its handler has returned.
    case done
    /// Its last attempt has failed; it can be retried.
    case failed
    /// It was cancelled.
    case cancelled

    /// Whether the job has ended: it is done, failed or cancelled.
    public var isFinished: Bool { self == .done || self == .failed || self == .cancelled }
}
