import CoreData

/// A job that a worker has taken: what its run needs, without an object.
struct JobClaim: Sendable {
    let id: NSManagedObjectID
    let name: String
    let payload: String
    let queue: String
    /// The number of the attempt.
    ///
    /// A job that was given back has the same number again with its next claim.
    let attempt: Int16
    let maximumAttempts: Int16
    let key: String?
    let keyLimit: Int16
    /// Whether the job is to be cancelled: its worker has died before it noticed the request.
    let isCancelRequested: Bool
    /// When the job was due.
    let runAt: Date
    /// A time before its lease began; tests make it earlier.
    var leasedAfter: ContinuousClock.Instant
    /// When the worker has taken it.
    let start = ContinuousClock.now
    /// The number of the run in its worker, which no other run has; 0 before the run begins.
    var run = 0
}

/// The reads and writes of one worker in the store.
///
/// Each function is one short block of the context, which holds no objects between them.
struct JobDesk: Sendable {
    let coordinator: NSPersistentStoreCoordinator
    /// The name of the worker.
    let worker: String
    let lease: Duration
    let context: NSManagedObjectContext
    /// Writes the ends of runs without effects.
    let ends = JobEnds()

    /// The most rows that one block changes.
    static let portion = 500
    /// How often a change of a job is tried again if another process changes the same job.
    static let patience = 10

    init(_ coordinator: NSPersistentStoreCoordinator, worker: String, lease: Duration) {
        self.coordinator = coordinator
        self.worker = worker
        self.lease = lease
        context = Self.context(coordinator, worker)
    }

