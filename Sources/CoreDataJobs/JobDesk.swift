import CoreData
import StrataLocks

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
    /// Whether the job is to be cancelled: its worker has died before it noticed the request.
    let isCancelRequested: Bool
    /// When the job was due.
    let runAt: Date
    /// When the worker has taken it.
    let start = ContinuousClock.now
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
    ///
    /// - Parameters:
    ///   - limit: The most jobs.
    ///   - queue: The name of the queue.
    ///   - now: The time.
    ///   - looksFirst: Whether there may be none, so that a look saves a claim.
    /// - Returns: The claims.
    /// - Throws: Errors of the store.
    func take(_ limit: Int, of queue: String, at now: Date, looksFirst: Bool = true) async throws -> [JobClaim] {
        try await claim(limit, Self.ready(queue), at: now, looksFirst: looksFirst)
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
        endedBefore end: Date? = nil,
        looksFirst: Bool = true
    ) async throws -> [JobClaim] {
        try await perform { context in
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
                    keyLimit: job.keyLimit,
                    isCancelRequested: job.isCancelRequested,
                    runAt: job.runAt
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
        // A row that nobody has read here is at least as new as the claim. If it is not the newest, then the save finds that.
        var isFresh = context.registeredObject(for: claim.id) == nil
        var own: [String: Any]?
        while true {
            tries += 1
            guard let job = try Self.job(claim, context) else { break }
            // The handler may have changed properties of a subclass. All others are the workers'.
            let changes = own ?? Self.ownChanges(job)
            own = changes
            if !isFresh { context.refresh(job, mergeChanges: false) }
            isFresh = false
            // The row is read here: it may have gone since, and a property cannot throw.
            guard try Self.job(claim, context) != nil else { break }
            let isHad = job.state == .running && job.claimedBy == worker && job.attempt == claim.attempt
            guard isHad || FaultGuard.jobCheck.isOff else { break }
            for (name, value) in changes { job.setValue(value is NSNull ? nil : value, forKey: name) }
            try change(job)
            let state = job.state
            // The heartbeat and those who look after jobs change only the job, so that this can be repeated.
            do {
                // The row keeps a unique key for its period.
                if state == .done || state == .cancelled, job.keptFor <= 0, job.uniqueKey == nil { context.delete(job) }
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

    /// Changes several jobs of this worker and saves, in a context that may have other changes.
    ///
    /// - Returns: Whether all were still this worker's; otherwise all changes are dropped.
    /// - Throws: Errors of the save. All changes of the context are dropped then.
    func settle(
        _ claims: [JobClaim],
        in context: NSManagedObjectContext,
        _ change: @Sendable @escaping (QueuedJob) throws -> Void
    ) async throws -> Bool {
        try await context.perform {
            do {
                let isSaved = try settleAndWait(claims, context, change)
                if !isSaved { context.rollback() }
                return isSaved
            } catch {
                context.rollback()
                throw error
            }
        }
    }

    private func settleAndWait(
        _ claims: [JobClaim],
        _ context: NSManagedObjectContext,
        _ change: (QueuedJob) throws -> Void
    ) throws -> Bool {
        // Only this policy finds that another worker has a job.
        context.mergePolicy = NSMergePolicy.error
        let request = QueuedJob.request()
        request.predicate = NSPredicate(format: "SELF IN %@", claims.map(\.id))
        request.sortDescriptors = nil
        let jobs = try context.fetch(request)
        guard jobs.count == claims.count else { return false }
        let attempts = Dictionary(uniqueKeysWithValues: claims.map { ($0.id, $0.attempt) })
        for tries in 1...Self.patience {
            for job in jobs {
                // A handler that changes a job is called again for each job, where that is kept.
                guard tries > 1 || !job.hasChanges else { return false }
                if tries > 1 { context.refresh(job, mergeChanges: false) }
                guard job.state == .running, job.claimedBy == worker, job.attempt == attempts[job.objectID] else {
                    return false
                }
                try change(job)
            }
            do {
                for job in jobs where job.keptFor <= 0 && job.uniqueKey == nil { context.delete(job) }
                try context.save()
                return true
            } catch let error as CocoaError where error.code == .managedObjectMerge && tries < Self.patience {
                // The heartbeat and those who look after jobs change only jobs.
                let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
                let isOfJobs = conflicts.allSatisfy { conflict in jobs.contains { $0 === conflict.sourceObject } }
                guard !conflicts.isEmpty, isOfJobs else { throw error }
            }
        }
        return false
    }

    /// The unsaved values of a job's properties that `QueuedJob` does not have.
    private static func ownChanges(_ job: QueuedJob) -> [String: Any] {
        var entity = job.entity
        while entity.name != QueuedJob.entityName, let parent = entity.superentity { entity = parent }
        let shared = entity.propertiesByName
        return job.changedValues().filter { shared[$0.key] == nil }
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
    func enterKey(_ claim: JobClaim, at now: Date) async throws -> Bool {
        guard let key = claim.key else { return true }
        for _ in 0..<Self.patience {
            let worker = worker
            let outcome: Entry = try await perform { context in
                try Self.enter(key, claim, worker, context)
            }
            switch outcome {
            case .entered:
                // The next one may have waited for this one's place.
                if claim.keyLimit > 1 { try await unblock(key, limit: claim.keyLimit) }
                return true
            case .lost: return false
            case .cancelled:
                _ = try await settle(claim) { $0.finish(.cancelled, at: now) }
                try await unblock(key, limit: claim.keyLimit)
                return false
            case .blocked:
                // The job that had the place may have ended between the look and the save.
                try await unblock(key, limit: claim.keyLimit)
                return false
            case .again: continue
            }
        }
        // Too many others want it at this moment.
        _ = try await settle(claim) { $0.giveBack(until: nil, at: now) }
        return false
    }

    private enum Entry { case entered, blocked, cancelled, lost, again }

    private static func enter(
        _ key: String,
        _ claim: JobClaim,
        _ worker: String,
        _ context: NSManagedObjectContext
    ) throws -> Entry {
        guard let job = try job(claim, context), job.state == .running,
            job.claimedBy == worker, job.attempt == claim.attempt
        else { return .lost }
        if job.isCancelRequested { return .cancelled }
        // It had a worker before, which has died.
        if job.keyPlace != nil { return .entered }
        let places = QueuedJob.request()
        places.predicate = NSPredicate(
            format: "state == %@ AND key == %@ AND keyPlace != nil",
            JobState.running.rawValue,
            key
        )
        places.sortDescriptors = nil
        let taken = try context.fetch(places)
        let isBusy = taken.count >= job.keyLimit
        if try !isBusy && !hasPredecessor(job, key, context) {
            let used = Set(taken.compactMap(\.keyPlace))
            job.keyPlace = (0..<Int(job.keyLimit)).lazy.map { "\(key)#\($0)" }.first { !used.contains($0) }
        } else {
            job.takeBackAttempt()
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
            // The others of the key and queue would come to the same end, one by one.
            try update(
                "key == %@ AND state == %@ AND queue == %@",
                [key, JobState.ready.rawValue, claim.queue],
                ["state": JobState.blocked.rawValue],
                context
            )
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

    /// Makes the next job of a key ready in each queue, if there is a place for it.
    ///
    /// No queue waits for a ready job of another one, which may be paused. If several jobs are ready, then only as many start as there are places.
    func unblock(_ key: String, limit: Int16) async throws {
        var queue = ""
        while let next = try await nextQueue(after: queue, ofBlocked: key) {
            queue = next
            for _ in 0..<Self.patience {
                let isOver: Bool = try await perform { try Self.unblock(key, limit, next, $0) }
                if isOver { break }
            }
        }
    }

    private func nextQueue(after queue: String, ofBlocked key: String) async throws -> String? {
        try await perform { context in
            let next = QueuedJob.request(.blocked)
            next.predicate = NSPredicate(
                format: "key == %@ AND state == %@ AND queue > %@",
                key,
                JobState.blocked.rawValue,
                queue
            )
            next.sortDescriptors = [NSSortDescriptor(key: "queue", ascending: true)] + QueuedJob.inOrder
            next.fetchLimit = 1
            return try context.fetch(next).first?.queue
        }
    }

    /// Makes the next job of a key and queue ready.
    ///
    /// - Returns: Whether there is no other that could be made ready.
    private static func unblock(_ key: String, _ limit: Int16, _ queue: String, _ context: NSManagedObjectContext)
        throws -> Bool
    {
        let running = try context.count(for: ids("key == %@ AND state == %@", key, JobState.running.rawValue))
        let ready = try context.count(
            for: ids("key == %@ AND state == %@ AND queue == %@", key, JobState.ready.rawValue, queue)
        )
        guard running + ready < limit else { return true }
        let next = QueuedJob.request(.blocked)
        next.predicate = NSPredicate(
            format: "key == %@ AND state == %@ AND queue == %@",
            key,
            JobState.blocked.rawValue,
            queue
        )
        next.fetchLimit = 1
        // A job behind one without a place would only be blocked again.
        guard let job = try context.fetch(next).first, try !hasPredecessor(job, key, context) else { return true }
        job.state = .ready
        do {
            try context.save()
            return running + ready + 1 >= limit
        } catch let error as CocoaError where error.code == .managedObjectMerge {
            return false
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
                let byKey = ["key", "queue"].map { NSSortDescriptor(key: $0, ascending: true) }
                request.sortDescriptors = byKey + QueuedJob.inOrder
                request.fetchLimit = 1
                return try context.fetch(request).first.flatMap { job in job.key.map { ($0, job.keyLimit) } }
            }
            guard let next else { return }
            last = next.key
            try await unblock(next.key, limit: next.limit)
        }
    }

    /// Deletes a portion of the jobs that are no longer kept.
    ///
    /// - Returns: Whether there may be more.
    func purge(at now: Date) async throws -> Bool {
        let ids = try await expired(at: now)
        try await delete(ids, at: now)
        return ids.count == Self.portion
    }

    /// A portion of the jobs that are no longer kept.
    func expired(at now: Date) async throws -> [NSManagedObjectID] {
        try await perform { context in
            let old = Self.ids("expiresAt != nil AND expiresAt <= %@", now as NSDate)
            old.sortDescriptors = [NSSortDescriptor(key: "expiresAt", ascending: true)]
            old.fetchLimit = Self.portion
            return try context.fetch(old)
        }
    }

    /// Deletes those of some jobs that are still not kept: one may have been retried since the look.
    func delete(_ ids: [NSManagedObjectID], at now: Date) async throws {
        guard !ids.isEmpty else { return }
        try await perform { context in
            let old = Self.ids("SELF IN %@ AND expiresAt != nil AND expiresAt <= %@", [ids, now as NSDate])
            _ = try context.execute(NSBatchDeleteRequest(fetchRequest: old))
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
    ///
    /// A job that is to be cancelled is cancelled instead.
    func giveBack(until time: Date?, at now: Date) {
        if isCancelRequested { return finish(.cancelled, at: now) }
        takeBackAttempt()
        state = time == nil ? .ready : .scheduled
        if let time { runAt = time }
    }

    /// Ends the claim, so that its attempt does not count.
    func takeBackAttempt() {
        attempt -= 1
        giveUp()
    }
}
