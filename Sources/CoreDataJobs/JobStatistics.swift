import CoreData

/// The jobs of a store at one moment, by queue and state.
///
/// ```swift
/// let statistics = try context.jobStatistics()
/// for queue in statistics.queues { print(queue.name, queue.count(of: .ready), queue.count(of: .running)) }
/// ```
///
/// How often jobs were done, tried again, failed or lost is counted by the instrument of the coordinator; see
/// `CoreDataEvent.Kind`.
public struct JobStatistics: Hashable, Sendable {
    /// The jobs of one queue.
    ///
    /// ```swift
    /// for queue in try context.jobStatistics().queues where queue.endedLeases > 0 { print(queue.name) }
    /// ```
    public struct Queue: Hashable, Sendable {
        /// The name of the queue.
        public let name: String
        /// Whether workers take no jobs of it.
        public let isPaused: Bool
        /// The most of its jobs that run at once, in all workers together; `nil` for any number.
        public let limit: Int?
        /// The number of its jobs in each state; a state without jobs is missing.
        public let counts: [JobState: Int]
        /// How long the job that waits longest for a worker has been due; `nil` if no job is ready.
        public let longestWait: Duration?
        /// The number of running jobs whose lease has ended: their workers have died, or are too slow.
        public let endedLeases: Int

        /// The number of its jobs in a state.
        ///
        /// - Parameter state: The state.
        /// - Returns: The number; 0 if there is none.
        public func count(of state: JobState) -> Int { counts[state] ?? 0 }
    }

    /// The queues that have jobs or a limit, or are paused, in the order of their names.
    public let queues: [Queue]

    /// The gauges in the text format of Prometheus, each line with a line break at its end.
    ///
    /// ```swift
    /// let metrics = PrometheusInstrument()
    /// coordinator.instrument = metrics
    /// // GET /metrics
    /// let text = metrics.text(coordinator.statistics()) + (try context.jobStatistics().prometheusText)
    /// respond(text, type: PrometheusInstrument.contentType)
    /// ```
    public var prometheusText: String {
        var lines: [String] = []
        func gauge(_ name: String, _ values: [(labels: String, value: String)]) {
            guard !values.isEmpty else { return }
            lines.append("# TYPE coredata_\(name) gauge")
            for (labels, value) in values { lines.append("coredata_\(name){\(labels)} \(value)") }
        }
        gauge(
            "jobs",
            queues.flatMap { queue in
                JobState.allCases.map { ("\(Self.label(queue)),state=\"\($0)\"", "\(queue.count(of: $0))") }
            }
        )
        gauge("job_queue_paused", queues.map { (Self.label($0), $0.isPaused ? "1" : "0") })
        gauge("job_queue_limit", queues.compactMap { queue in queue.limit.map { (Self.label(queue), "\($0)") } })
        gauge(
            "job_longest_wait_seconds",
            queues.map { (Self.label($0), "\($0.longestWait.map { $0 / .seconds(1) } ?? 0)") }
        )
        gauge("job_ended_leases", queues.map { (Self.label($0), "\($0.endedLeases)") })
        return lines.map { $0 + "\n" }.joined()
    }

    private static func label(_ queue: Queue) -> String {
        let name = queue.name.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
        return "queue=\"\(name)\""
    }
}

extension NSManagedObjectContext {
    /// Counts the jobs of the stores, by queue and state.
    ///
    /// It reads what is stored, without the unsaved changes of the context. It makes two fetches that group, and two for the
    /// facts of queues. The store looks at each job that it keeps, so ask for it each few seconds and not more often.
    ///
    /// Call it on the queue of the context.
    ///
    /// ```swift
    /// print(try context.jobStatistics().queues.map(\.name))
    /// ```
    ///
    /// - Parameter now: The time by which waits and leases are judged; by default that of the system.
    /// - Returns: The numbers; those of waits and leases may be some moments newer.
    /// - Throws: Errors of the store, and `persistentStoreOperation` (134070) if the model lacks the entities of jobs.
    public func jobStatistics(at now: Date = Date()) throws -> JobStatistics {
        guard persistentStoreCoordinator?.managedObjectModel.entitiesByName[QueuedJob.entityName] != nil else {
            throw FetchPlanner.refused(
                "Jobs need the entities of JobEntities: list JobEntities.classes in the model, or merge JobEntities.model()."
            )
        }
        let (paused, limits) = (try pausedJobQueues(), try jobQueueLimits())
        var counts: [String: [JobState: Int]] = [:]
        var due: [String: Date] = [:]
        for row in try grouped(by: ["queue", "state"], nil) {
            guard let queue = row["queue"] as? String, let name = row["state"] as? String,
                let state = JobState(rawValue: name)
            else { continue }
            counts[queue, default: [:]][state] = row["count"] as? Int
            if state == .ready { due[queue] = row["due"] as? Date }
        }
        var ended: [String: Int] = [:]
        let hasEnded = NSPredicate(
            format: "state == %@ AND (claimedUntil == nil OR claimedUntil <= %@)",
            JobState.running.rawValue,
            now as NSDate
        )
        for row in try grouped(by: ["queue"], hasEnded) {
            if let queue = row["queue"] as? String { ended[queue] = row["count"] as? Int }
        }
        return JobStatistics(
            queues: Set(counts.keys).union(paused).union(limits.keys).sorted().map { name in
                JobStatistics.Queue(
                    name: name,
                    isPaused: paused.contains(name),
                    limit: limits[name],
                    counts: counts[name] ?? [:],
                    longestWait: due[name].map { .seconds(max(now.timeIntervalSince($0), 0)) },
                    endedLeases: ended[name] ?? 0
                )
            }
        )
    }

    private func grouped(by names: [String], _ predicate: NSPredicate?) throws -> [NSDictionary] {
        func value(_ name: String, _ function: String, of key: String, _ type: NSAttributeDescription.AttributeType)
            -> NSExpressionDescription
        {
            let value = NSExpressionDescription()
            value.name = name
            value.expression = NSExpression(forFunction: function, arguments: [NSExpression(forKeyPath: key)])
            value.resultType = type
            return value
        }
        let request = NSFetchRequest<NSDictionary>(entityName: QueuedJob.entityName)
        request.predicate = predicate
        request.resultType = .dictionaryResultType
        request.propertiesToGroupBy = names
        request.propertiesToFetch =
            names + [value("count", "count:", of: "name", .integer64), value("due", "min:", of: "runAt", .date)]
        return try fetch(request)
    }
}
