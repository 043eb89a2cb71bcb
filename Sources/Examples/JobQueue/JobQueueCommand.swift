import CoreData

/// The program: one process of the queue, or the demonstration that starts several.
package enum JobQueueCommand {
    package static func main() async {
        do {
            let isSound = try await run(try Options.parse(CommandLine.arguments.dropFirst()))
            exit(isSound ? 0 : 1)
        } catch let error as UsageError {
            report("\(error). --help lists the options.")
            exit(2)
        } catch let error as QueueError {
            report("\(error)")
            exit(1)
        } catch {
            report(error.localizedDescription)
            exit(1)
        }
    }

    /// - Returns: False if a check found faults.
    static func run(_ options: Options) async throws -> Bool {
        guard !options.showsHelp else {
            print(Options.help)
            return true
        }
        try FileManager.default.createDirectory(at: options.folderURL, withIntermediateDirectories: true)
        if options.role == .demo { return try await Demo(options).run() }

        let container = try QueueStore.open(at: options.storeURL)
        if options.role == .check {
            let audit = try await Audit(container, logbooks: options.folderURL)
            show(audit)
            return audit.isSound
        }
        let role = Task { try await play(options, container) }
        if options.isSupervised {
            Thread.detachNewThread {
                while let data = try? FileHandle.standardInput.read(upToCount: 1024), !data.isEmpty {}
                // A worker takes no further jobs then, and ends those that it runs.
                role.cancel()
            }
        }
        try await role.value
        return true
    }

    /// Does the part of one process until its task is cancelled; a producer ends when its time is over.
    private static func play(_ options: Options, _ container: NSPersistentContainer) async throws {
        switch options.role {
        case .produce:
            let logbook = try Logbook(Producer.name, in: options.folderURL)
            let producer = Producer(container: container, logbook: logbook)
            try await producer.run(until: Date(timeIntervalSinceNow: options.seconds))
        case .work:
            let logbook = try Logbook(options.name, in: options.folderURL)
            let (runs, lease) = (options.contexts, options.lease)
            let worker = Worker(options.name, container: container, logbook: logbook, runs: runs, lease: lease)
            try await worker.jobs.run()
        case .monitor:
            try await Monitor(container: container).run()
        case .demo, .check:
            break
        }
    }

    static func show(_ audit: Audit) {
        for fault in audit.faults.prefix(20) { print("WRONG: \(fault)") }
        if audit.faults.count > 20 { print("… and \(audit.faults.count - 20) more") }
        print("\(audit.jobs) jobs, \(audit.faults.count) faults")
    }

    /// Writes to standard error, so that standard output contains only the answers.
    private static func report(_ message: String) {
        FileHandle.standardError.write(Data((message + "\n").utf8))
    }
}
