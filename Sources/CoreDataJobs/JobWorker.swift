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
/// A handler runs at least once for each job. The effects that it has in ``JobRun/context`` happen exactly once.
public final class JobWorker: Sendable {
    /// The name, which differs from those of all other workers.
    public let name: String
    /// The queues, each with the number of its jobs that this worker runs at once.
    public let queues: [String: Int]

    let settings: Settings
    let desk: JobDesk
    let bell = JobBell()
    private let state = Locked(State())

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
        /// Leases are renewed after a third of the time.
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
    typealias Handler = @Sendable (JobClaim, NSManagedObjectContext, JobDesk) async throws -> String?

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
            state.handlers[type.jobName] = { claim, context, _ in
                try await run([claim], context)
                return nil
            }
        }
    }

    private func register<J: Job>(_ type: J.Type, _ handler: @escaping @Sendable (JobRun<J>) async throws -> String?) {
        state.withLock { state in
            state.groupHandlers[type.jobName] = nil
            state.handlers[type.jobName] = { claim, context, desk in
                try await handler(JobRun(try JobCoding.decode(type, claim.payload), claim, context, desk))
            }
        }
    }

    /// How the runs of this worker have ended so far.
    public var counts: JobCounts { state.withLock { $0.counts } }

    /// The number of jobs that run.
    public var runningCount: Int { state.withLock { $0.runs.count } }

    /// Runs all jobs that are due, and those that they enqueue.
    ///
    /// This is for tests and for programs that end. It returns when nothing is due by the worker's clock, and none of its jobs
    /// runs any more. Other workers may still run jobs then.
    ///
    /// ```swift
    /// struct Greet: Job { var name: String }
    /// let worker = JobWorker(container)
    /// worker.handle(Greet.self) { run in print(run.job.name) }
    /// print(try await worker.drain().done)
    /// ```
    ///
    /// - Parameter most: The most jobs that run at once, within the number of each queue; 1 by default, so that they run one
    ///   after the other.
    /// - Returns: How the runs have ended.
    /// - Throws: Errors of the store, and `CancellationError`. It throws when its runs have ended.
    @discardableResult
    public func drain(atOnce most: Int = 1) async throws -> JobCounts {
        let before = counts
        do {
            while true {
                try Task.checkCancellation()
                let (count, busy) = (bell.count, runningCount)
                let isFull = most <= 1 || isLookDue
                var begun = try await pass(atMost: max(most, 1) - busy, isFull: isFull)
                // Only a look at everything shows that nothing is due.
                if begun == 0 && busy == 0 && !isFull { begun = try await pass(atMost: max(most, 1)) }
                if begun == 0 && busy == 0 { return counts - before }
                // Detached, since a cancelled task would not wait for the runs.
                await Task.detached { await self.awaitRuns(until: .distantFuture, orBeyond: count) }.value
            }
        } catch {
            await Task.detached { await self.awaitRuns(until: .distantFuture) }.value
            throw error
        }
    }

    // MARK: - The loop

    /// Takes and runs jobs until the worker is stopped.
    ///
    /// It ends after ``stop(within:)``, after one of the signals, and when its task is cancelled. In each case the worker
    /// takes no further jobs, and lets the running ones finish.
    ///
    /// If a store cannot be reached, then the worker reports that in the log, and tries again. A worker that was stopped stays
    /// so: this returns at once.
    ///
    /// - Parameters:
    ///   - signals: The signals that stop the worker: SIGTERM and SIGINT by default. Pass none if the program handles them.
    ///   - patience: How long the worker lets jobs finish; 25 seconds by default.
    /// - Throws: `persistentStoreOperation` (134070) if it runs already.
    public func run(stoppingOn signals: [Int32] = [SIGTERM, SIGINT], within patience: Duration = .seconds(25))
        async throws
    {
        let isSecond = state.withLock { state in
            defer { state.isRunning = true }
            return state.isRunning
        }
        guard !isSecond else { throw FetchPlanner.refused("The worker \(name) runs already.") }
        defer { state.withLock { $0.isRunning = false } }
        if isStopping { return }
        // Without this the signals would end the process.
        let actions = signals.map { signal($0, SIG_IGN) }
        let sources = signals.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { [weak self] in self?.beginStop(within: patience) }
            source.resume()
            return source
        }
        let listener = JobListener(desk.coordinator, bell)
        await withTaskCancellationHandler {
            await loop()
        } onCancel: {
            beginStop(within: patience)
        }
        await beginStop(within: patience).value
        listener.stop()
        for source in sources { source.cancel() }
        for (number, action) in zip(signals, actions) { signal(number, action) }
    }

    private func loop() async {
        while !isStopping {
            let count = bell.count
            var next: Date?
            do {
                let isFull = isLookDue
                let begun = try await pass(isFull: isFull)
                state.withLock { $0.isFailing = false }
                if begun > 0 { continue }
                if !isFull { ring(after: Self.calm(after: state.withLock { $0.lookCost })) }
                next = nextEvent
            } catch {
                let isNew = state.withLock { state in
                    defer { state.isFailing = true }
                    return !state.isFailing
                }
                if isNew { desk.coordinator.report(error, "taking jobs") }
            }
            guard !isStopping else { return }
            let poll = settings.clock.now.addingTimeInterval(settings.poll.seconds)
            await bell.wait(beyond: count, until: min(poll, next ?? poll), by: settings.clock)
        }
    }

    private var isStopping: Bool { state.withLock { $0.stop != nil } }

    /// The time of the next job, schedule or heartbeat; `nil` if there is none.
    private var nextEvent: Date? {
        state.withLock { state in
            [state.nextTime, state.runs.isEmpty ? nil : state.nextBeat].compactMap { $0 }.min()
        }
    }

    /// How long the worker only takes jobs after it has looked at everything, unless something is due.
    ///
    /// While many jobs end, each end frees a place, and each save of any worker rings the bell.
    private static let calm = Duration.milliseconds(50)
    /// The same if the store is so busy that a look takes long: looks take at most a twentieth of the time.
    private static func calm(after cost: Duration) -> Duration { min(max(calm, cost * 20), .milliseconds(500)) }
    /// The duration of a run that is quick.
    private static let quickRun = Duration.milliseconds(10)
    /// How long a free place waits for others if jobs are quick, so that one claim fills several: twice as long as a claim takes.
    private static func claimWait(_ cost: Duration) -> Duration { min(max(.milliseconds(2), cost * 2), quickRun) }

    /// Whether it is time to look at everything.
    private var isLookDue: Bool {
        let (last, cost, times) = state.withLock {
            ($0.lastLook, $0.lookCost, [$0.nextTime, $0.runs.isEmpty ? nil : $0.nextBeat])
        }
        guard let last, ContinuousClock.now - last < Self.calm(after: cost) else { return true }
        let now = settings.clock.now
        return times.contains { $0.map { $0 <= now } ?? false }
    }

    /// Rings the bell after some time of the machine, whatever the worker's clock shows.
    private func ring(after wait: Duration) {
        let time = ContinuousClock.now + wait
        let isNew = state.withLock { state in
            if let alarm = state.alarm, alarm <= time { return false }
            state.alarm = time
            return true
        }
        guard isNew else { return }
        Task { [self] in
            try? await Task.sleep(until: time)
            state.withLock { if $0.alarm == time { $0.alarm = nil } }
            bell.ring()
        }
    }

    /// Begins runs, and before that does everything else that is due.
    ///
    /// - Parameters:
    ///   - limit: The most runs to begin.
    ///   - isFull: Whether it looks at everything; otherwise it only takes jobs.
    /// - Returns: The number of runs that have begun, or 1 if there is more to do at once.
    /// - Throws: Errors of the store.
    func pass(atMost limit: Int = .max, isFull: Bool = true) async throws -> Int {
        let now = settings.clock.now
        guard isFull else { return try await fill(atMost: limit, at: now, looksAtAll: false) }
        let start = ContinuousClock.now
        // An error leaves it due.
        state.withLock { $0.lastLook = nil }
        try await beat(at: now)
        let hasOld = try await maintain(at: now)
        let nextSchedule = await enqueueSchedules(at: now)
        let hasMore = try await desk.promote(at: now)
        let paused = try await desk.pausedQueues()
        state.withLock { $0.pausedQueues = paused }
        let begun = try await fill(atMost: limit, at: now, looksAtAll: true)
        let nextJob = try await desk.nextTime()
        state.withLock { state in
            state.nextTime = [nextSchedule, nextJob].compactMap { $0 }.min()
            state.lastLook = .now
            state.lookCost = .now - start
        }
        return hasMore || hasOld ? max(begun, 1) : begun
    }

    /// Takes jobs for the free places, and begins their runs.
    ///
    /// - Returns: The number of runs that have begun.
    private func fill(atMost limit: Int, at now: Date, looksAtAll: Bool) async throws -> Int {
        var begun = 0
        for (queue, places) in queues.sorted(by: { $0.key < $1.key }) {
            for takesLeft in looksAtAll ? [true, false] : [false] {
                let (free, isDeep, wait) = state.withLock { state in
                    let isPaused = state.pausedQueues.contains(queue) || state.stop != nil
                    let free = isPaused ? 0 : places - state.runs.values.count { $0.claim.queue == queue }
                    let isDeep = state.deepQueues.contains(queue)
                    let wait = Self.claimWait(state.claimCost)
                    let isSoon = state.lastClaim.map { ContinuousClock.now - $0 < wait } ?? false
                    let most = limit < places ? min(limit + state.runs.count, places) : places
                    let waits = isDeep && isSoon && state.isQuick && free * 2 < most
                    return (min(free, limit - begun), isDeep, waits ? wait : nil)
                }
                guard free > 0 else { continue }
                if let wait, !looksAtAll {
                    ring(after: wait)
                    continue
                }
                let start = ContinuousClock.now
                let claims: [JobClaim]
                if takesLeft {
                    claims = try await desk.rescue(free, of: queue, at: now)
                } else {
                    claims = try await desk.take(free, of: queue, at: now, looksFirst: !isDeep)
                    state.withLock { state in
                        state.lastClaim = .now
                        state.claimCost = .now - start
                        if claims.count == free {
                            state.deepQueues.insert(queue)
                        } else {
                            state.deepQueues.remove(queue)
                        }
                    }
                }
                for group in groups(of: claims) { await begin(group) }
                begun += claims.count
            }
        }
        return begun
    }

    /// Renews the leases if it is time, and cancels the runs that are to be cancelled.
    private func beat(at now: Date) async throws {
        let (ids, isDue) = state.withLock { state in
            let ids = Array(state.runs.keys)
            return (ids, Self.isDue(state.nextBeat, at: now, every: settings.lease / 3))
        }
        guard !ids.isEmpty else { return }
        if isDue { try await heartbeat(at: now) }
        // While many jobs end, each end comes here.
        let isCalm = state.withLock { state in
            state.lastRequestLook.map { ContinuousClock.now - $0 < Self.calm } ?? false
        }
        if isCalm { return ring(after: Self.calm) }
        for id in try await desk.cancelRequests(among: ids) { end(id, .cancelled) }
        state.withLock { $0.lastRequestLook = .now }
    }

    /// Whether the time of something regular has come.
    ///
    /// If it is further away than the interval, then the clock was set back, and the time has come as well.
    private static func isDue(_ time: Date?, at now: Date, every interval: Duration) -> Bool {
        // The second guards against rounding.
        time.map { $0 <= now || $0 > now.addingTimeInterval(interval.seconds + 1) } ?? true
    }

    /// Renews the leases of all runs, and cancels those whose jobs are another worker's.
    func heartbeat(at now: Date) async throws {
        let ids = state.withLock { state in
            state.nextBeat = now.addingTimeInterval(settings.lease.seconds / 3)
            return Array(state.runs.keys)
        }
        guard !ids.isEmpty else { return }
        let kept = try await desk.renew(ids)
        for id in ids where !kept.contains(id) { end(id, .lost) }
    }

    /// Deletes old jobs and frees blocked ones, if it is time.
    ///
    /// - Returns: Whether there may be more to delete.
    private func maintain(at now: Date) async throws -> Bool {
        let isDue = state.withLock { state in
            guard Self.isDue(state.nextMaintenance, at: now, every: settings.maintenance) else { return false }
            state.nextMaintenance = now.addingTimeInterval(settings.maintenance.seconds)
            return true
        }
        guard isDue else { return false }
        if try await desk.purge(at: now) {
            // The next pass goes on, after it has begun the jobs that are due.
            state.withLock { $0.nextMaintenance = nil }
            return true
        }
        try await desk.unblockAll()
        return false
    }

    // MARK: - Runs

    /// Jobs that were just claimed, as they run together.
    private func groups(of claims: [JobClaim]) -> [[JobClaim]] {
        let handlers = state.withLock { $0.groupHandlers }
        var groups: [[JobClaim]] = []
        /// The place of the group of each type that has room.
        var open: [String: Int] = [:]
        for claim in claims {
            let isPlain = claim.key == nil && !claim.isCancelRequested && claim.attempt <= claim.maximumAttempts
            guard isPlain, let most = handlers[claim.name]?.most, most > 1 else {
                groups.append([claim])
                continue
            }
            if let place = open[claim.name], groups[place].count < most {
                groups[place].append(claim)
            } else {
                open[claim.name] = groups.count
                groups.append([claim])
            }
        }
        return groups
    }

    /// Starts the run of jobs that were just claimed.
    private func begin(_ claims: [JobClaim]) async {
        let isStopping = state.withLock { state in
            if state.stop != nil { return true }
            if state.runs.isEmpty { state.nextBeat = settings.clock.now.addingTimeInterval(settings.lease.seconds / 3) }
            for claim in claims {
                // This worker was so slow that its own lease has ended.
                state.runs[claim.id]?.end = .lost
                state.runs[claim.id]?.task?.cancel()
                state.runs[claim.id] = Run(claim: claim)
            }
            return false
        }
        if isStopping {
            let clock = settings.clock
            for claim in claims { await settle(claim, .postponed) { $0.giveBack(until: nil, at: clock.now) } }
            return
        }
        start(claims)
    }

    private func start(_ claims: [JobClaim]) {
        let task = claims.count == 1 ? Task { await self.execute(claims[0]) } : Task { await self.execute(claims) }
        state.withLock { state in
            for claim in claims {
                guard let run = state.runs[claim.id], run.claim.attempt == claim.attempt else { continue }
                state.runs[claim.id]?.task = task
                if run.end != nil { task.cancel() }
            }
        }
    }

    private func end(_ id: NSManagedObjectID, _ end: Run.End) {
        let task = state.withLock { state in
            guard let run = state.runs[id], run.end == nil else { return nil as Task<Void, Never>? }
            state.runs[id]?.end = end
            return run.task
        }
        task?.cancel()
    }

    private func endOfRun(_ claim: JobClaim) -> Run.End? {
        state.withLock { state in
            guard let run = state.runs[claim.id], run.claim.attempt == claim.attempt else { return .lost }
            return run.end
        }
    }

    private func execute(_ claim: JobClaim) async {
        let start = ContinuousClock.now
        await work(on: claim)
        forget([claim], since: start)
    }

    /// Runs several jobs together, or starts the run of each if that fails.
    private func execute(_ claims: [JobClaim]) async {
        let start = ContinuousClock.now
        if await haveDone(claims) { return forget(claims, since: start) }
        for claim in claims {
            if endOfRun(claim) == nil {
                // The task of the group may be cancelled for the sake of another job.
                self.start([claim])
            } else {
                await settle(claim, after: CancellationError())
                forget([claim], since: start)
            }
        }
    }

    /// Runs the handler of several jobs, and ends them all with one save.
    ///
    /// - Returns: Whether it has; otherwise nothing was saved.
    private func haveDone(_ claims: [JobClaim]) async -> Bool {
        guard let handler = state.withLock({ $0.groupHandlers[claims[0].name] }) else { return false }
        let clock = settings.clock
        let context = desk.newContext()
        do {
            try await handler.run(claims, context)
            let isSaved = try await desk.settle(claims, in: context) { job in
                job.progress = 1
                job.finish(.done, at: clock.now)
            }
            if isSaved { for claim in claims { await conclude(claim, .done) } }
            return isSaved
        } catch {
            // The runs of the jobs by themselves show which of them is at fault.
            await context.perform { context.rollback() }
            return false
        }
    }

    /// Frees the places of runs that have ended.
    private func forget(_ claims: [JobClaim], since start: ContinuousClock.Instant) {
        let isQuick = ContinuousClock.now - start < Self.quickRun
        state.withLock { state in
            state.isQuick = isQuick
            for claim in claims where state.runs[claim.id]?.claim.attempt == claim.attempt {
                state.runs[claim.id] = nil
            }
        }
        bell.ring()
    }

    private func work(on claim: JobClaim) async {
        let clock = settings.clock
        if claim.isCancelRequested {
            return await settle(claim, .cancelled) { $0.finish(.cancelled, at: clock.now) }
        }
        guard claim.attempt <= claim.maximumAttempts else {
            // A rescue after the last attempt: its worker did not live to say how it went.
            return await settle(claim, .failed) { job in
                job.attempt -= 1
                job.note("The worker ended before the job did.", at: clock.now)
                job.finish(.failed, at: clock.now)
            }
        }
        guard let handler = state.withLock({ $0.handlers[claim.name] }) else {
            let time = clock.now.addingTimeInterval(settings.unknownJobDelay.seconds)
            return await settle(claim, .postponed) { job in
                job.note("The worker \(job.claimedBy ?? "") has no handler for \(job.name).", at: clock.now)
                job.giveBack(until: time, at: clock.now)
            }
        }
        do {
            guard try await desk.enterKey(claim, at: clock.now) else { return }
        } catch {
            return reportStore(error)
        }
        report(.jobWait, of: claim, .seconds(max(clock.now.timeIntervalSince(claim.runAt), 0)))
        let context = desk.newContext()
        do {
            let output = try await handler(claim, context, desk)
            let settled = try await desk.settle(claim, in: context) { job in
                job.output = output
                job.progress = 1
                job.finish(.done, at: clock.now)
            }
            await conclude(claim, settled == nil ? .lost : .done)
        } catch {
            await context.perform { context.rollback() }
            await settle(claim, after: error)
        }
    }

    /// The end of a run, for the counts.
    private enum Outcome { case done, retried, failed, cancelled, postponed, lost }

    /// Counts and reports the end of a run, and lets the next job of its key in.
    ///
    /// - Parameters:
    ///   - claim: The claim of the run.
    ///   - outcome: How the run has ended.
    ///   - error: The error that the handler has thrown.
    private func conclude(_ claim: JobClaim, _ outcome: Outcome, after error: (any Error)? = nil) async {
        let kind: CoreDataEvent.Kind = state.withLock { state in
            switch outcome {
            case .done:
                state.counts.done += 1
                return .jobDone
            case .retried:
                state.counts.retried += 1
                return .jobRetry
            case .failed:
                state.counts.failed += 1
                return .jobFailure
            case .cancelled:
                state.counts.cancelled += 1
                return .jobCancellation
            case .postponed:
                state.counts.postponed += 1
                return .jobPostponement
            case .lost:
                state.counts.lost += 1
                return .jobLoss
            }
        }
        report(kind, of: claim, ContinuousClock.now - claim.start, error)
        guard let key = claim.key else { return }
        do {
            try await desk.unblock(key, limit: claim.keyLimit)
        } catch {
            reportStore(error)
        }
    }

    /// Reports an event of a job to the instrument of the coordinator.
    private func report(
        _ kind: CoreDataEvent.Kind,
        of claim: JobClaim,
        _ duration: Duration,
        _ error: (any Error)? = nil
    ) {
        guard let instrument = desk.coordinator.instrument else { return }
        instrument.record(
            CoreDataEvent(
                kind: kind,
                duration: duration,
                context: name,
                entity: claim.name,
                errorCode: error.map { ($0 as NSError).code }
            )
        )
    }

    /// Records what becomes of a job after its handler has thrown, or its save has failed.
    private func settle(_ claim: JobClaim, after error: any Error) async {
        let clock = settings.clock
        let text = Self.text(of: error)
        switch (error as? JobExit, endOfRun(claim)) {
        case (_, .lost):
            await conclude(claim, .lost, after: error)
        case (_, .cancelled), (.cancel, _):
            await settle(claim, .cancelled, after: error) { job in
                job.note(text, at: clock.now)
                job.finish(.cancelled, at: clock.now)
            }
        case (.postpone(let wait), _):
            let time = clock.now.addingTimeInterval(wait.seconds)
            await settle(claim, .postponed) { $0.giveBack(until: time, at: clock.now) }
        case (_, .stopped):
            await settle(claim, .postponed) { $0.giveBack(until: nil, at: clock.now) }
        case (let exit, nil):
            var wait: Double?
            if case .retry(let after, _) = exit { wait = after.seconds }
            var isFinal = claim.attempt >= claim.maximumAttempts
            if case .fail = exit { isFinal = true }
            let chance = Double.random(in: 0...1)
            await settle(claim, isFinal ? .failed : .retried, after: error) { [isFinal, wait] job in
                job.note(text, at: clock.now)
                // The worker has not noticed the request before the handler threw.
                if job.isCancelRequested { return job.finish(.cancelled, at: clock.now) }
                if isFinal { return job.finish(.failed, at: clock.now) }
                let backoff = (try? JobCoding.decode(JobBackoff.self, job.backoff)) ?? .exponential()
                let seconds = wait ?? backoff.wait(after: Int(job.attempt), chance: chance)
                job.state = .scheduled
                job.runAt = clock.now.addingTimeInterval(seconds)
                job.giveUp()
            }
        }
    }

    private func settle(
        _ claim: JobClaim,
        _ outcome: Outcome,
        after failure: (any Error)? = nil,
        _ change: @Sendable @escaping (QueuedJob) throws -> Void
    ) async {
        do {
            let settled = try await desk.settle(claim, change)
            let end: Outcome = settled == nil ? .lost : settled == .cancelled ? .cancelled : outcome
            await conclude(claim, end, after: failure)
        } catch {
            // The lease ends by itself, and then the job is taken again.
            reportStore(error)
        }
    }

    private func reportStore(_ error: any Error) { desk.coordinator.report(error, "recording the end of a job") }

    private static func text(of error: any Error) -> String {
        switch error {
        case JobExit.cancel(let text), JobExit.fail(let text), JobExit.retry(_, let text): text
        case let error as any LocalizedError: error.errorDescription ?? "\(error)"
        case let error as CocoaError: error.localizedDescription
        default: "\(error)"
        }
    }

    // MARK: - Stopping

    /// Stops the worker: it takes no further jobs, and lets the running ones finish.
    ///
    /// The tasks of handlers that still run at the end of that time are cancelled, and their jobs are given back, so that
    /// another worker takes them at once; that attempt does not count. Such a handler may not have ended when this returns,
    /// but nothing of its context is saved.
    ///
    /// ```swift
    /// let worker = JobWorker(container)
    /// let running = Task { try await worker.run(stoppingOn: []) }
    /// await worker.stop(within: .seconds(10))
    /// _ = await running.result
    /// ```
    ///
    /// - Parameter patience: How long the jobs may take, by the worker's clock.
    public func stop(within patience: Duration = .seconds(25)) async {
        await beginStop(within: patience).value
    }

    @discardableResult
    private func beginStop(within patience: Duration) -> Task<Void, Never> {
        let deadline = settings.clock.now.addingTimeInterval(patience.seconds)
        let task = state.withLock { state in
            if let stop = state.stop { return stop }
            // Detached, since the caller may have been cancelled.
            let stop = Task.detached { await self.finishRuns(until: deadline) }
            state.stop = stop
            return stop
        }
        bell.ring()
        return task
    }

    /// Waits until no job runs, until a time, or until the bell was rung beyond a count, and looks after the runs meanwhile.
    private func awaitRuns(until deadline: Date, orBeyond rings: Int = .max) async {
        while true {
            let count = bell.count
            let now = settings.clock.now
            guard runningCount > 0, now < deadline, count <= rings else { return }
            // The loop does not run at this time.
            do { try await beat(at: now) } catch { reportStore(error) }
            let beat = state.withLock { $0.nextBeat } ?? deadline
            let next = min(deadline, beat, now.addingTimeInterval(settings.poll.seconds))
            await bell.wait(beyond: count, until: max(next, now.addingTimeInterval(0.01)), by: settings.clock)
        }
    }

    private func finishRuns(until deadline: Date) async {
        await awaitRuns(until: deadline)
        let clock = settings.clock
        for claim in state.withLock({ $0.runs.values.map(\.claim) }) {
            end(claim.id, .stopped)
            // The handler may be deaf to the cancellation. Its save will find that it has lost the job.
            await settle(claim, .postponed) { $0.giveBack(until: nil, at: clock.now) }
        }
    }

    // MARK: - Schedules

    /// Enqueues a job at each time of a cron expression.
    ///
    /// Any number of workers may have the same schedule: there is one job for each time. The first worker that sees a
    /// schedule begins with the next time. If no worker ran for a while, then there is one job for the newest of the times
    /// that were missed.
    ///
    /// ```swift
    /// struct Report: Job { var day: Date }
    /// let worker = JobWorker(container)
    /// let nightly = try CronExpression("30 3 * * mon-fri", timeZone: TimeZone(identifier: "Europe/Lisbon") ?? .gmt)
    /// worker.schedule("nightly report", nightly) { time in Report(day: time) }
    /// ```
    ///
    /// If a job cannot be enqueued, then the worker reports that in the log. It tries again at the next time, or after
    /// ``Settings/maintenance`` if that is earlier.
    ///
    /// - Parameters:
    ///   - name: The name of the schedule, by which workers agree on its times.
    ///   - times: The times.
    ///   - configure: Changes the options, which are those of the type at first.
    ///   - job: Makes the job for a time.
    public func schedule<J: Job>(
        _ name: String,
        _ times: CronExpression,
        options configure: @escaping @Sendable (inout JobOptions) -> Void = { _ in },
        _ job: @escaping @Sendable (Date) -> J
    ) {
        let entry = JobScheduleEntry(name: name, times: times) { time, context in
            let queued = try context.enqueue(job(time), configure)
            if queued.isInserted, queued.state == .ready { queued.runAt = time }
            return queued
        }
        state.withLock { state in
            state.schedules.removeAll { $0.name == name }
            state.schedules.append(entry)
        }
    }

    /// Enqueues the jobs of the schedules whose time has come.
    ///
    /// - Returns: The next time of a schedule.
    private func enqueueSchedules(at now: Date) async -> Date? {
        var next: Date?
        for var schedule in state.withLock({ $0.schedules }) {
            if schedule.next.map({ $0 > now }) != true {
                do {
                    schedule.next = try await desk.enqueue(schedule, at: now)
                } catch {
                    desk.coordinator.report(error, "enqueuing a job of the schedule “\(schedule.name)”")
                    // Soon, since a store that could not be reached may cost no time of a rare schedule.
                    let soon = now.addingTimeInterval(settings.maintenance.seconds)
                    schedule.next = min(schedule.times.next(after: now) ?? soon, soon)
                }
                let (name, time) = (schedule.name, schedule.next)
                state.withLock { state in
                    guard let index = state.schedules.firstIndex(where: { $0.name == name }) else { return }
                    state.schedules[index].next = time
                }
            }
            next = [next, schedule.next].compactMap { $0 }.min()
        }
        return next
    }
}

/// A schedule of a worker.
struct JobScheduleEntry: Sendable {
    let name: String
    let times: CronExpression
    /// Enqueues the job for a time.
    let enqueue: @Sendable (Date, NSManagedObjectContext) throws -> QueuedJob
    /// The next time, once the store was asked.
    var next: Date?
}
