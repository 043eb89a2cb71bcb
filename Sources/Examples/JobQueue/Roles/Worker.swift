import CoreData
import StrataLocks

/// Claims jobs and does them, in several contexts at once.
///
/// Two things ensure that no job is done twice. No claim gets a job while the lease of another claim lasts. And if a worker
/// takes longer than its lease, then a later claim of the job shows in its row. The save of the slow worker finds that
/// claim, fails as a whole and leaves no receipt.
package final class Worker: Sendable {
    package let container: NSPersistentContainer
    package let name: String
    package let logbook: Logbook
    /// The number of jobs that one context claims at a time.
    package let batch: Int
    /// The duration of a claim, in seconds: much longer than a batch takes.
    package let lease: Double

    private let counts = Locked(Counts())

    /// The counts of a worker's jobs so far.
    package struct Counts: Sendable, Equatable {
        package var done = 0
        /// The number of jobs whose lease had run out when they were done.
        package var expired = 0
    }

    package init(
        _ name: String,
        container: NSPersistentContainer,
        logbook: Logbook,
        batch: Int = 8,
        lease: Double = 2
    ) {
        self.name = name
        self.container = container
        self.logbook = logbook
        self.batch = batch
        self.lease = lease
    }

    package var countsSoFar: Counts { counts.withLock { $0 } }

    /// Works in `contexts` contexts until `isOver` returns true.
    ///
    /// Each then finishes the jobs that it has claimed.
    package func run(contexts: Int, until isOver: @escaping @Sendable () -> Bool) async throws {
        let doorbell = Doorbell(container.persistentStoreCoordinator)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...max(contexts, 1) {
                group.addTask {
                    let context = self.container.newBackgroundContext()
                    context.name = "\(self.name).\(number)"
                    while !isOver() {
                        let count = doorbell.count
                        guard try await self.workOnce(in: context) == 0 else { continue }
                        // There is no notification when a lease runs out.
                        await doorbell.wait(beyond: count, atMost: 0.25)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Claims a batch and does it.
    ///
    /// - Returns: The number of jobs claimed.
    @discardableResult
    package func workOnce(in context: NSManagedObjectContext) async throws -> Int {
        let claimed = try await context.perform { try self.claim(in: context) }
        for claim in claimed {
            // This runs outside of the context's queue and of any transaction.
            let result = Job.result(of: claim.payload)
            if let number = try await context.perform({ try self.finish(claim, result, in: context) }) {
                logbook.note([number])
            }
        }
        await context.perform { context.reset() }
        return claimed.count
    }

    /// A job that belongs to this worker until its lease runs out.
    package struct Claim: Sendable {
        package let id: NSManagedObjectID
        package let payload: String
    }

    /// Claims some of the jobs that are not done and that no other worker has.
    package func claim(in context: NSManagedObjectContext) throws -> [Claim] {
        try context.claim(Job.request("isDone == NO"), as: claimant(context), for: .seconds(lease), limit: batch)
            .map { Claim(id: $0.objectID, payload: $0.payload) }
    }

    /// Marks a job as done and leaves a receipt, in one save that also ends the lease.
    ///
    /// It does nothing if the job no longer belongs to this worker.
    ///
    /// - Returns: The job's number, if it is done.
    package func finish(_ claim: Claim, _ result: Int64, in context: NSManagedObjectContext) throws -> Int64? {
        // The object may be another one than that of the claim, and may show a later claim.
        guard let job = try context.existingObject(with: claim.id) as? Job, job.claimedBy == claimant(context) else {
            counts.withLock { $0.expired += 1 }
            return nil
        }
        job.isDone = true
        job.claimedBy = nil
        job.claimedUntil = nil
        let receipt = Receipt(context: context)
        receipt.worker = claimant(context)
        receipt.finishedAt = Date()
        receipt.result = result
        receipt.job = job
        do {
            // The default merge policy writes nothing on top of another worker's claim.
            try context.save()
        } catch let error as CocoaError where error.code == .managedObjectMerge {
            context.rollback()
            counts.withLock { $0.expired += 1 }
            return nil
        }
        counts.withLock { $0.done += 1 }
        return job.number
    }

    /// The name of a claim: no two contexts may have the same.
    private func claimant(_ context: NSManagedObjectContext) -> String { context.name ?? name }
}
