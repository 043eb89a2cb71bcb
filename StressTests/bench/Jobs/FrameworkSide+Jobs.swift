import CoreData
import CoreDataJobs
import JobQueue
import Synchronization

extension FrameworkSide {
    private static func jobsFolder(_ folder: String) -> URL {
        URL(fileURLWithPath: folder).appendingPathComponent("framework-jobs", isDirectory: true)
    }

    private static func queue(_ folder: String) -> URL { jobsFolder(folder).appendingPathComponent("queue.sqlite") }

    /// Jobs in a queue from which several processes take them.
    static func doJobs(in folder: String, count: Int, processes: Int) throws -> Sample {
        try FileManager.default.createDirectory(at: jobsFolder(folder), withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: jobsFolder(folder)) }
        return try doJobs(at: queue(folder), count: count) {
            try WorkerProcesses.run(.frameworkWorker, in: folder, processes)
        }
    }

    static func work(in folder: String) throws { try work(at: queue(folder)) }

    /// Enqueues jobs in a store, and lets others do them.
    static func doJobs(at store: URL, count: Int, _ run: () throws -> Duration) throws -> Sample {
        let container = try QueueStore.open(at: store)
        let context = container.newBackgroundContext()
        try context.performAndWait {
            for number in 1...Int64(count) { try context.enqueue(Checksum(number: number)) }
            try context.save()
            context.reset()
        }
        let duration = try run()
        let done = try context.performAndWait { try context.count(for: NSFetchRequest<Receipt>(entityName: "Receipt")) }
        return Sample(duration: duration, checksum: done)
    }

    /// In the process that was started for it: does jobs when it is asked to, until there are none left.
    static func work(at store: URL) throws {
        let places = WorkerProcesses.jobsAtOnce
        let worker = JobWorker(try QueueStore.open(at: store), queues: ["default": places])
        worker.handle(Checksum.self) { [name = worker.name] run in try await Worker.work(on: run, as: name) }
        try BenchChild.isReady()
        guard try BenchChild.isAsked() else { return }
        let done = DispatchSemaphore(value: 0)
        let outcome = Mutex<Result<JobCounts, any Error>?>(nil)
        Task.detached {
            let counts: Result<JobCounts, any Error>
            do { counts = .success(try await worker.drain(atOnce: places)) } catch { counts = .failure(error) }
            outcome.withLock { $0 = counts }
            done.signal()
        }
        done.wait()
        _ = try outcome.withLock { try $0?.get() }
    }
}
