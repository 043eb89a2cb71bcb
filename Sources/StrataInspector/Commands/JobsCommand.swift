import CoreData
import CoreDataJobs

/// Lists jobs and changes them, as a program with `CoreDataJobs` does.
enum JobsCommand: Command {
    static let name = "jobs"
    static let summary =
        "list: jobs, or their --counts. retry: failed jobs. cancel: open jobs. purge: done and cancelled jobs. pause, resume, limit: a queue."
    static let options: [Option] = [
        Option(
            "--store",
            "STORE",
            required: true,
            help: "the SQLite file, or the URL of a PostgreSQL store; only list leaves it as it is"
        ),
        .model,
        Option("--queue", "NAME", help: "only jobs of this queue; required by pause, resume and limit"),
        Option("--state", "STATE", help: "list, retry, cancel, purge: only jobs in this state, such as failed"),
        Option("--name", "NAME", help: "list, retry, cancel, purge: only jobs of this type"),
        Option("--id", "URI", help: "retry, cancel: only this job, as list prints it"),
        Option("--limit", "N", help: "list: how many at most (default: 100)"),
        Option(
            "--to",
            "N",
            help: "limit: how many jobs of the queue run at once, in all workers together; none for any number"
        ),
        Option("--counts", help: "list: the number of jobs of each queue in each state"),
    ]
    static let operand: String? = "list|retry|cancel|pause|resume|limit|purge"

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let verb = arguments.operands[0]
        switch verb {
        case "list": try list(arguments, print)
        case "retry":
            try change(arguments, [.failed, .cancelled, .scheduled], asUsual: [.failed], print, "retried") {
                $0.retry()
            }
        case "cancel":
            let open: [JobState] = [.scheduled, .ready, .blocked, .running, .failed]
            try change(arguments, open, asUsual: open.filter { $0 != .failed }, print, "cancelled") { $0.cancel() }
        case "purge": try purge(arguments, print)
        case "pause", "resume": try pause(arguments, verb == "pause", print)
        case "limit": try limit(arguments, print)
        case let other: throw UsageError("“\(other)” is none of list, retry, cancel, pause, resume, limit and purge")
        }
        return .success
    }

    // MARK: - Reading

    private static func list(_ arguments: Arguments, _ print: (String) -> Void) throws {
        let limit = try arguments.number("--limit") ?? 100
        let states = try state(arguments).map { [$0] } ?? JobState.allCases
        let store = try open(arguments, .reading)
        try store.context.performAndWait {
            let request = try request(arguments, states, store)
            if arguments.has("--counts") { return try counts(request, of: arguments["--queue"], store.context, print) }
            request.fetchLimit = limit + 1
            let jobs = try store.context.fetch(request)
            guard !jobs.isEmpty else { return print("There are no such jobs.") }
            let rows = jobs.prefix(limit).map { job in
                [
                    job.queue, job.state.rawValue, job.name, "\(job.attempt)/\(job.maximumAttempts)",
                    job.runAt.ISO8601Format(), job.objectID.uriRepresentation().absoluteString,
                    (job.failure ?? job.progressText ?? "").split(whereSeparator: \.isNewline).first.map(String.init)
                        ?? "",
                ]
            }
            let heads = ["Queue", "State", "Job", "Attempt", "Time", "ID", "Failure or progress"]
            columns([heads] + rows, indent: 0).forEach(print)
            if jobs.count > limit { print("… and more; see --limit, and --counts.") }
        }
    }

    private static func counts(
        _ request: NSFetchRequest<QueuedJob>,
        of queue: String?,
        _ context: NSManagedObjectContext,
        _ print: (String) -> Void
    ) throws {
        let (paused, limits) = (try context.pausedJobQueues(), try context.jobQueueLimits())
        func text(_ queue: String) -> String {
            queue + (paused.contains(queue) ? " (paused)" : "") + (limits[queue].map { " (at most \($0))" } ?? "")
        }
        let count = NSExpressionDescription()
        count.name = "count"
        count.expression = NSExpression(forFunction: "count:", arguments: [NSExpression(forKeyPath: "name")])
        count.resultType = .integer64
        let grouped = NSFetchRequest<NSDictionary>(entityName: "QueuedJob")
        grouped.predicate = request.predicate
        grouped.resultType = .dictionaryResultType
        grouped.propertiesToGroupBy = ["queue", "state"]
        grouped.propertiesToFetch = ["queue", "state", count]
        grouped.sortDescriptors = ["queue", "state"].map { NSSortDescriptor(key: $0, ascending: true) }
        let groups = try context.fetch(grouped)
        var rows = groups.map { row in
            [text(row["queue"] as? String ?? ""), row["state"] as? String ?? "", "\(row["count"] ?? 0)"]
        }
        // A queue that was paused or got a limit before its first job would be forgotten otherwise.
        let empty = paused.union(limits.keys).subtracting(groups.compactMap { $0["queue"] as? String })
        rows += empty.filter { $0 == queue ?? $0 }.sorted().map { [text($0), "", "0"] }
        columns([["Queue", "State", "Jobs"]] + rows, rightAligned: [2], indent: 0).forEach(print)
    }

    // MARK: - Changing

    /// Changes the chosen jobs, in portions with a save each.
    private static func change(
        _ arguments: Arguments,
        _ permitted: [JobState],
        asUsual: [JobState],
        _ print: (String) -> Void,
        _ done: String,
        _ body: (QueuedJob) -> Void
    ) throws {
        let chosen = try state(arguments)
        if let chosen, !permitted.contains(chosen) {
            throw UsageError("a job that is \(chosen.rawValue) cannot be \(done)")
        }
        let states = chosen.map { [$0] } ?? (arguments["--id"] == nil ? asUsual : permitted)
        let store = try open(arguments, .writing([:]))
        var count = 0
        try store.context.performAndWait {
            let request = try request(arguments, states, store)
            request.resultType = .managedObjectIDResultType
            let ids = try store.context.fetch(request.typed(as: NSManagedObjectID.self))
            for start in stride(from: 0, to: ids.count, by: 500) {
                let portion = Array(ids[start..<min(start + 500, ids.count)])
                // A worker may take one of them at this moment. Then the portion is looked at again.
                count += try store.context.performAndWait(retrying: 10) {
                    let jobs = NSFetchRequest<QueuedJob>(entityName: "QueuedJob")
                    jobs.predicate = NSPredicate(format: "SELF IN %@ AND state IN %@", portion, states.map(\.rawValue))
                    let found = try store.context.fetch(jobs)
                    found.forEach(body)
                    return found.count
                }
                store.context.reset()
            }
        }
        print("\(count) jobs are \(done).")
        try store.coordinator.close()
    }

    private static func purge(_ arguments: Arguments, _ print: (String) -> Void) throws {
        let finished = JobState.allCases.filter(\.isFinished)
        let chosen = try state(arguments)
        if let chosen, !chosen.isFinished { throw UsageError("a job that is \(chosen.rawValue) has not finished") }
        // Failed jobs can still be retried, so they go only by name.
        let states = chosen.map { [$0] } ?? finished.filter { $0 != .failed }
        let store = try open(arguments, .writing([:]))
        try store.context.performAndWait {
            let delete = NSBatchDeleteRequest(
                fetchRequest: try request(arguments, states, store).typed(as: NSFetchRequestResult.self)
            )
            delete.resultType = .resultTypeCount
            let result = try store.context.execute(delete) as? NSBatchDeleteResult
            print("\(result?.result ?? 0) jobs are purged.")
        }
        try store.coordinator.close()
    }

    private static func pause(_ arguments: Arguments, _ pauses: Bool, _ print: (String) -> Void) throws {
        let queue = try arguments.required("--queue")
        let store = try open(arguments, .writing([:]))
        try store.context.performAndWait(retrying: 10) {
            if pauses { try store.context.pauseJobs(in: queue) } else { try store.context.resumeJobs(in: queue) }
        }
        print("The queue \(queue) is \(pauses ? "paused" : "not paused").")
        try store.coordinator.close()
    }

    private static func limit(_ arguments: Arguments, _ print: (String) -> Void) throws {
        let (queue, text) = (try arguments.required("--queue"), try arguments.required("--to"))
        let limit = text == "none" ? nil : try arguments.number("--to")
        if let limit, !(1...Int(Int32.max)).contains(limit) {
            throw UsageError("a limit is at least 1; pause lets no job of a queue run")
        }
        let store = try open(arguments, .writing([:]))
        try store.context.performAndWait(retrying: 10) { try store.context.limitJobs(in: queue, to: limit) }
        print("The queue \(queue) has \(limit.map { "a limit of \($0)" } ?? "no limit").")
        try store.coordinator.close()
    }

    // MARK: - Steps

    private static func open(_ arguments: Arguments, _ access: Store.Access) throws -> Store {
        let store = try Store(arguments, access: access, hasJobs: true)
        guard store.model.entitiesByName["QueuedJob"] != nil else {
            throw UsageError("the model of this store has no jobs")
        }
        return store
    }

    private static func state(_ arguments: Arguments) throws -> JobState? {
        guard let text = arguments["--state"] else { return nil }
        guard let state = JobState(rawValue: text) else {
            throw UsageError("“\(text)” is none of \(JobState.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return state
    }

    private static func request(
        _ arguments: Arguments,
        _ states: [JobState],
        _ store: Store
    ) throws -> NSFetchRequest<QueuedJob> {
        let request = QueuedJob.request(queue: arguments["--queue"])
        var predicates = [request.predicate, NSPredicate(format: "state IN %@", states.map(\.rawValue))].compactMap {
            $0
        }
        if let name = arguments["--name"] { predicates.append(NSPredicate(format: "name == %@", name)) }
        if let text = arguments["--id"] {
            guard let url = URL(string: text), let id = store.coordinator.managedObjectID(forURIRepresentation: url)
            else {
                throw UsageError("“\(text)” is no ID of this store")
            }
            predicates.append(NSPredicate(format: "SELF == %@", id))
        }
        request.predicate = NSCompoundPredicate(andPredicateWithSubpredicates: predicates)
        return request
    }
}
