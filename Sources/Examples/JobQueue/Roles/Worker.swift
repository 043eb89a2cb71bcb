import CoreData
import StrataLocks

/// Claims jobs and does them, in several contexts at once.
///
/// Two things ensure that no job is done twice. Each step first checks that the job still has the expected state: free,
/// or claimed by this worker. And a change between the check and the save shows in the version of the row. If two
/// workers claim one job, the later save meets a newer version, and the merge policy drops that claim. If a worker ends
/// a job whose lease has run out meanwhile, it meets the version of the next claim. Then its save fails as a whole and
/// leaves no receipt.
package final class Worker: Sendable {
    package let container: NSPersistentContainer
    package let name: String
    package let logbook: Logbook
    /// The number of jobs that one context claims with a save.
    package let batch: Int
    /// The duration of a claim, in seconds: much longer than a batch takes.
    package let lease: Double

    private let counts = Locked(Counts())

    /// The counts of a worker's jobs so far.
    package struct Counts: Sendable, Equatable {
        package var done = 0
        /// The number of jobs that another worker claimed a moment earlier.
        package var missed = 0
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

    // MARK: - Claiming

    /// A job that belongs to this worker until its lease runs out.
    package struct Claim: Sendable {
        package let id: NSManagedObjectID
        package let payload: String
        /// The number of the claim of the job.
        ///
        /// A later claim has another number, even if the same worker makes it.
        package let attempt: Int32
    }

    /// Claims some of the free jobs for this worker.
    package func claim(in context: NSManagedObjectContext) throws -> [Claim] {
        try take(Array(free(in: context).shuffled().prefix(batch)), in: context)
    }

    /// The jobs without a lease.
    ///
    /// They are more than a batch: if all workers tried to claim the very first ones, most would fail.
    func free(in context: NSManagedObjectContext) throws -> [Job] {
        let request = NSFetchRequest<Job>(entityName: "Job")
        request.predicate = NSPredicate(
            format: "state < %d AND availableAt <= %@",
            Job.State.done.rawValue,
            Date() as NSDate
        )
        // The order is that of the index, which leaves out the jobs that are done.
        request.sortDescriptors = [NSSortDescriptor(key: "availableAt", ascending: true)]
        request.fetchLimit = batch * 8
        // A claim is based on the values that the fetch has read, and not on those that a fault reads later.
        request.returnsObjectsAsFaults = false
        return try context.fetch(request)
    }

    /// Claims jobs.
    ///
    /// Those that another worker has claimed since they were fetched are not in the result.
    func take(_ jobs: [Job], in context: NSManagedObjectContext) throws -> [Claim] {
        let now = Date()
        // A fetch finds the stored state, but its objects show the newest rows, including a claim of another context in
        // between.
        let free = jobs.filter { $0.state != .done && $0.availableAt <= now }
        counts.withLock { $0.missed += jobs.count - free.count }
        guard !free.isEmpty else { return [] }
        let claimant = context.name ?? name
        let end = now.addingTimeInterval(lease)
        for job in free {
            job.state = .claimed
            job.claimant = claimant
            job.attempts += 1
            job.availableAt = end
        }
        // If another worker was faster, the job gets its stored state.
        context.mergePolicy = NSMergePolicy.rollback
        try context.save()
        let mine = free.filter { !$0.isDeleted && $0.state == .claimed && $0.claimant == claimant }
        counts.withLock { $0.missed += free.count - mine.count }
        return mine.map { Claim(id: $0.objectID, payload: $0.payload, attempt: $0.attempts) }
    }

    // MARK: - Ending

    /// Marks a job as done and leaves a receipt, in one save.
    ///
    /// It does neither if the job no longer belongs to this worker.
    ///
    /// - Returns: The job's number, if it is done.
    package func finish(_ claim: Claim, _ result: Int64, in context: NSManagedObjectContext) throws -> Int64? {
        // The object may be another one than that of the claim, and may show a later claim.
        guard let job = try context.existingObject(with: claim.id) as? Job, job.state == .claimed,
            job.attempts == claim.attempt
        else {
            counts.withLock { $0.expired += 1 }
            return nil
        }
        job.state = .done
        let receipt = Receipt(context: context)
        receipt.worker = context.name ?? name
        receipt.finishedAt = Date()
        receipt.result = result
        receipt.job = job
        // Another worker's claim must win: no change here may be saved on top of it.
        context.mergePolicy = NSMergePolicy.error
        do {
            try context.save()
        } catch let error as CocoaError where error.code == .managedObjectMerge {
            context.rollback()
            counts.withLock { $0.expired += 1 }
            return nil
        }
        counts.withLock { $0.done += 1 }
        return job.number
    }
}
