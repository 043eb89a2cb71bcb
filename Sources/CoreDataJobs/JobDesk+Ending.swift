import CoreData
import StrataLocks

// The saves that end runs.
extension JobDesk {
    /// Changes a job of this worker and saves, in a context that may have other changes.
    ///
    /// - Returns: Whether the job was still this worker's, and its state; `nil` if not. Then all changes are dropped.
    /// - Throws: Errors of the save. All changes of the context are dropped then.
    func settle(
        _ claim: JobClaim,
        in context: NSManagedObjectContext? = nil,
        _ change: @Sendable @escaping (QueuedJob) throws -> Void
    ) async throws -> JobState? {
        let context = context ?? self.context
        return try await context.perform {
            do {
                return try settleAndWait(claim, context, change)
            } catch {
                context.rollback()
                throw error
            }
        }
    }

    private func settleAndWait(
        _ claim: JobClaim,
        _ context: NSManagedObjectContext,
        _ change: (QueuedJob) throws -> Void
    ) throws -> JobState? {
        // Only this policy finds that another worker has the job.
        context.mergePolicy = NSMergePolicy.error
        var tries = 0
        // A row that this context has not read is at least as new as the claim. If it is not the newest, then the save finds that.
        var isFresh = context.registeredObject(for: claim.id) == nil
        var own: [String: Any]?
        while true {
            tries += 1
            guard let job = try Self.job(claim, context) else { break }
            // The handler may have changed properties of a subclass. All others are the workers'.
            let changes = own ?? Self.ownChanges(job)
            own = changes
            if !isFresh { context.refresh(job, mergeChanges: false) }
            isFresh = false
            // The row is read here: it may have gone since, and a property cannot throw.
            guard try Self.job(claim, context) != nil else { break }
            let isHad = job.state == .running && job.claimedBy == worker && job.attempt == claim.attempt
            guard isHad || FaultGuard.jobCheck.isOff else { break }
            for (name, value) in changes { job.setValue(value is NSNull ? nil : value, forKey: name) }
            try change(job)
            let state = job.state
            // Heartbeats, and changes that people make to jobs, concern only the job, so that this can be repeated.
            do {
                // The row keeps a unique key for its period.
                if state == .done || state == .cancelled, job.keptFor <= 0, job.uniqueKey == nil { context.delete(job) }
                try context.save()
                return state
            } catch let error as CocoaError where error.code == .managedObjectMerge && tries < Self.patience {
                let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
                guard !conflicts.isEmpty, conflicts.allSatisfy({ $0.sourceObject === job }) else { throw error }
                context.refresh(job, mergeChanges: false)
            }
        }
        context.rollback()
        return nil
    }

    /// Ends a job of this worker as done, whose run has nothing else to save.
    ///
    /// - Parameters:
    ///   - claim: The claim of the run.
    ///   - output: The output of the handler.
    ///   - time: The time of the end.
    /// - Returns: Whether the job was still this worker's.
    /// - Throws: Errors of the save.
    func finish(_ claim: JobClaim, output: String?, at time: @escaping @Sendable () -> Date) async throws -> Bool {
        try await ends.end(claim, output, at: self, time: time)
    }

    /// Changes several jobs of this worker and saves.
    ///
    /// - Returns: Whether all were still this worker's; otherwise nothing was saved.
    /// - Throws: Errors of the save.
    func settleTogether(_ claims: [JobClaim], _ change: @Sendable @escaping (QueuedJob) throws -> Void) async throws
        -> Bool
    {
        try await perform { try settleAndWait(claims, $0, change) }
    }

    /// Changes several jobs of this worker and saves, in a context that may have other changes.
    ///
    /// - Returns: Whether all were still this worker's; otherwise all changes are dropped.
    /// - Throws: Errors of the save. All changes of the context are dropped then.
    func settle(
        _ claims: [JobClaim],
        in context: NSManagedObjectContext,
        _ change: @Sendable @escaping (QueuedJob) throws -> Void
    ) async throws -> Bool {
        try await context.perform {
            do {
                let isSaved = try settleAndWait(claims, context, change)
                if !isSaved { context.rollback() }
                return isSaved
            } catch {
                context.rollback()
                throw error
            }
        }
    }

    private func settleAndWait(
        _ claims: [JobClaim],
        _ context: NSManagedObjectContext,
        _ change: (QueuedJob) throws -> Void
    ) throws -> Bool {
        // Only this policy finds that another worker has a job.
        context.mergePolicy = NSMergePolicy.error
        let request = QueuedJob.request()
        request.predicate = NSPredicate(format: "SELF IN %@", claims.map(\.id))
        request.sortDescriptors = nil
        // A commit of another process would make faults read their rows one by one.
        request.returnsObjectsAsFaults = false
        let jobs = try context.fetch(request)
        guard jobs.count == claims.count else { return false }
        let attempts = Dictionary(uniqueKeysWithValues: claims.map { ($0.id, $0.attempt) })
        for tries in 1...Self.patience {
            for job in jobs {
                // A handler that changes a job is called again for each job, where that is kept.
                guard tries > 1 || !job.hasChanges else { return false }
                if tries > 1 { context.refresh(job, mergeChanges: false) }
                guard job.state == .running, job.claimedBy == worker, job.attempt == attempts[job.objectID] else {
                    return false
                }
                try change(job)
            }
            do {
                for job in jobs where job.keptFor <= 0 && job.uniqueKey == nil { context.delete(job) }
                try context.save()
                return true
            } catch let error as CocoaError where error.code == .managedObjectMerge && tries < Self.patience {
                // Heartbeats, and changes that people make to jobs, concern only jobs.
                let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
                let isOfJobs = conflicts.allSatisfy { conflict in jobs.contains { $0 === conflict.sourceObject } }
                guard !conflicts.isEmpty, isOfJobs else { throw error }
            }
        }
        return false
    }

    /// The unsaved values of a job's properties that `QueuedJob` does not have.
    private static func ownChanges(_ job: QueuedJob) -> [String: Any] {
        var entity = job.entity
        while entity.name != QueuedJob.entityName, let parent = entity.superentity { entity = parent }
        let shared = entity.propertiesByName
        return job.changedValues().filter { shared[$0.key] == nil }
    }

    /// The object of a claim; `nil` if it was deleted.
    static func job(_ claim: JobClaim, _ context: NSManagedObjectContext) throws -> QueuedJob? {
        do {
            return try context.existingObject(with: claim.id) as? QueuedJob
        } catch let error as CocoaError where error.code == .managedObjectReferentialIntegrity {
            return nil
        }
    }
}

extension QueuedJob {
    /// Gives the job back without an attempt: it waits for a worker, or for a time.
    ///
    /// A job that is to be cancelled is cancelled instead.
    func giveBack(until time: Date?, at now: Date) {
        if isCancelRequested { return finish(.cancelled, at: now) }
        takeBackAttempt()
        state = time == nil ? .ready : .scheduled
        if let time { runAt = time }
    }

    /// Ends the claim, so that its attempt does not count.
    func takeBackAttempt() {
        attempt -= 1
        giveUp()
    }
}
