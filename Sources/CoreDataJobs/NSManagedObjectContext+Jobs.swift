import CoreData

extension NSManagedObjectContext {
    /// Puts a job into its queue, with the next save of this context.
    ///
    /// The job is an object of this context. So it is stored by the same transaction as the changes that cause it, or not
    /// at all, and `rollback()` drops it. Any context of a store with the entities of `JobEntities` can do this, also one with a parent.
    ///
    /// ```swift
    /// struct SendWelcome: Job { var address: String }
    /// try context.enqueue(SendWelcome(address: "ada@example.com")) {
    ///     $0.queue = "mail"
    ///     $0.start = .after(.seconds(60))
    /// }
    /// try context.save()
    /// ```
    ///
    /// If the options have a unique key that another job has, then nothing is made, and that job is returned. If another
    /// context saves a job with that key at the same moment, then the later save throws the conflict of a uniqueness
    /// constraint (133021). `perform(retrying:_:)` runs its block again in that case, which then finds the other job.
    ///
    /// Call it on the queue of the context.
    ///
    /// - Parameters:
    ///   - job: The job.
    ///   - configure: Changes the options, which are those of the type at first.
    /// - Returns: The job as an object: the new one, or the one that has the unique key.
    /// - Throws: `persistentStoreOperation` (134070) if the model lacks the entities, or the options make no sense.
    ///   `EncodingError` if the job cannot be encoded. For a unique key, errors of the store.
    @discardableResult
    public func enqueue<J: Job>(_ job: J, _ configure: (inout JobOptions) throws -> Void = { _ in }) throws -> QueuedJob
    {
        try enqueue(job, as: QueuedJob.self, configure)
    }

    /// Puts a job into its queue as an object of a subclass, with the next save of this context.
    ///
    /// A subclass relates jobs to objects of the program:
    ///
    /// ```swift
    /// @ManagedObject
    /// final class MemberJob: QueuedJob {
    ///     @Managed(.noInverse) var member: Member?
    /// }
    /// @ManagedObject
    /// final class Member: NSManagedObject {
    ///     @Managed var address: String?
    /// }
    /// struct Welcome: Job {}
    /// func welcome(_ member: Member, in context: NSManagedObjectContext) throws {
    ///     try context.enqueue(Welcome(), as: MemberJob.self).member = member
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - job: The job.
    ///   - type: The class of the object, whose entity is in the model.
    ///   - configure: Changes the options, which are those of the type at first.
    /// - Returns: The job as an object: the new one, or the one that has the unique key.
    /// - Throws: As the form without a class, and `persistentStoreOperation` (134070) if the job with the unique key is of
    ///   another class.
    @discardableResult
    public func enqueue<J: Job, Queued: QueuedJob>(
        _ job: J,
        as type: Queued.Type,
        _ configure: (inout JobOptions) throws -> Void = { _ in }
    ) throws -> Queued {
        var options = J.options
        try configure(&options)
        guard persistentStoreCoordinator?.managedObjectModel.entitiesByName[QueuedJob.entityName] != nil else {
            throw FetchPlanner.refused(
                "Jobs need the entities of JobEntities: list JobEntities.classes in the model, or merge JobEntities.model()."
            )
        }
        guard (1...10_000).contains(options.maximumAttempts), options.keep >= .zero, (options.key?.limit ?? 1) > 0,
            (options.unique?.period ?? .zero) >= .zero, !options.queue.isEmpty
        else {
            throw FetchPlanner.refused(
                "A job needs a queue with a name, 1 to 10,000 attempts, a limit of its key of at least 1, and no negative times."
            )
        }
        let payload = try JobCoding.encode(job)
        let now = Date()
        if let unique = options.unique, let other = try owner(ofUniqueKey: unique.key, at: now) {
            guard let other = other as? Queued else {
                throw FetchPlanner.refused("The job with the key “\(unique.key)” is no \(type).")
            }
            return other
        }
        let queued = Queued(context: self)
        queued.name = J.jobName
        queued.payload = payload
        queued.queue = options.queue
        queued.priority = options.priority
        queued.maximumAttempts = options.maximumAttempts
        queued.backoff = try JobCoding.encode(options.backoff)
        queued.keptFor = options.keep.seconds
        queued.enqueuedAt = now
        // A job with a time is taken after a worker has found that its time has come: only the workers' clock counts.
        (queued.state, queued.runAt) =
            switch options.start {
            case .now: (.ready, now)
            case .at(let time): (.scheduled, time)
            case .after(let wait): (.scheduled, now.addingTimeInterval(wait.seconds))
            }
        queued.key = options.key?.name
        queued.keyLimit = options.key?.limit ?? 1
        if let unique = options.unique {
            queued.uniqueKey = unique.key
            if unique.period > .zero { queued.uniqueUntil = now.addingTimeInterval(unique.period.seconds) }
        }
        return queued
    }

    /// The job that has a unique key; `nil` if there is none, or it no longer needs it.
    private func owner(ofUniqueKey key: String, at now: Date) throws -> QueuedJob? {
        let request = QueuedJob.request()
        request.predicate = NSPredicate(format: "uniqueKey == %@", key)
        request.sortDescriptors = nil
        guard let other = try fetch(request).first(where: { $0.uniqueKey == key }) else { return nil }
        guard other.state.isFinished, other.uniqueUntil.map({ $0 <= now }) ?? true else { return other }
        other.uniqueKey = nil
        return nil
    }

