import CoreData
import CoreDataJobs

/// Runs the whole system for some seconds, kills a worker, and checks the result.
struct Demo {
    let options: Options
    /// The longest time for the other workers to finish the remaining jobs at the end, in seconds.
    static let patience = 60.0

    init(_ options: Options) {
        self.options = options
    }

    func run() async throws -> Bool {
        try removeTraces()
        let container = try QueueStore.open(at: options.storeURL)
        var workers: [Child] = []
        for number in 1...options.workers {
            workers.append(
                try start(
                    "work",
                    "--name",
                    "worker-\(number)",
                    "--contexts",
                    "\(options.contexts)",
                    "--lease",
                    "\(options.lease)"
                )
            )
        }
        let producer = try start("produce", "--seconds", "\(options.seconds)")
        let monitor = try start("monitor")

        try await Task.sleep(for: .seconds(options.seconds * 0.4))
        let victim = workers.removeLast()
        let orphans = try await kill(victim, named: "worker-\(options.workers)", jobsIn: container)
        if workers.isEmpty {
            // Another worker has to do the remaining jobs.
            workers.append(try start("work", "--name", "worker-\(options.workers + 1)"))
        }

        guard try await producer.ended(within: options.seconds + Self.patience) == 0 else {
            throw QueueError("the producer has failed")
        }
        try await waitUntilDone(container)
        for worker in workers {
            guard try await worker.endedWhenAsked(within: Self.patience) == 0 else {
                throw QueueError("a worker has failed")
            }
        }
        guard try await monitor.endedWhenAsked(within: Self.patience) == 0 else {
            throw QueueError("the monitor has failed")
        }

        var audit = try await Audit(container, logbooks: options.folderURL)
        if audit.jobs == 0 { audit.faults.append("there was not a single job") }
        let returned = try await returnedCount(orphans, container)
        if orphans.isEmpty { audit.faults.append("the killed worker had no jobs that could return") }
        if returned < orphans.count {
            audit.faults.append("\(orphans.count - returned) jobs of the killed worker did not return")
        }
        print("The worker that was killed had \(orphans.count) jobs; \(returned) were done by others.")
        JobQueueCommand.show(audit)
        return audit.isSound
    }

    private func start(_ arguments: String...) throws -> Child {
        try Child(
            arguments + ["--folder", options.folder, "--supervised"]
                + (options.database.map { ["--store", $0] } ?? [])
        )
    }

    /// Removes the files of an earlier run.
    private func removeTraces() throws {
        let files = FileManager.default
        for name in try files.contentsOfDirectory(atPath: options.folder)
        where name.hasPrefix("queue.sqlite") || name.hasSuffix(".log") {
            try files.removeItem(at: options.folderURL.appendingPathComponent(name))
        }
    }

    // MARK: - The killed worker

    /// Kills a worker at a moment when it runs jobs.
    ///
    /// - Returns: The numbers of these jobs.
    private func kill(_ victim: Child, named name: String, jobsIn container: NSPersistentContainer) async throws
        -> [Int64]
    {
        let context = container.newBackgroundContext()
        let deadline = Date(timeIntervalSinceNow: 10)
        while true {
            // While it is stopped, it cannot end its jobs between the check and the kill. Reading waits for no other
            // process.
            try await victim.pause()
            // A server may still carry out what the worker has sent before.
            try await Task.sleep(for: .milliseconds(options.database == nil ? 0 : 100))
            let orphans = try await context.perform { try Self.numbers(of: name, context) }
            if !orphans.isEmpty || Date() > deadline {
                victim.kill()
                return orphans
            }
            victim.goOn()
            try await Task.sleep(for: .milliseconds(3))
        }
    }

    private static func numbers(of name: String, _ context: NSManagedObjectContext) throws -> [Int64] {
        try context.fetch(QueuedJob.request(.running)).filter { $0.claimedBy == name }
            .map { try $0.payload(as: Checksum.self).number }
    }

    private func returnedCount(_ numbers: [Int64], _ container: NSPersistentContainer) async throws -> Int {
        let context = container.newBackgroundContext()
        return try await context.perform {
            let request = NSFetchRequest<Receipt>(entityName: "Receipt")
            request.predicate = NSPredicate(format: "number IN %@", numbers.map { NSNumber(value: $0) })
            return try context.fetch(request).count { $0.worker != "worker-\(options.workers)" }
        }
    }

    // MARK: - The end

    private func waitUntilDone(_ container: NSPersistentContainer) async throws {
        let context = container.newBackgroundContext()
        let deadline = Date(timeIntervalSinceNow: Self.patience)
        while Date() < deadline {
            if try await context.perform({ try QueueStatus(context).open }) == 0 { return }
            try await Task.sleep(for: .milliseconds(50))
        }
        // The audit shows which jobs are left.
    }
}
