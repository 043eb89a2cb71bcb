import CoreData
import CoreDataJobs
import StrataLocks
import Synchronization

/// Workers in several processes run the jobs that saves of producers enqueue.
///
/// Workers are killed, stalled and stopped, their clocks jump, and a server loses its sessions or crashes. No job may be lost,
/// no effect may happen twice, and no job may be there without the save that causes it. Jobs with a key run in their order,
/// and no more of them at once than the key's limit. No more jobs of a queue run at once than its limit. No job runs while the lease of another worker holds.
enum Jobs: Scenario {
    static let name = "jobs"
    static let summary = "processes run jobs, are killed and stalled, and clocks jump: none is lost, none is done twice"
    static let stores = [StoreKind.sqlite]
    static let runsOnPostgreSQL = true
    static let work = (figure: "effects", floor: 40)
    static let databaseWork: (figure: String, floor: Int)? = (figure: "blows", floor: 2)
    static let processes = Knob("workers", 3, "processes that run jobs")
    static let lease = Knob("lease", 1_000, "milliseconds after which another worker takes a job over")
    static let knobs = [processes, lease]
    /// The most jobs of the queue of lanes that run at once; each worker has three places for it.
    static let laneLimit = 4
    /// A sabotage: the queue of lanes has no limit.
    static let noLimit = "no-limit"
    /// A sabotage: the leases of running jobs are ended while their workers live.
    static let thief = "thief"
    /// A sabotage: a worker ends a job though another one has taken it.
    private static let noCheck = "no-job-check"
    static let sabotages =
        [
            Sabotage(JobsHandler.splitCompletion, "effects, not"), Sabotage(JobsProducer.ownSave, "though its save"),
            Sabotage(JobsProducer.notUnique, "have the unique key"), Sabotage(JobsProducer.noKey, "run at once"),
            Sabotage(thief, "while the lease of"), Sabotage(noLimit, "of the queue lanes run at once"),
        ] + Sabotage.ofGuard(noCheck, "effects, not")
        + Sabotage.ofGuard(noCheck, "effects, not", store: .postgresql)

    private static let producers = 3
    /// The seconds by which the clock of the last worker is ahead: all jobs that wait for a time are due.
    private static let ahead = 3 * JobsChild.jump

    /// Saves of other processes wake workers.
    static var storeOptions: [AnyHashable: Any] { [NSPersistentStoreRemoteChangeNotificationPostOptionKey: true] }

    static func run(_ run: Run) throws {
        guard run.kind == .postgresql else { return try self.run(run, nil) }
        // With this setting, commits survive the end of the server.
        let server = try DatabaseServer(run.folder.appendingPathComponent("server"), ["synchronous_commit=on"])
        defer { server.stop() }
        try DatabasePlace.using(server.url) { try self.run(run, server) }
    }

    private static func run(_ run: Run, _ server: DatabaseServer?) throws {
        let model = try JobsModel.make()
        // The run does not know this store, as its server is gone when the run removes the stores that it knows.
        let stack = NSPersistentStoreCoordinator(managedObjectModel: model)
        try stack.addPersistentStore(
            type: run.kind.type,
            configuration: nil,
            at: run.kind.place(run.storeURL),
            options: storeOptions
        )
        let all = (0..<producers).map { JobsProducer(run, stack, $0) }
        try fill(stack, all.flatMap(\.lanes), limit: run.isSabotaged(noLimit) ? nil : laneLimit)
        let crew = try JobsCrew(run, server)
        defer { crew.killAll() }
        let waiting = Atomic(0)
        let isEnding = Atomic(false)
        let finished = Locked<[JobsProducer]>([])
        run.race(producers + 1) { worker in
            guard worker.number > 0 else {
                defer { isEnding.store(true, ordering: .relaxed) }
                return try direct(worker, stack, crew, waiting)
            }
            var producer = all[worker.number - 1]
            defer { finished.withLock { [producer] in $0.append(producer) } }
            while !isEnding.load(ordering: .relaxed) {
                worker.beat("enqueuing")
                if waiting.load(ordering: .relaxed) < JobsProducer.mostWaiting {
                    try producer.step()
                } else {
                    usleep(10_000)
                }
            }
        }
        run.watchdog.beat(0, "waiting for workers to end")
        crew.stop(0)
        let verdict = JobsVerdict(run, stack, finished.withLock { $0 })
        try drain(run, stack, crew)
        run.watchdog.beat(0, "judging")
        try verdict.judge()
        JobsLog(reading: crew.logs).judge(run)
        run.watchdog.leave(0)
        try run.close(stack)
        try run.audit(model: model)
    }

