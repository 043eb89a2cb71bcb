import CoreData
import CoreDataJobs

/// The job of shipping an order, which the save that places the order enqueues.
package struct Pack: Job {
    package static let queue = "packing"

    /// The number of the order.
    package var order: UUID

    package static var options: JobOptions {
        var options = JobOptions()
        options.queue = queue
        return options
    }
}

/// Ships orders, in a separate process.
///
/// The shipment, the new state of the order and the end of the job are one save. So no order is shipped twice, and if a
/// worker dies, then another one ships its orders.
package enum Packer {
    /// Makes a worker.
    ///
    /// - Parameters:
    ///   - container: The container with the shop's store.
    ///   - name: The name of the worker; no two processes have the same.
    /// - Returns: The worker, which does nothing yet.
    package static func worker(on container: NSPersistentContainer, name: String) -> JobWorker {
        var settings = JobWorker.Settings()
        settings.lease = .seconds(2)
        let worker = JobWorker(container, queues: [Pack.queue: 8], name: name, settings: settings)
        worker.handle(Pack.self) { run in try await ship(run, as: name) }
        return worker
    }

    package static func ship(_ run: JobRun<Pack>, as worker: String) async throws {
        try await run.perform { context in
            context.transactionAuthor = worker
            guard let order = try Shop.order(run.job.order, in: context) else { throw JobExit.cancel("no such order") }
            order.state = .shipped
            order.updatedAt = Date()
            let shipment = Shipment(context: context)
            shipment.worker = worker
            shipment.shippedAt = order.updatedAt
            shipment.order = order
        }
    }
}
