import CoreData
import CoreDataJobs
import JobQueue
import Synchronization

extension FrameworkSide {
    static func jobsFolder(_ folder: String) -> URL {
        URL(fileURLWithPath: folder).appendingPathComponent("framework-jobs", isDirectory: true)
    }

    static func queue(_ folder: String) -> URL { jobsFolder(folder).appendingPathComponent("queue.sqlite") }

    /// Jobs in a queue from which several processes take them.
    static func doJobs(in folder: String, count: Int, processes: Int, oneByOne: Bool) throws -> Sample {
        try FileManager.default.createDirectory(at: jobsFolder(folder), withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: jobsFolder(folder)) }
        return try doJobs(at: queue(folder), count: count) {
            try WorkerProcesses.run(oneByOne ? .frameworkWorkerOneByOne : .frameworkWorker, in: folder, processes)
        }
    }

    static func work(in folder: String, oneByOne: Bool) throws { try work(at: queue(folder), oneByOne: oneByOne) }

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
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - oneByOne: Whether each job has a save of its own.
    /// - Throws: Errors of the store.
    static func work(at store: URL, oneByOne: Bool) throws {
        let places = WorkerProcesses.jobsAtOnce
        let worker = JobWorker(try QueueStore.open(at: store), queues: ["default": places])
        let name = worker.name
        if oneByOne {
            worker.handle(Checksum.self) { run in try await Worker.work(on: run, as: name) }
        } else {
            worker.handle(Checksum.self, together: places) { group in
                let results = group.jobs.map { ($0.number, Checksum.result(of: $0.document)) }
                try await group.perform { context in
                    for (number, result) in results {
                        let receipt = Receipt(context: context)
                        (receipt.number, receipt.worker, receipt.finishedAt) = (number, name, Date())
                        receipt.result = result
                    }
                }
            }
        }
        try BenchChild.isReady()
        guard try BenchChild.isAsked() else { return }
        _ = try awaitEnd(of: { try await worker.drain(atOnce: places) })
    }

    /// Runs asynchronous code, and waits for its end.
    static func awaitEnd<T: Sendable>(of work: @escaping @Sendable () async throws -> T) throws -> T {
        let done = DispatchSemaphore(value: 0)
        let outcome = Mutex<Result<T, any Error>?>(nil)
        Task.detached {
            let result: Result<T, any Error>
            do { result = .success(try await work()) } catch { result = .failure(error) }
            outcome.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        guard let result = outcome.withLock({ $0 }) else { throw BenchError("The work has no result") }
        return try result.get()
    }
}