    private static func fill(_ stack: NSPersistentStoreCoordinator, _ lanes: [String], limit: Int?) throws {
        let context = stack.context()
        try context.performAndWait {
            for number in 0..<3 { Till(context: context).number = Int64(number) }
            for key in lanes { Lane(context: context).key = key }
            try context.limitJobs(in: "lanes", to: limit)
            try context.save()
        }
    }

    /// Makes trouble, and looks at the store meanwhile.
    private static func direct(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _ crew: JobsCrew,
        _ waiting: borrowing Atomic<Int>
    ) throws {
        let run = worker.run
        let patience = ServerPatience(isNeeded: run.kind == .postgresql)
        var known = 0
        while !run.isOverAndProven {
            worker.beat("looking at jobs")
            let (effects, open) = try patience.trying { try look(run, stack) }
            run.count(work.figure, effects - known)
            known = effects
            waiting.store(open, ordering: .relaxed)
            usleep(50_000)
            // A worker whose job was taken over reaches the check that is off. Stalled workers are too rare for that.
            if run.isSabotaged(thief) || run.isSabotaged(noCheck) { try steal(stack) }
            if worker.stream.chance(0.2) {
                worker.beat("a blow")
                try crew.strike(&worker.stream, worker.number)
            }
        }
    }

    /// Counts effects and unfinished jobs, and looks for unique keys that two jobs have.
    private static func look(_ run: Run, _ stack: NSPersistentStoreCoordinator) throws -> (effects: Int, open: Int) {
        let context = stack.context()
        return try context.performAndWait {
            let effects = try context.count(for: NSFetchRequest<Trace>(entityName: "Trace"))
            let open: [JobState] = [.scheduled, .ready, .blocked, .running]
            let request = NSFetchRequest<NSDictionary>(entityName: "QueuedJob")
            request.resultType = .dictionaryResultType
            request.predicate = NSPredicate(format: "state IN %@", open.map(\.rawValue))
            request.propertiesToFetch = ["payload"]
            // One statement reads them, so all are of one moment.
            let errands = try context.fetch(request).map { row in
                try JSONDecoder().decode(Errand.self, from: Data((row["payload"] as? String ?? "").utf8))
            }
            let byKey = Dictionary(grouping: errands.filter { $0.unique != nil }, by: \.unique)
            for (key, jobs) in byKey where jobs.count > 1 {
                run.find("jobs \(jobs.map(\.serial).sorted()) have the unique key \(key ?? "")")
            }
            return (effects, errands.count)
        }
    }

    /// Ends the leases of running jobs, which only a sabotage does.
    private static func steal(_ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context()
        try context.performAndWait {
            let update = NSBatchUpdateRequest(entityName: "QueuedJob")
            update.predicate = NSPredicate(format: "state == %@", JobState.running.rawValue)
            update.propertiesToUpdate = ["claimedUntil": Date.distantPast]
            _ = try context.execute(update)
        }
    }

    /// Lets one more worker finish what the others have left.
    private static func drain(_ run: Run, _ stack: NSPersistentStoreCoordinator, _ crew: JobsCrew) throws {
        let worker = try JobsChild.worker(
            stack,
            log: crew.newLog(),
            lease: crew.lease,
            clock: JumpingClock(ahead),
            sabotage: run.options.sabotage
        )
        let (end, patience) = (ContinuousClock.now + .seconds(60), ServerPatience(isNeeded: run.kind == .postgresql))
        var open = Int.max
        while open > 0, ContinuousClock.now < end {
            let done = DispatchSemaphore(value: 0)
            let failure = Locked<(any Error)?>(nil)
            Task.detached {
                defer { done.signal() }
                do { try await worker.drain() } catch { failure.withLock { $0 = error } }
            }
            // Many jobs may be left, so one wait may take longer than a worker may stand still.
            while done.wait(timeout: .now() + .milliseconds(100)) != .success {
                guard ContinuousClock.now < end + .seconds(60) else {
                    return run.find("the worker that runs what is left does not come to an end")
                }
                run.watchdog.beat(0, "running the jobs that are left")
            }
            if let error = failure.withLock({ $0 }) { throw error }
            open = try patience.trying { try look(run, stack).open }
            // The leases of workers that were killed have to end.
            if open > 0 { usleep(100_000) }
        }
        let total = worker.counts
        run.count("left-for-the-end", total.done + total.failed + total.cancelled)
    }
}
