import CoreData

/// A job that a worker has taken: what its run needs to know, without an object.
struct JobClaim: Sendable {
    let id: NSManagedObjectID
    let name: String
    let payload: String
    let queue: String
    /// The number of the attempt, which tells this claim from all others of the job.
    let attempt: Int16
    let maximumAttempts: Int16
    let key: String?
    let keyLimit: Int16
}

/// The reads and writes of one worker in the store.
///
/// Each function is one short block of the context, which holds no objects between them.
struct JobDesk: Sendable {
    let coordinator: NSPersistentStoreCoordinator
    /// The name of the worker.
    let worker: String
    let lease: Duration
    private let context: NSManagedObjectContext

    /// The most rows that one block changes.
    static let portion = 500
    /// How often a change of a job is tried again if another process changes the same job.
    private static let patience = 10

    init(_ coordinator: NSPersistentStoreCoordinator, worker: String, lease: Duration) {
        self.coordinator = coordinator
        self.worker = worker
        self.lease = lease
        context = Self.context(coordinator, worker)
    }

    private static func context(_ coordinator: NSPersistentStoreCoordinator, _ name: String) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.name = name
        context.undoManager = nil
        return context
    }

    /// A context for one run.
    func newContext() -> NSManagedObjectContext { Self.context(coordinator, worker + " run") }

    private func perform<T>(_ body: sending @escaping (NSManagedObjectContext) throws -> sending T) async throws
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
    func take(_ limit: Int, of queue: String, at now: Date) async throws -> [JobClaim] {
        try await claim(limit, Self.ready(queue), at: now)
    }

    /// Takes jobs of a queue whose worker has not renewed its lease.
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
        endedBefore end: Date? = nil
    ) async throws -> [JobClaim] {
        try await perform { context in
            // On a file a claim waits for the writer even if there is nothing to take, so this looks first. A server has no
            // writer to wait for, and plans a look by its statistics, which for a queue are often wrong.
            let isFile = coordinator.persistentStores.allSatisfy {
                [NSSQLiteStoreType, NSInMemoryStoreType].contains($0.type)
            }
            let look = Self.ids("", [])
            look.predicate = jobs.request.predicate
            if let end {
                let hasEnded = NSPredicate(format: "claimedUntil <= %@", end as NSDate)
                look.predicate = NSCompoundPredicate(andPredicateWithSubpredicates: [look.predicate!, hasEnded])
            }
            look.sortDescriptors = QueuedJob.inOrder
            look.fetchLimit = 1
            if isFile || end != nil, try context.fetch(look).isEmpty { return [] }
            let taken = try context.claim(
                jobs.request,
                as: worker,
                for: lease,
                limit: limit,
                setting: [
                    "state": JobState.running.rawValue, "attempt": NSExpression(format: "attempt + 1"),
                    "startedAt": now, "progress": 0.0, "progressText": NSNull(),
                ]
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
                    keyLimit: job.keyLimit
                )
            }
        }
    }

    /// The queues of a worker that are paused.
    func pausedQueues() async throws -> Set<String> {
        try await perform { try $0.pausedJobQueues() }
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

    // MARK: - Ending runs

    /// Changes a job of this worker and saves, in a context that may have other changes.
    ///
    /// - Returns: Whether the job was still this worker's, and its state; `nil` if not. Then all changes are dropped.
    /// - Throws: Errors of the save. All changes of the context are dropped then.
    func settle(
        _ claim: JobClaim,
        in context: NSManagedObjectContext? = nil,
        _ change: @Sendable @escaping (QueuedJob) throws -> Void
    ) async throws -> JobState? {
        let context = context ?? self.context
        return try await context.perform {
            do {
                return try settleAndWait(claim, context, change)
            } catch {
                context.rollback()
                throw error
            }
        }
    }

    private func settleAndWait(
        _ claim: JobClaim,
        _ context: NSManagedObjectContext,
        _ change: (QueuedJob) throws -> Void
    ) throws -> JobState? {
        // Only this policy finds that another worker has the job.
        context.mergePolicy = NSMergePolicy.error
        var tries = 0
        while true {
            tries += 1
            guard let job = try Self.job(claim, context) else { break }
            context.refresh(job, mergeChanges: false)
            guard job.state == .running, job.claimedBy == worker, job.attempt == claim.attempt else { break }
            try change(job)
            let state = job.state
            // The heartbeat and those who look after jobs change only the job, so that this can be repeated.
            do {
                if state == .done || state == .cancelled, job.keptFor <= 0 { context.delete(job) }
                try context.save()
                return state
            } catch let error as CocoaError where error.code == .managedObjectMerge && tries < Self.patience {
                let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
                guard !conflicts.isEmpty, conflicts.allSatisfy({ $0.sourceObject === job }) else { throw error }
                context.refresh(job, mergeChanges: false)
            }
        }
        context.rollback()
        return nil
    }

    /// The object of a claim; `nil` if it was deleted.
    private static func job(_ claim: JobClaim, _ context: NSManagedObjectContext) throws -> QueuedJob? {
        do {
            return try context.existingObject(with: claim.id) as? QueuedJob
        } catch let error as CocoaError where error.code == .managedObjectReferentialIntegrity {
            return nil
        }
    }

    // MARK: - Keys

    /// Takes a place among the jobs with the same key, or lets the job wait for one.
    ///
    /// - Returns: Whether the job may run.
    func enterKey(_ claim: JobClaim) async throws -> Bool {
        guard let key = claim.key else { return true }
        for _ in 0..<Self.patience {
            let worker = worker
            let outcome: Entry = try await perform { context in
                try Self.enter(key, claim, worker, context)
            }
            switch outcome {
            case .entered: return true
            case .lost: return false
            case .blocked:
                // The job that had the place may have ended between the look and the save.
                try await unblock(key, limit: claim.keyLimit)
                return false
            case .again: continue
            }
        }
        // Too many others want it at this moment.
        _ = try await settle(claim) { $0.giveBack(until: nil) }
        return false
    }

    private enum Entry { case entered, blocked, lost, again }

    private static func enter(
        _ key: String,
        _ claim: JobClaim,
        _ worker: String,
        _ context: NSManagedObjectContext
    ) throws -> Entry {
        guard let job = try job(claim, context), job.state == .running,
            job.claimedBy == worker, job.attempt == claim.attempt
        else { return .lost }
        // It had a worker before, which has died.
        if job.keyPlace != nil { return .entered }
        let places = QueuedJob.request()
        places.predicate = NSPredicate(
            format: "state == %@ AND key == %@ AND keyPlace != nil",
            JobState.running.rawValue,
            key
        )
        let taken = try context.fetch(places)
        let isBusy = taken.count >= job.keyLimit
        if try !isBusy && !hasPredecessor(job, key, context) {
            let used = Set(taken.compactMap(\.keyPlace))
            job.keyPlace = (0..<Int(job.keyLimit)).lazy.map { "\(key)#\($0)" }.first { !used.contains($0) }
        } else {
            job.giveBack(until: nil)
            job.state = .blocked
        }
        let hasEntered = job.keyPlace != nil
        do {
            try context.save()
        } catch let error as CocoaError where [.managedObjectMerge, .managedObjectConstraintMerge].contains(error.code)
        {
            return .again
        }
        if hasEntered { return .entered }
        if isBusy {
            // The others of the key would come to the same end, one by one.
            let ready = JobState.ready.rawValue
            try update("key == %@ AND state == %@", [key, ready], ["state": JobState.blocked.rawValue], context)
        }
        return .blocked
    }

    /// Whether a job of the same key and queue comes before a job, and has no place yet.
    private static func hasPredecessor(_ job: QueuedJob, _ key: String, _ context: NSManagedObjectContext) throws
        -> Bool
    {
        let states = [JobState.ready, .blocked, .running].map(\.rawValue)
        let request = ids(
            """
            key == %@ AND state IN %@ AND queue == %@ AND keyPlace == nil \
            AND (priority > %d OR (priority == %d AND runAt < %@))
            """,
            [key, states, job.queue, Int(job.priority), Int(job.priority), job.runAt as NSDate]
        )
        request.fetchLimit = 1
        return try !context.fetch(request).isEmpty
    }

    /// Makes the next job of a key ready, if there is a place for it.
    func unblock(_ key: String, limit: Int16) async throws {
        for _ in 0..<Self.patience {
            let isOver: Bool = try await perform { context in
                let open = [JobState.ready, .running].map(\.rawValue)
                let inFlight = try context.count(for: Self.ids("key == %@ AND state IN %@", key, open))
                guard inFlight < limit else { return true }
                let next = QueuedJob.request(.blocked)
                next.predicate = NSPredicate(format: "key == %@ AND state == %@", key, JobState.blocked.rawValue)
                next.fetchLimit = 1
                guard let job = try context.fetch(next).first else { return true }
                job.state = .ready
                do {
                    try context.save()
                    return inFlight + 1 >= limit
                } catch let error as CocoaError where error.code == .managedObjectMerge {
                    return false
                }
            }
            if isOver { return }
        }
    }

    // MARK: - Looking after the store

    /// Makes jobs ready that wait for a key which no job has; such a wait remains if a worker dies between two saves.
    func unblockAll() async throws {
        var last = ""
        // One look for each key, however many jobs wait for it.
        while true {
            let after = last
            let next: (key: String, limit: Int16)? = try await perform { context in
                let request = QueuedJob.request(.blocked)
                request.predicate = NSPredicate(format: "state == %@ AND key > %@", JobState.blocked.rawValue, after)
                request.sortDescriptors = [NSSortDescriptor(key: "key", ascending: true)] + QueuedJob.inOrder
                request.fetchLimit = 1
                return try context.fetch(request).first.flatMap { job in job.key.map { ($0, job.keyLimit) } }
            }
            guard let next else { return }
            last = next.key
            try await unblock(next.key, limit: next.limit)
        }
    }

    /// Deletes jobs that are no longer kept.
    ///
    /// - Returns: The number of jobs.
    func purge(at now: Date) async throws -> Int {
        var count = 0
        while true {
            let deleted: Int = try await perform { context in
                let old = Self.ids("expiresAt != nil AND expiresAt <= %@", now as NSDate)
                old.sortDescriptors = [NSSortDescriptor(key: "expiresAt", ascending: true)]
                old.fetchLimit = Self.portion
                let ids = try context.fetch(old)
                guard !ids.isEmpty else { return 0 }
                _ = try context.execute(NSBatchDeleteRequest(objectIDs: ids))
                return ids.count
            }
            count += deleted
            if deleted < Self.portion { return count }
        }
    }

    // MARK: - Schedules

    /// Enqueues a job of a schedule for the newest of its times, if no other worker has.
    ///
    /// - Returns: The next time.
    func enqueue(_ schedule: JobScheduleEntry, at now: Date) async throws -> Date? {
        for _ in 0..<Self.patience {
            let outcome: (next: Date?, isOver: Bool) = try await perform { context in
                let request = NSFetchRequest<JobScheduleState>(entityName: "JobScheduleState")
                request.predicate = NSPredicate(format: "name == %@", schedule.name)
                let state: JobScheduleState
                if let known = try context.fetch(request).first {
                    state = known
                    guard let time = schedule.times.latest(after: known.lastTime, through: now) else {
                        return (schedule.times.next(after: max(known.lastTime, now)), true)
                    }
                    state.lastTime = time
                    _ = try schedule.enqueue(time, context)
                } else {
                    state = JobScheduleState(context: context)
                    state.name = schedule.name
                    state.lastTime = now
                }
                do {
                    try context.save()
                } catch let error as CocoaError
                    where [.managedObjectMerge, .managedObjectConstraintMerge].contains(error.code)
                {
                    // Another worker was first.
                    return (nil, false)
                }
                return (schedule.times.next(after: now), true)
            }
            if outcome.isOver { return outcome.next }
        }
        return nil
    }

    // MARK: - Requests

    private static func ids(_ format: String, _ arguments: any CVarArg...) -> NSFetchRequest<NSManagedObjectID> {
        ids(format, arguments as [Any])
    }

    private static func ids(_ format: String, _ arguments: [Any]) -> NSFetchRequest<NSManagedObjectID> {
        let request = NSFetchRequest<NSManagedObjectID>(entityName: QueuedJob.entityName)
        request.resultType = .managedObjectIDResultType
        if !format.isEmpty { request.predicate = NSPredicate(format: format, argumentArray: arguments) }
        return request
    }

    private static func update(
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

extension QueuedJob {
    /// Gives the job back without an attempt: it waits for a worker, or for a time.
    func giveBack(until time: Date?) {
        attempt -= 1
        state = time == nil ? .ready : .scheduled
        if let time { runAt = time }
        giveUp()
    }
}
