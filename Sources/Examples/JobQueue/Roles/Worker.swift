import CoreData
import CoreDataJobs

/// Does the jobs of the queue: each leaves a receipt, and the receipt and the end of the job are one save.
package final class Worker: Sendable {
    package let jobs: JobWorker
    private let observer: SaveObserver

    /// Makes a worker.
    ///
    /// - Parameters:
    ///   - name: The name; no two workers have the same.
    ///   - container: The container with the queue's store.
    ///   - logbook: Gets the numbers of the receipts that are saved.
    ///   - runs: The number of jobs that it runs at once.
    ///   - lease: For how long a job stays its own after it has died, in seconds.
    package init(_ name: String, container: NSPersistentContainer, logbook: Logbook, runs: Int = 2, lease: Double = 2) {
        var settings = JobWorker.Settings()
        settings.lease = .seconds(lease)
        jobs = JobWorker(container, queues: ["default": runs], name: name, settings: settings)
        jobs.handle(Checksum.self) { run in try await Self.work(on: run, as: name) }
        observer = SaveObserver(container.persistentStoreCoordinator) { saved in
            logbook.note(saved.compactMap { $0 as? Receipt }.filter { $0.worker == name }.map(\.number))
        }
    }

    package static func work(on run: JobRun<Checksum>, as name: String) async throws {
        let job = run.job
        let result = Checksum.result(of: job.document)
        try await run.perform { context in
            let receipt = Receipt(context: context)
            receipt.number = job.number
            receipt.worker = name
            receipt.finishedAt = Date()
            receipt.result = result
        }
    }
}

/// Passes on the objects that contexts of a coordinator have inserted, after each save.
private final class SaveObserver: @unchecked Sendable {
    // @unchecked Sendable: the token is set in the initialiser only, and removed in the deinitialiser.
    private let token: any NSObjectProtocol

    init(_ coordinator: NSPersistentStoreCoordinator, _ body: @escaping @Sendable (Set<NSManagedObject>) -> Void) {
        let center = NotificationCenter.default
        // The closure must not be the last to hold the coordinator: the centre would release it while it is locked.
        token = center.addObserver(forName: .NSManagedObjectContextDidSave, object: nil, queue: nil) {
            [weak coordinator] save in
            // This runs on the queue of the context that has saved.
            guard let saved = (save.object as? NSManagedObjectContext)?.persistentStoreCoordinator,
                saved === coordinator
            else { return }
            body(save.userInfo?[NSInsertedObjectsKey] as? Set<NSManagedObject> ?? [])
        }
    }

    deinit { NotificationCenter.default.removeObserver(token) }
}