    /// Keeps workers from taking jobs of a queue, with the next save of this context.
    ///
    /// Jobs that run are finished. Jobs can still be enqueued.
    ///
    /// ```swift
    /// try context.pauseJobs(in: "mail")
    /// try context.save()
    /// ```
    ///
    /// - Parameter queue: The name of the queue.
    /// - Throws: Errors of the store.
    public func pauseJobs(in queue: String) throws { try setJobs(in: queue, paused: true) }

    /// Lets workers take jobs of a queue again, with the next save of this context.
    ///
    /// ```swift
    /// try context.resumeJobs(in: "mail")
    /// try context.save()
    /// ```
    ///
    /// - Parameter queue: The name of the queue.
    /// - Throws: Errors of the store.
    public func resumeJobs(in queue: String) throws { try setJobs(in: queue, paused: false) }

    private func setJobs(in queue: String, paused: Bool) throws {
        try stateOfJobQueue(queue, makingIt: paused)?.isPaused = paused
    }

    /// Limits how many jobs of a queue run at once, in all workers together, with the next save of this context.
    ///
    /// The number that a worker has for the queue bounds its own runs in addition. If more jobs run already, then they are
    /// finished, and workers take no others meanwhile. Workers notice a change within `JobWorker.Settings.poll`, and those
    /// that are woken by the save within half a second.
    ///
    /// A job counts from the moment when a worker takes it until it ends or waits again. If its worker has died, then it
    /// counts until another worker has taken it after the end of the lease, and has finished it. If a coordinator has several
    /// stores of jobs, then the jobs of each store are counted by themselves.
    ///
    /// ```swift
    /// try context.limitJobs(in: "payments", to: 3)
    /// try context.save()
    /// ```
    ///
    /// - Parameters:
    ///   - queue: The name of the queue.
    ///   - limit: The most jobs, at least 1; `nil` for any number.
    /// - Throws: `persistentStoreOperation` (134070) for a limit below 1, and if `JobQueueState` of the model has no
    ///   attribute `limit`. Otherwise errors of the store.
    public func limitJobs(in queue: String, to limit: Int?) throws {
        guard limit.map({ (1...Int(Int32.max)).contains($0) }) ?? true else {
            throw FetchPlanner.refused(
                "The limit of a queue is at least 1. Use pauseJobs(in:) to let none of its jobs run."
            )
        }
        guard hasJobQueueLimits else {
            throw FetchPlanner.refused(
                "Limits of queues need the attribute “limit” of JobQueueState, an optional Integer 32. Add it to the model."
            )
        }
        let limit = limit.map(Int32.init)
        // An assignment of the same value would be a change, and so a save each time the program starts.
        guard let state = try stateOfJobQueue(queue, makingIt: limit != nil), state.limit != limit else { return }
        state.limit = limit
    }

    private func stateOfJobQueue(_ queue: String, makingIt makes: Bool) throws -> JobQueueState? {
        let request = NSFetchRequest<JobQueueState>(entityName: "JobQueueState")
        request.predicate = NSPredicate(format: "name == %@", queue)
        if let known = try fetch(request).first { return known }
        guard makes else { return nil }
        let state = JobQueueState(context: self)
        state.name = queue
        return state
    }

    /// Whether the model has the attribute for limits, which models of earlier versions lack.
    var hasJobQueueLimits: Bool {
        let model = persistentStoreCoordinator?.managedObjectModel
        return model?.entitiesByName["JobQueueState"]?.attributesByName["limit"] != nil
    }

    /// The names of the queues that are paused.
    ///
    /// ```swift
    /// print(try context.pausedJobQueues().sorted())
    /// ```
    ///
    /// - Returns: The names.
    /// - Throws: Errors of the store.
    public func pausedJobQueues() throws -> Set<String> {
        let request = NSFetchRequest<JobQueueState>(entityName: "JobQueueState")
        request.predicate = NSPredicate(format: "isPaused == YES")
        return Set(try fetch(request).map(\.name))
    }

    /// The queues that have a limit, each with the most of its jobs that run at once in all workers together.
    ///
    /// ```swift
    /// print(try context.jobQueueLimits()["payments"] ?? "no limit")
    /// ```
    ///
    /// - Returns: The limits by the names of the queues.
    /// - Throws: Errors of the store.
    public func jobQueueLimits() throws -> [String: Int] {
        guard hasJobQueueLimits else { return [:] }
        let request = NSFetchRequest<JobQueueState>(entityName: "JobQueueState")
        request.predicate = NSPredicate(format: "limit != nil")
        return jobQueueLimits(in: try fetch(request))
    }

    /// The limits of some queues.
    func jobQueueLimits(in states: [JobQueueState]) -> [String: Int] {
        guard hasJobQueueLimits else { return [:] }
        // Two stores may have a queue.
        return Dictionary(
            states.compactMap { state in state.limit.map { (state.name, Int($0)) } },
            uniquingKeysWith: min
        )
    }
}
