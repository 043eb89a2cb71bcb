import CoreData
import CoreDataJobs
import JobQueue
import Synchronization

extension FrameworkSide {
    /// Jobs that one worker takes one by one, while many others wait.
    static func takeJobs(in folder: String, waiting: Int) throws -> Sample {
        try FileManager.default.createDirectory(at: jobsFolder(folder), withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: jobsFolder(folder)) }
        return try takeJobs(at: queue(folder), waiting: waiting)
    }

    /// Jobs of a store that one worker takes one by one, while many others wait.
    ///
    /// Most of them wait for the worker. Each tenth waits for a time that is far away. The queue has a limit, so each claim
    /// counts the jobs that run.
    static func takeJobs(at store: URL, waiting: Int) throws -> Sample {
        let container = try QueueStore.open(at: store)
        let context = container.newBackgroundContext()
        try context.performAndWait {
            try context.limitJobs(in: "default", to: 4)
            try context.save()
        }
        let last = Int64(waiting + Scale.takenJobs)
        for start in stride(from: 1, through: last, by: 10_000) {
            try context.performAndWait {
                for number in start...min(start + 9_999, last) {
                    try context.enqueue(Checksum(number: number)) {
                        if number % 10 == 0 { $0.start = .after(.seconds(7 * 86_400)) }
                    }
                }
                try context.save()
                context.reset()
            }
        }
        let worker = JobWorker(container, queues: ["default": 1])
        let name = worker.name
        let taken = Atomic(0)
        worker.handle(Checksum.self) { [weak worker] run in
            try await Worker.work(on: run, as: name)
            guard taken.add(1, ordering: .relaxed).newValue == Scale.takenJobs else { return }
            // The worker waits for this job before it stops.
            Task.detached { await worker?.stop() }
        }
        let start = ContinuousClock.now
        try awaitEnd(of: { try await worker.run(stoppingOn: []) })
        return Sample(duration: .now - start, checksum: Scale.takenJobs)
    }
}