    static func context(_ coordinator: NSPersistentStoreCoordinator, _ name: String) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.name = name
        context.undoManager = nil
        return context
    }

    /// A context for one run.
    func newContext() -> NSManagedObjectContext { Self.context(coordinator, worker + " run") }

    func perform<T>(_ body: sending @escaping (NSManagedObjectContext) throws -> sending T) async throws
        -> sending T
    {
        let context = context
        return try await context.perform {
            defer { context.reset() }
            return try body(context)
        }
    }

    // MARK: - Taking jobs

    /// Makes jobs ready whose time has come.
    ///
    /// - Returns: Whether there may be more.
    func promote(at now: Date) async throws -> Bool {
        try await perform { context in
            let due = Self.ids("state == %@ AND runAt <= %@", JobState.scheduled.rawValue, now as NSDate)
            due.fetchLimit = Self.portion
            due.sortDescriptors = [NSSortDescriptor(key: "runAt", ascending: true)]
            let ids = try context.fetch(due)
            guard !ids.isEmpty else { return false }
            try Self.update(
                "SELF IN %@ AND state == %@",
                [ids, JobState.scheduled.rawValue],
                ["state": "ready"],
                context
            )
            return ids.count == Self.portion
        }
    }

    /// Takes jobs of a queue.
    ///
    /// - Parameters:
    ///   - limit: The most jobs.
    ///   - queue: The name of the queue.
    ///   - now: The time.
    ///   - looksFirst: Whether there may be none, so that a look saves a claim.
    ///   - most: The most jobs of the queue that run at once in all workers; `nil` for any number.
    /// - Returns: The claims.
    /// - Throws: Errors of the store.
    func take(_ limit: Int, of queue: String, at now: Date, looksFirst: Bool = true, within most: Int? = nil)
        async throws -> [JobClaim]
    {
        try await claim(limit, Self.ready(queue), at: now, looksFirst: looksFirst, within: most.map { (queue, $0) })
    }

    /// Takes jobs of a queue whose worker has not renewed its lease.
    ///
    /// They are running, so they count already if the queue has a limit.
    func rescue(_ limit: Int, of queue: String, at now: Date) async throws -> [JobClaim] {
        let left = QueuedJob.request(.running, queue: queue)
        return try await claim(limit, UncheckedRequest(left), at: now, endedBefore: Date())
    }

    private static func ready(_ queue: String) -> UncheckedRequest {
        UncheckedRequest(QueuedJob.request(.ready, queue: queue))
    }

    /// A request that only one block uses.
    private struct UncheckedRequest: @unchecked Sendable {
        let request: NSFetchRequest<QueuedJob>
        init(_ request: NSFetchRequest<QueuedJob>) { self.request = request }
    }

    private func claim(
        _ limit: Int,
        _ jobs: UncheckedRequest,
        at now: Date,
        endedBefore end: Date? = nil,
        looksFirst: Bool = true,
        within bound: (queue: String, most: Int)? = nil
    ) async throws -> [JobClaim] {
        try await perform { context in
            let quota = bound.flatMap { bound in
                QueuedJob.request(.running, queue: bound.queue).predicate.map {
                    ClaimQuota(counting: $0, most: bound.most, name: "jobs of \(bound.queue)")
                }
            }
            if let quota {
                // While the queue is full, each job that ends wakes all workers. A look lets them not wait for each other's claims.
                let running = Self.ids("", [])
                running.predicate = quota.counted
                if try context.count(for: running) >= quota.most { return [] }
            }
            // On a file a claim waits for the writer even if there is nothing to take, so this looks first. A server has no
            // writer to wait for, and plans a look by its statistics, which for a queue are often wrong.
            let isFile = coordinator.persistentStores.allSatisfy {
                [NSSQLiteStoreType, NSInMemoryStoreType].contains($0.type)
            }
            // A claim whose reads have failed gives up its leases, and leaves the jobs running.
            let hasEnded = end.map { NSPredicate(format: "claimedUntil == nil OR claimedUntil <= %@", $0 as NSDate) }
            let conditions = [jobs.request.predicate, hasEnded].compactMap { $0 }
            let look = Self.ids("", [])
            look.predicate = NSCompoundPredicate(andPredicateWithSubpredicates: conditions)
            look.sortDescriptors = QueuedJob.inOrder
            look.fetchLimit = 1
            if looksFirst, isFile || end != nil, try context.fetch(look).isEmpty { return [] }
            let leasedAfter = ContinuousClock.now
            let taken = try context.claim(
                jobs.request,
                as: worker,
                for: lease,
                limit: limit,
                setting: [
                    "state": JobState.running.rawValue, "attempt": NSExpression(format: "attempt + 1"),
                    "startedAt": now, "progress": 0.0, "progressText": NSNull(),
                ],
                within: quota
            )
            return taken.map { job in
                JobClaim(
                    id: job.objectID,
                    name: job.name,
                    payload: job.payload,
                    queue: job.queue,
                    attempt: job.attempt,
                    maximumAttempts: job.maximumAttempts,
                    key: job.key,
                    keyLimit: job.keyLimit,
                    isCancelRequested: job.isCancelRequested,
                    runAt: job.runAt,
                    leasedAfter: leasedAfter
                )
            }
        }
    }

    /// The queues that are paused, and the limits of others.
    func queueRules() async throws -> (paused: Set<String>, limits: [String: Int]) {
        try await perform { context in
            let request = NSFetchRequest<JobQueueState>(entityName: "JobQueueState")
            request.returnsObjectsAsFaults = false
            let states = try context.fetch(request)
            return (Set(states.filter(\.isPaused).map(\.name)), context.jobQueueLimits(in: states))
        }
    }

    /// The time of the next job that waits for one.
    func nextTime() async throws -> Date? {
        try await perform { context in
            let next = QueuedJob.request(.scheduled)
            next.sortDescriptors = [NSSortDescriptor(key: "runAt", ascending: true)]
            next.fetchLimit = 1
            return try context.fetch(next).first?.runAt
        }
    }

    // MARK: - While jobs run

    /// Renews the leases of jobs.
    ///
    /// - Returns: The jobs that the worker still has.
    func renew(_ ids: [NSManagedObjectID]) async throws -> Set<NSManagedObjectID> {
        try await perform { context in
            let jobs = ids.map { context.object(with: $0) }
            return Set(try context.renew(jobs, as: worker, for: lease).map(\.objectID))
        }
    }

    /// Whether the worker still has a job by this claim, right before its handler begins; renews the lease then.
    func stillHas(_ claim: JobClaim) async throws -> Bool {
        try await perform { context in
            let object = context.object(with: claim.id)
            // The worker may have claimed the job again, as another attempt.
            return try !context.renew([object], as: worker, for: lease).isEmpty
                && Self.job(claim, context)?.attempt == claim.attempt
        }
    }

    /// Those of some jobs that are to be cancelled.
    func cancelRequests(among ids: [NSManagedObjectID]) async throws -> [NSManagedObjectID] {
        try await perform { try $0.fetch(Self.ids("SELF IN %@ AND isCancelRequested == YES", ids)) }
    }

    /// Notes the progress of a job.
    func note(_ progress: Double, _ text: String?, of claim: JobClaim) async throws {
        try await perform { context in
            try Self.update(
                "SELF == %@ AND claimedBy == %@ AND attempt == %d",
                [claim.id, worker, Int(claim.attempt)],
                ["progress": progress, "progressText": text ?? NSNull()],
                context
            )
        }
    }

    // MARK: - Requests

    static func ids(_ format: String, _ arguments: any CVarArg...) -> NSFetchRequest<NSManagedObjectID> {
        ids(format, arguments as [Any])
    }

    static func ids(_ format: String, _ arguments: [Any]) -> NSFetchRequest<NSManagedObjectID> {
        let request = NSFetchRequest<NSManagedObjectID>(entityName: QueuedJob.entityName)
        request.resultType = .managedObjectIDResultType
        if !format.isEmpty { request.predicate = NSPredicate(format: format, argumentArray: arguments) }
        return request
    }

    static func update(
        _ format: String,
        _ arguments: [Any],
        _ values: [AnyHashable: Any],
        _ context: NSManagedObjectContext
    ) throws {
        let update = NSBatchUpdateRequest(entityName: QueuedJob.entityName)
        update.predicate = NSPredicate(format: format, argumentArray: arguments)
        update.propertiesToUpdate = values
        _ = try context.execute(update)
    }
}
