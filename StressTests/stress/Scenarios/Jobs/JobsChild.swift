import CoreData
import CoreDataJobs

/// A process of the scenario `jobs`: one worker, whose clock jumps.
enum JobsChild {
    /// The jobs that one worker runs at once, by queue.
    static let queues = ["errands": 3, "lanes": 3]
    /// The most seconds by which a clock is wrong.
    static let jump = 3_600.0

    /// Works until it gets SIGTERM, or until the process that has started it is gone.
    ///
    /// - Parameter arguments: The store, the log, the seed, the lease in milliseconds, the kind of the store, and a sabotage.
    /// - Throws: Errors of opening the store.
    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 5, let seed = UInt64(arguments[2]), let lease = Int(arguments[3]),
            let kind = StoreKind(rawValue: arguments[4])
        else {
            throw StressError("child jobs needs a store, a log, a seed, a lease and the kind of the store")
        }
        let file = URL(fileURLWithPath: arguments[0])
        let place = kind == .postgresql ? URL(string: arguments[0]) ?? file : file
        let sabotage = arguments.count > 5 ? arguments[5] : nil
        if let sabotage { FaultPoints.switchOff(sabotage) }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: try JobsModel.make())
        _ = try ServerPatience(isNeeded: kind == .postgresql).trying {
            try coordinator.addPersistentStore(
                type: kind.type,
                configuration: nil,
                at: place,
                options: Jobs.storeOptions
            )
        }
        let clock = JumpingClock()
        let worker = try worker(
            coordinator,
            log: arguments[1],
            lease: .milliseconds(lease),
            clock: clock,
            sabotage: sabotage
        )
        let parent = getppid()
        var stream = SeededStream(seed: seed, stream: 0)
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            defer { done.signal() }
            // Its patience is longer than all jumps of the clock together, so that each job that runs comes to its end.
            try await worker.run(within: .seconds(4 * jump))
        }
        while done.wait(timeout: .now() + .milliseconds(50 + stream.below(200))) != .success {
            guard getppid() == parent else { exit(StressExit.harnessError.rawValue) }
            // Now and then a clock is right.
            clock.jump(to: stream.chance(0.2) ? 0 : Double.random(in: -jump...jump, using: &stream))
        }
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    /// A worker with the scenario's handler.
    static func worker(
        _ coordinator: NSPersistentStoreCoordinator,
        log: String,
        lease: Duration,
        clock: any JobClock,
        sabotage: String?
    ) throws -> JobWorker {
        var settings = JobWorker.Settings()
        settings.lease = lease
        settings.poll = .milliseconds(100)
        settings.maintenance = .milliseconds(500)
        settings.clock = clock
        let worker = JobWorker(coordinator, queues: queues, settings: settings)
        let handler = JobsHandler(
            worker: worker.name,
            coordinator: coordinator,
            log: try JobsLog.Writer(log),
            lease: lease,
            sabotage: sabotage
        )
        worker.handle(Errand.self) { try await handler.handle($0) }
        return worker
    }
}
