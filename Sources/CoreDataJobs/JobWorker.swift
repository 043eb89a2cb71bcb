import CoreData
import StrataLocks

/// Takes jobs from queues and runs their handlers, several at once.
///
/// ```swift
/// struct SendWelcome: Job { var address: String }
///
/// let worker = JobWorker(container, queues: ["default": 4, "mail": 2])
/// worker.handle(SendWelcome.self) { run in print("Welcome,", run.job.address) }
/// let counts = try await worker.drain()  // a server calls run()
/// print(counts.done)
/// ```
///
/// Any number of workers, in any number of processes, share the queues of a store. A worker has a lease of each job that it
/// runs, and renews it until the run ends. If the worker dies, then another one takes the job when the lease has ended.
///
/// A handler runs at least once for each job. The effects that it has in ``JobRun/context`` happen exactly once. Handlers
/// run in tasks. A second handler for a type replaces the first one.
public final class JobWorker: Sendable {
    /// The name, which differs from those of all other workers.
    ///
    /// If two workers have the same name, then each takes the jobs of the other for its own, and leases do not protect
    /// them.
    public let name: String
    /// The queues, each with the number of its jobs that this worker runs at once.
    ///
    /// If the number is 0, then the worker takes no job of the queue. `context.limitJobs(in:to:)` limits a queue for all
    /// workers together.
    public let queues: [String: Int]

    let settings: Settings
    let desk: JobDesk
    let bell = JobBell()
    let state = Locked(State())

    /// How a worker works.
    ///
    /// ```swift
    /// var settings = JobWorker.Settings()
    /// settings.lease = .seconds(30)
    /// let worker = JobWorker(container, queues: ["default": 1], settings: settings)
    /// print(worker.queues)
    /// ```
    public struct Settings: Sendable {
        /// How long a worker that has died keeps its jobs; a minute by default.
        ///
        /// The clock is that of the store: the server's for PostgreSQL, the machine's otherwise. Leases are renewed after
        /// a third of the time. Choose more than the longest time for which the process may stand still.
        public var lease = Duration.seconds(60)
        /// How often the worker looks for jobs if nothing wakes it; a second by default.
        ///
        /// A save of this process wakes it, and with `NSPersistentStoreRemoteChangeNotificationPostOptionKey` so does each
        /// save of another process.
        public var poll = Duration.seconds(1)
        /// How often the worker deletes jobs that are no longer kept; a minute by default.
        public var maintenance = Duration.seconds(60)
        /// The wait after which a job is looked at again if a worker has no handler for it; 30 seconds by default.
        ///
        /// A worker of a newer program may take it before.
        public var unknownJobDelay = Duration.seconds(30)
        /// The clock that decides which jobs are due.
        public var clock: any JobClock = SystemJobClock()

        /// Makes the default settings.
        public init() {}
    }

    /// Runs the handler of a type, and returns its output as JSON.
    typealias Handler = @Sendable (JobClaim, RunContext, JobDesk) async throws -> String?

    /// Runs the handler of a type for several jobs.
    struct GroupHandler {
        let most: Int
        let run: @Sendable ([JobClaim], NSManagedObjectContext) async throws -> Void
    }

    struct State {
        var handlers: [String: Handler] = [:]
        var groupHandlers: [String: GroupHandler] = [:]
        var schedules: [JobScheduleEntry] = []
        var runs: [NSManagedObjectID: Run] = [:]
        /// The number of runs that have begun so far.
        var begunCount = 0
        var counts = JobCounts()
        var isRunning = false
        var stop: Task<Void, Never>?
        var nextBeat: Date?
        var nextMaintenance: Date?
        /// The time of the next job or schedule; `nil` for none.
        var nextTime: Date?
        /// When the worker has looked at everything the last time; `nil` if that has failed.
        var lastLook: ContinuousClock.Instant?
        /// When the bell will be rung.
        var alarm: ContinuousClock.Instant?
        /// The queues that were paused at the last look.
        var pausedQueues: Set<String> = []
        /// The limits of queues for all workers together, as they were at the last look.
        var queueLimits: [String: Int] = [:]
        /// The queues in which the last claim found as many jobs as it looked for.
        var deepQueues: Set<String> = []
        var lastClaim: ContinuousClock.Instant?
        /// How long the last claim has taken.
        var claimCost = Duration.zero
        /// How long the last look at everything has taken.
        var lookCost = Duration.zero
        /// When the worker has looked for requests to cancel jobs the last time.
        var lastRequestLook: ContinuousClock.Instant?
        /// Whether the last run was so quick that a claim for each free place would cost more than a short wait.
        var isQuick = false
        /// When a store failed the last time, so that a failure is not reported each second.
        var isFailing = false
    }

    /// A run that has begun.
    struct Run {
        let claim: JobClaim
        var task: Task<Void, Never>?
        var end: End?

        /// Why a run was cancelled from outside.
        enum End { case cancelled, lost, stopped }
    }

    /// Makes a worker for the stores of a container, which are loaded.
    ///
    /// - Parameters:
    ///   - container: The container.
    ///   - queues: The queues, each with the number of its jobs that this worker runs at once; by default four jobs of the
    ///     queue `default`.
    ///   - name: The name, which differs from those of all other workers; by default a new one.
    ///   - settings: How the worker works.
    public convenience init(
        _ container: NSPersistentContainer,
        queues: [String: Int] = ["default": 4],
        name: String? = nil,
        settings: Settings = Settings()
    ) {
        self.init(container.persistentStoreCoordinator, queues: queues, name: name, settings: settings)
    }

    /// Makes a worker for the stores of a coordinator.
    ///
    /// - Parameters:
    ///   - coordinator: The coordinator.
    ///   - queues: The queues, each with the number of its jobs that this worker runs at once; by default four jobs of the
    ///     queue `default`.
    ///   - name: The name, which differs from those of all other workers; by default a new one.
    ///   - settings: How the worker works.
    public init(
        _ coordinator: NSPersistentStoreCoordinator,
        queues: [String: Int] = ["default": 4],
        name: String? = nil,
        settings: Settings = Settings()
    ) {
        let process = ProcessInfo.processInfo
        self.name = name ?? "\(process.hostName) \(process.processIdentifier) \(UUID().uuidString.prefix(8))"
        self.queues = queues
        self.settings = settings
        desk = JobDesk(coordinator, worker: self.name, lease: settings.lease)
    }

    /// How the runs of this worker have ended so far.
    public var counts: JobCounts { state.withLock { $0.counts } }

    /// The number of jobs that run.
    public var runningCount: Int { state.withLock { $0.runs.count } }
}
