import CoreData
import StrataLocks

/// Claims jobs and does them, in several contexts at once.
///
/// That no job is done twice rests on two things. Each step looks first whether the job still is as it should be: free, or
/// claimed by this worker. And what happens between the look and the save shows in the version of the row: of two workers that
/// claim one job the later save meets a newer version, and the merge policy drops that claim; a worker that ends a job whose
/// lease has run out meanwhile meets the version of the next claim, and its save fails as a whole and leaves no receipt.
package final class Worker: Sendable {
    package let container: NSPersistentContainer
    package let name: String
    package let logbook: Logbook
    /// Jobs that one context claims with a save.
    package let batch: Int
    /// How long a claim holds, in seconds: longer than a batch takes by far.
    package let lease: Double

    private let counts = Locked(Counts())

    /// What a worker has done so far.
    package struct Counts: Sendable, Equatable {
        package var done = 0
        /// Jobs that another worker claimed a moment earlier.
        package var missed = 0
        /// Jobs whose lease had run out when they were done.
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

    /// Works in `contexts` contexts until `isOver` says so; each then ends what it has claimed.
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
                        // No bell rings when a lease runs out.
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
            // Outside of the context's queue and of any transaction.
            let result = Job.result(of: claim.payload)
            if let number = try await context.perform({ try self.finish(claim, result, in: context) }) {
                logbook.note([number])
            }
        }
        await context.perform { context.reset() }
        return claimed.count
    }

    // MARK: - Claiming

    /// A job that is this worker's until its lease runs out.
    package struct Claim: Sendable {
        package let id: NSManagedObjectID
        package let payload: String
        /// Which claim of the job it is: a later one has another number, also if it is of the same worker.
        package let attempt: Int32
    }

    /// Makes some of the jobs that are free this worker's.
    package func claim(in context: NSManagedObjectContext) throws -> [Claim] {
        try take(Array(free(in: context).shuffled().prefix(batch)), in: context)
    }

    /// Jobs that nobody has a lease on.
    ///
    /// More than a batch: if all workers reached for the very first ones, most would reach in vain.
    func free(in context: NSManagedObjectContext) throws -> [Job] {
        let request = NSFetchRequest<Job>(entityName: "Job")
        request.predicate = NSPredicate(
            format: "state < %d AND availableAt <= %@",
            Job.State.done.rawValue,
            Date() as NSDate
        )
        // By what the index has, which leaves the jobs that are done aside.
        request.sortDescriptors = [NSSortDescriptor(key: "availableAt", ascending: true)]
        request.fetchLimit = batch * 8
        // A claim is made upon what the fetch has seen, and not on what a fault shows when it fires.
        request.returnsObjectsAsFaults = false
        return try context.fetch(request)
    }

    /// Claims jobs; those that somebody else has claimed since they were fetched are not among the answer.
    func take(_ jobs: [Job], in context: NSManagedObjectContext) throws -> [Claim] {
        let now = Date()
        // A fetch finds what the store holds, but shows the newest rows: with another context's claim that came in between.
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
        // Where somebody else was faster the job becomes what it is in the store.
        context.mergePolicy = NSMergePolicy.rollback
        try context.save()
        let mine = free.filter { !$0.isDeleted && $0.state == .claimed && $0.claimant == claimant }
        counts.withLock { $0.missed += free.count - mine.count }
        return mine.map { Claim(id: $0.objectID, payload: $0.payload, attempt: $0.attempts) }
    }

    // MARK: - Ending

    /// Marks a job as done and leaves a receipt, in one save; or neither, if the job is not this worker's any more.
    ///
    /// - Returns: The job's number, if it is done.
    package func finish(_ claim: Claim, _ result: Int64, in context: NSManagedObjectContext) throws -> Int64? {
        // The object may be another one than that of the claim, and show a later claim.
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
        // Another worker's claim must win: nothing here may be saved on top of it.
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
