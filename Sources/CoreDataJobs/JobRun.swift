import CoreData

/// One attempt of a job, as its handler sees it.
///
/// ```swift
/// struct CountMembers: Job { var city: String }
/// let worker = JobWorker(container)
/// worker.handle(CountMembers.self) { run in
///     try await run.report(progress: 0.5, "counting in \(run.job.city)")
/// }
/// ```
///
/// The task of the handler is cancelled if the job is cancelled, if another worker has the job because this one was too slow,
/// and when the worker stops and its patience ends. `Task.checkCancellation()` throws then.
public final class JobRun<J: Job>: JobEffects {
    /// The values of the job.
    public let job: J
    /// The ID of the job's object.
    public let id: NSManagedObjectID
    /// The number of this attempt, from 1 on.
    public let attempt: Int
    /// Whether a failure of this attempt is final.
    public let isLastAttempt: Bool

    /// A context for the effects of the job, on the worker's stores.
    ///
    /// When the handler returns, the changes of this context and the end of the job are one save. So they happen exactly
    /// once, even if a process dies. If the handler throws, then they are dropped. If an attempt does not succeed, then its
    /// other effects happen again: those outside of the store, and those that the handler has saved by itself.
    ///
    /// That save uses the policy of `NSMergePolicy.error`.
    public var context: NSManagedObjectContext { effects.context }

    private let effects: RunContext
    private let desk: JobDesk
    private let claim: JobClaim

    init(_ job: J, _ claim: JobClaim, _ effects: RunContext, _ desk: JobDesk) {
        self.job = job
        id = claim.id
        attempt = Int(claim.attempt)
        isLastAttempt = claim.attempt >= claim.maximumAttempts
        self.effects = effects
        self.desk = desk
        self.claim = claim
    }

    /// Stores how far the work has come, at once and for all contexts and processes.
    ///
    /// - Parameters:
    ///   - progress: The part that is done, from 0 to 1.
    ///   - text: A text for people.
    /// - Throws: Errors of the store; `CancellationError` if the task is cancelled.
    public func report(progress: Double, _ text: String? = nil) async throws {
        try Task.checkCancellation()
        try await desk.note(min(max(progress, 0), 1), text, of: claim)
    }
}

/// An error with which a handler decides what becomes of its job.
///
/// ```swift
/// struct Charge: Job { var order: Int }
/// let worker = JobWorker(container)
/// worker.handle(Charge.self) { run in
///     guard run.job.order > 0 else { throw JobExit.cancel("there is no such order") }
///     throw JobExit.postpone(.seconds(60))  // the payment service is busy
/// }
/// ```
public enum JobExit: Error, Sendable {
    /// The job is cancelled, with a text that is kept as its failure.
    case cancel(String)
    /// The job runs again after a time, and this attempt does not count.
    case postpone(Duration)
    /// The attempt has failed with a text, and the next one begins after a time instead of the back-off.
    case retry(after: Duration, String)
    /// The job has failed with a text, and there is no further attempt.
    case fail(String)
}

/// How many runs have ended in which way.
///
/// ```swift
/// let counts = JobCounts()
/// print(counts.done, counts.failed)  // 0 0
/// ```
public struct JobCounts: Hashable, Sendable {
    /// Jobs that were done.
    public var done = 0
    /// Attempts that have failed, and will be followed by another.
    public var retried = 0
    /// Jobs whose last attempt has failed.
    public var failed = 0
    /// Jobs that were cancelled.
    public var cancelled = 0
    /// Runs that were postponed or given back without an attempt.
    public var postponed = 0
    /// Runs whose job was another worker's, or was deleted, when they ended: nothing of their contexts was saved.
    public var lost = 0

    /// Makes counts of zero.
    public init() {}

    static func - (new: JobCounts, old: JobCounts) -> JobCounts {
        var counts = new
        counts.done -= old.done
        counts.retried -= old.retried
        counts.failed -= old.failed
        counts.cancelled -= old.cancelled
        counts.postponed -= old.postponed
        counts.lost -= old.lost
        return counts
    }
}
