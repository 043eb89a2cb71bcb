import CoreData
import StrataLocks

// The handlers, by the names of the types of jobs.
extension JobWorker {
    /// Sets the handler of a type of jobs whose output is stored.
    ///
    /// ```swift
    /// struct Add: Job {
    ///     typealias Output = Int
    ///     var numbers: [Int]
    /// }
    /// let worker = JobWorker(container)
    /// worker.handle(Add.self) { run in run.job.numbers.reduce(0, +) }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type of the jobs.
    ///   - handler: The work. It may run several times at once, and again after an error; see ``JobRun``.
    @_disfavoredOverload
    public func handle<J: Job>(_ type: J.Type, _ handler: @escaping @Sendable (JobRun<J>) async throws -> J.Output) {
        register(type) { try JobCoding.encode(try await handler($0)) }
    }

    /// Sets the handler of a type of jobs without output.
    ///
    /// - Parameters:
    ///   - type: The type of the jobs.
    ///   - handler: The work. It may run several times at once, and again after an error; see ``JobRun``.
    public func handle<J: Job>(_ type: J.Type, _ handler: @escaping @Sendable (JobRun<J>) async throws -> Void)
    where J.Output == NoOutput {
        register(type) {
            try await handler($0)
            return nil
        }
    }

    /// Sets the handler of a type of jobs that does several of them together.
    ///
    /// One save then ends these jobs and stores their effects. So small jobs cost a fraction of what a save for each costs.
    /// The jobs of a group take as many of the queue's places, so the number of places limits the group as well.
    ///
    /// ```swift
    /// struct Open: Job { var venue: String }
    /// let worker = JobWorker(container, queues: ["default": 20])
    /// worker.handle(Open.self, together: 20) { group in
    ///     try await group.perform { context in
    ///         for job in group.jobs { Venue(context: context).name = job.venue }
    ///     }
    /// }
    /// ```
    ///
    /// If the handler throws, or if the save fails, then nothing of the group is saved, and the handler is called again for
    /// each job by itself, in the same attempt. So one faulty job fails alone. Effects outside of the store may happen again.
    /// A job with a ``JobOptions/key`` always comes by itself.
    ///
    /// - Parameters:
    ///   - type: The type of the jobs.
    ///   - most: The most jobs of one group, at least 1.
    ///   - handler: The work. It may run several times at once; see ``JobGroup``.
    public func handle<J: Job>(
        _ type: J.Type,
        together most: Int,
        _ handler: @escaping @Sendable (JobGroup<J>) async throws -> Void
    ) where J.Output == NoOutput {
        let run: @Sendable ([JobClaim], NSManagedObjectContext) async throws -> Void = { claims, context in
            try await handler(JobGroup(type, claims, context))
        }
        state.withLock { state in
            state.groupHandlers[type.jobName] = GroupHandler(most: max(most, 1), run: run)
            state.handlers[type.jobName] = { claim, effects, _ in
                try await run([claim], effects.context)
                return nil
            }
        }
    }

    private func register<J: Job>(_ type: J.Type, _ handler: @escaping @Sendable (JobRun<J>) async throws -> String?) {
        state.withLock { state in
            state.groupHandlers[type.jobName] = nil
            state.handlers[type.jobName] = { claim, effects, desk in
                try await handler(JobRun(try JobCoding.decode(type, claim.payload), claim, effects, desk))
            }
        }
    }
}
