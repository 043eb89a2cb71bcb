import CoreData

/// A job in the store: an object like any other, made by `context.enqueue`.
///
/// It can be fetched, shown, and related to objects of the program by a subclass. The attributes are written by `enqueue`
/// and by workers. Change a job with ``cancel()`` and ``retry()``, and save.
///
/// ```swift
/// let failed = NSFetchRequest<QueuedJob>(entityName: "QueuedJob")
/// failed.predicate = NSPredicate(format: "state == %@", JobState.failed.rawValue)
/// for job in try context.fetch(failed) {
///     print(job.name, job.failure ?? "")
///     job.retry()
/// }
/// try context.save()
/// ```
@ManagedObject(
    .index("byQueue", on: "queue", "state", .descending("priority"), "runAt"),
    .index("byTime", on: "state", "runAt"),
    .index("byKey", on: "state", "key", "queue", .descending("priority"), "runAt", where: "key != nil"),
    .index("byExpiry", on: "expiresAt", where: "expiresAt != nil")
)
open class QueuedJob: NSManagedObject {
    /// The name of the job's type.
    @Managed(.default("")) public internal(set) var name: String
    /// The name of its queue.
    @Managed(.default("default")) public internal(set) var queue: String
    /// Its rank in the queue; jobs with a higher one come first.
    @Managed(.default(0)) public internal(set) var priority: Int16
    /// Its state.
    @Managed(.default(JobState.ready)) public internal(set) var state: JobState
    /// The values of the job, as JSON.
    @Managed(.default("{}")) public internal(set) var payload: String
    /// When it was enqueued.
    @Managed(.required) public internal(set) var enqueuedAt: Date
    /// The time from which it may run; it changes with each attempt.
    @Managed(.required) public internal(set) var runAt: Date
    /// The number of attempts that have begun.
    @Managed(.default(0)) public internal(set) var attempt: Int16
    /// The number of attempts after which it has failed.
    @Managed(.default(10)) public internal(set) var maximumAttempts: Int16
    /// The wait after a failed attempt, as JSON.
    @Managed(.default("")) var backoff: String
    /// The worker that has it; nil if no worker has.
    @Managed public internal(set) var claimedBy: String?
    /// The time when the worker's lease ends.
    @Managed public internal(set) var claimedUntil: Date?
    /// When the newest attempt began.
    @Managed public internal(set) var startedAt: Date?
    /// When it was done, or had failed, or was cancelled.
    @Managed public internal(set) var finishedAt: Date?
    /// The time from which it may be deleted; nil if it is kept.
    @Managed public internal(set) var expiresAt: Date?
    /// How long it is kept after it has finished, in seconds.
    @Managed(.default(86_400)) var keptFor: Double
    /// The value that the handler has returned, as JSON.
    @Managed public internal(set) var output: String?
    /// The text of the newest error; it stays when a later attempt succeeds.
    @Managed public internal(set) var failure: String?
    /// When that error occurred.
    @Managed public internal(set) var failedAt: Date?
    /// The number of the attempt in which it occurred.
    @Managed(.default(0)) public internal(set) var failedAttempt: Int16
    /// How much of the work is done, from 0 to 1, as the handler says.
    @Managed(.default(0)) public internal(set) var progress: Double
    /// The handler's text about its progress.
    @Managed public internal(set) var progressText: String?
    /// Whether a worker should cancel it, which notices that soon.
    @Managed(.default(false)) public internal(set) var isCancelRequested: Bool
    /// The key of which only some jobs run at once.
    @Managed public internal(set) var key: String?
    /// The number of jobs with the key that may run at once.
    @Managed(.default(1)) var keyLimit: Int16
    /// The place among those jobs, while it runs: no two jobs have the same.
    @Managed(.unique) var keyPlace: String?
    /// The key that no other job has.
    @Managed(.unique) public internal(set) var uniqueKey: String?
    /// The time until which it keeps that key, at least.
    @Managed var uniqueUntil: Date?
}

extension QueuedJob {
    /// A request for jobs, as a typed value.
    ///
    /// ```swift
    /// let running = try context.fetch(QueuedJob.request(.running, queue: "mail"))
    /// print(running.map(\.progress))
    /// ```
    ///
    /// - Parameters:
    ///   - states: The states; all by default.
    ///   - queue: The queue; `nil` for all.
    /// - Returns: A request for the jobs in the order of their queue.
    public static func request(_ states: JobState..., queue: String? = nil) -> NSFetchRequest<QueuedJob> {
        let request = NSFetchRequest<QueuedJob>(entityName: entityName)
        var predicates: [NSPredicate] = []
        if let queue { predicates.append(NSPredicate(format: "queue == %@", queue)) }
        if states.count == 1 {
            predicates.append(NSPredicate(format: "state == %@", states[0].rawValue))
        } else if !states.isEmpty {
            predicates.append(NSPredicate(format: "state IN %@", states.map(\.rawValue)))
        }
        if !predicates.isEmpty { request.predicate = NSCompoundPredicate(andPredicateWithSubpredicates: predicates) }
        request.sortDescriptors = inOrder
        return request
    }

    /// The order in which jobs of a queue are taken.
    static var inOrder: [NSSortDescriptor] {
        [NSSortDescriptor(key: "priority", ascending: false), NSSortDescriptor(key: "runAt", ascending: true)]
    }

