import CoreData
import Synchronization

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

        let isOver = end(of: options)
        let container = try QueueStore.open(at: options.storeURL)
        switch options.role {
        case .demo: break
        case .produce:
            let logbook = try Logbook(Producer.name, in: options.folderURL)
            try await Producer(container: container, logbook: logbook).run(until: isOver)
        case .work:
            let logbook = try Logbook(options.name, in: options.folderURL)
            let worker = Worker(options.name, container: container, logbook: logbook, lease: options.lease)
            try await worker.run(contexts: options.contexts, until: isOver)
        case .monitor:
            try await Monitor(container: container).run(until: isOver)
        case .check:
            let audit = try await Audit(container, logbooks: options.folderURL)
            Self.show(audit)
            return audit.isSound
        }
        return true
    }

    /// Makes the check that ends the process: a producer ends when its time is over, others when they are asked to.
    private static func end(of options: Options) -> @Sendable () -> Bool {
        let isAsked = Asked()
        if options.isSupervised { isAsked.followInput() }
        let end = options.role == .produce ? Date(timeIntervalSinceNow: options.seconds) : .distantFuture
        return { isAsked.value || Date() >= end }
    }

    /// Is set when the standard input ends.
    private final class Asked: Sendable {
        private let flag = Atomic(false)

        var value: Bool { flag.load(ordering: .relaxed) }

        func followInput() {
            Thread.detachNewThread {
                while let data = try? FileHandle.standardInput.read(upToCount: 1024), !data.isEmpty {}
                self.flag.store(true, ordering: .relaxed)
            }
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
