import CoreData
import CoreDataJobs

/// The handler of the scenario `jobs`, which writes down when it runs and until when its worker has the job.
struct JobsHandler: Sendable {
    /// A sabotage: the effect is saved before the job is completed, by a transaction of its own.
    static let splitCompletion = "split-completion"

    let worker: String
    let coordinator: NSPersistentStoreCoordinator
    let log: JobsLog.Writer
    let lease: Duration
    let sabotage: String?

    /// Runs one job.
    ///
    /// - Parameter run: The run.
    /// - Throws: What the kind of the job demands.
    func handle(_ run: JobRun<Errand>) async throws {
        let number = log.begin(run.job)
        // From the end on, the job may be given up at any moment.
        defer { log.end(number) }
        try await work(run, number)
    }

    private func work(_ run: JobRun<Errand>, _ number: Int) async throws {
        let errand = run.job
        try await noteLease(of: run, number)
        let splits = sabotage == Self.splitCompletion
        try await run.perform { context in
            let trace = Trace(context: context)
            trace.serial = errand.serial
            if let key = errand.lane {
                let request = NSFetchRequest<Lane>(entityName: "Lane")
                request.predicate = NSPredicate(format: "key == %@", key)
                guard let lane = try context.fetch(request).first else { throw StressError("there is no lane \(key)") }
                trace.place = lane.count
                lane.count += 1
            }
            if splits { try context.save() }
        }
        switch errand.kind {
        case .slow:
            for _ in 0..<6 {
                try await Task.sleep(for: lease / 4)
                try await noteLease(of: run, number)
            }
        default:
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...20)))
            try await noteLease(of: run, number)
        }
        switch errand.kind {
        case .plain, .slow: break
        case .stubborn: if run.attempt <= errand.failures { throw JobExit.retry(after: .milliseconds(20), "again") }
        case .doomed: throw JobExit.fail("for good")
        case .quitter: throw JobExit.cancel("by itself")
        case .polite: if Bool.random() { throw JobExit.postpone(.milliseconds(20)) }
        }
    }

    /// Reads the lease of the job, and notes it if the worker has it.
    private func noteLease(of run: JobRun<Errand>, _ number: Int) async throws {
        let (id, worker, attempt) = (run.id, worker, run.attempt)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let end: Date? = try await context.perform {
            let request = NSFetchRequest<NSDictionary>(entityName: "QueuedJob")
            request.resultType = .dictionaryResultType
            request.predicate = NSPredicate(
                format: "SELF == %@ AND claimedBy == %@ AND attempt == %d",
                id,
                worker,
                attempt
            )
            request.propertiesToFetch = ["claimedUntil"]
            return try context.fetch(request).first?["claimedUntil"] as? Date
        }
        if let end { log.note(number, leaseUntil: end) }
    }
}