    static let entityName = "QueuedJob"

    /// The values of the job.
    ///
    /// ```swift
    /// struct SendWelcome: Job { var address: String }
    /// for job in try context.fetch(QueuedJob.request(.failed)) where job.name == SendWelcome.jobName {
    ///     print(try job.payload(as: SendWelcome.self).address)
    /// }
    /// ```
    ///
    /// - Parameter type: The type of the job.
    /// - Returns: The job.
    /// - Throws: `DecodingError` if they are not those of this type.
    public func payload<J: Job>(as type: J.Type) throws -> J { try JobCoding.decode(type, payload) }

    /// The value that the handler has returned.
    ///
    /// ```swift
    /// struct Thumbnail: Job {
    ///     typealias Output = [Int]
    ///     var photo: String
    /// }
    /// for job in try context.fetch(QueuedJob.request(.done)) where job.name == Thumbnail.jobName {
    ///     print(try job.output(of: Thumbnail.self) ?? [])
    /// }
    /// ```
    ///
    /// - Parameter type: The type of the job.
    /// - Returns: The output; `nil` if the job is not done.
    /// - Throws: `DecodingError` if it is not the output of this type.
    public func output<J: Job>(of type: J.Type) throws -> J.Output? {
        try output.map { try JobCoding.decode(J.Output.self, $0) }
    }

    /// Cancels the job, with the next save of the context.
    ///
    /// A job that runs is cancelled by its worker: the task of the handler is cancelled, and if the handler throws then the
    /// job is cancelled; if it returns then the job is done. A finished job other than a failed one stays as it is.
    ///
    /// ```swift
    /// for job in try context.fetch(QueuedJob.request(.ready, queue: "mail")) { job.cancel() }
    /// try context.save()
    /// ```
    public func cancel() {
        switch state {
        case .running: isCancelRequested = true
        case .done, .cancelled: break
        case .scheduled, .ready, .blocked, .failed: finish(.cancelled, at: Date())
        }
    }

    /// Lets the job run again from its first attempt, with the next save of the context.
    ///
    /// It is for jobs that have failed or were cancelled, and for those that wait for their next attempt, which then run at
    /// once. A job that is ready, blocked, running or done stays as it is. The last failure is kept. A job that has failed has
    /// given up its unique key, unless the period of the key lasts, and does not get it back.
    ///
    /// ```swift
    /// for job in try context.fetch(QueuedJob.request(.failed)) { job.retry() }
    /// try context.save()
    /// ```
    public func retry() {
        guard state == .failed || state == .cancelled || state == .scheduled else { return }
        state = .ready
        runAt = Date()
        attempt = 0
        finishedAt = nil
        expiresAt = nil
        isCancelRequested = false
    }

    // MARK: - Steps of workers

    /// Ends the job, and gives up its claim and its keys.
    func finish(_ state: JobState, at now: Date) {
        self.state = state
        finishedAt = now
        // The row has the unique key, so it stays for its period too.
        expiresAt = state == .failed ? nil : max(now.addingTimeInterval(keptFor), uniqueUntil ?? now)
        isCancelRequested = false
        if uniqueUntil.map({ $0 <= now }) ?? true { uniqueKey = nil }
        giveUp()
    }

    /// Ends the claim.
    func giveUp() {
        claimedBy = nil
        claimedUntil = nil
        keyPlace = nil
    }

    /// Notes an error.
    func note(_ failure: String, at now: Date) {
        // A text of any length would fill the store.
        self.failure = String(failure.prefix(4000))
        failedAt = now
        failedAttempt = attempt
    }
}

/// The JSON in which values of jobs are stored.
enum JobCoding {
    static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func decode<T: Decodable>(_ type: T.Type, _ text: String) throws -> T {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }
}

/// The facts of a queue beside its jobs.
///
/// There is an object for a queue that was paused or had a limit once; see `context.pauseJobs(in:)` and
/// `context.limitJobs(in:to:)`.
///
/// ```swift
/// for queue in try context.fetch(NSFetchRequest<JobQueueState>(entityName: "JobQueueState")) {
///     print(queue.name, queue.isPaused)
/// }
/// ```
@ManagedObject
public final class JobQueueState: NSManagedObject {
    /// The name of the queue.
    @Managed(.unique, .default("")) public internal(set) var name: String
    /// Whether workers take no jobs of it.
    @Managed(.default(false)) public internal(set) var isPaused: Bool
    /// The most jobs of it that run at once, in all workers together; nil for any number.
    @Managed public internal(set) var limit: Int32?
}

/// The state of a schedule: the last time for which a job was enqueued.
///
/// ```swift
/// for schedule in try context.fetch(NSFetchRequest<JobScheduleState>(entityName: "JobScheduleState")) {
///     print(schedule.name, schedule.lastTime)
/// }
/// ```
@ManagedObject
public final class JobScheduleState: NSManagedObject {
    /// The name of the schedule.
    @Managed(.unique, .default("")) public internal(set) var name: String
    /// The last time for which a job was enqueued; at first the time when a worker saw the schedule.
    @Managed(.required) public internal(set) var lastTime: Date
}
