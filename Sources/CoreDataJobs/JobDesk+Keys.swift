import CoreData

// The places of jobs that have a key.
extension JobDesk {
    /// Takes a place among the jobs with the same key, or lets the job wait for one.
    ///
    /// - Returns: Whether the job may run.
    func enterKey(_ claim: JobClaim, at now: Date) async throws -> Bool {
        guard let key = claim.key else { return true }
        for _ in 0..<Self.patience {
            let worker = worker
            let outcome: Entry = try await perform { context in
                try Self.enter(key, claim, worker, context)
            }
            switch outcome {
            case .entered:
                // The next one may have waited for this one's place.
                if claim.keyLimit > 1 { try await unblock(key, limit: claim.keyLimit) }
                return true
            case .lost: return false
            case .cancelled:
                _ = try await settle(claim) { $0.finish(.cancelled, at: now) }
                try await unblock(key, limit: claim.keyLimit)
                return false
            case .blocked:
                // The job that had the place may have ended between the look and the save.
                try await unblock(key, limit: claim.keyLimit)
                return false
            case .again: continue
            }
        }
        // Too many other jobs try to get the place at this moment.
        _ = try await settle(claim) { $0.giveBack(until: nil, at: now) }
        return false
    }

    private enum Entry { case entered, blocked, cancelled, lost, again }

    private static func enter(
        _ key: String,
        _ claim: JobClaim,
        _ worker: String,
        _ context: NSManagedObjectContext
    ) throws -> Entry {
        guard let job = try job(claim, context), job.state == .running,
            job.claimedBy == worker, job.attempt == claim.attempt
        else { return .lost }
        if job.isCancelRequested { return .cancelled }
        // It had a worker before, which has died.
        if job.keyPlace != nil { return .entered }
        let places = QueuedJob.request()
        places.predicate = NSPredicate(
            format: "state == %@ AND key == %@ AND keyPlace != nil",
            JobState.running.rawValue,
            key
        )
        places.sortDescriptors = nil
        let taken = try context.fetch(places)
        let isBusy = taken.count >= job.keyLimit
        if try !isBusy && !hasPredecessor(job, key, context) {
            let used = Set(taken.compactMap(\.keyPlace))
            job.keyPlace = (0..<Int(job.keyLimit)).lazy.map { "\(key)#\($0)" }.first { !used.contains($0) }
        } else {
            job.takeBackAttempt()
            job.state = .blocked
        }
        let hasEntered = job.keyPlace != nil
        do {
            try context.save()
        } catch let error as CocoaError where [.managedObjectMerge, .managedObjectConstraintMerge].contains(error.code)
        {
            return .again
        }
        if hasEntered { return .entered }
        if isBusy { try blockSome(key, claim.queue, context) }
        return .blocked
    }

    /// Lets a portion of the ready jobs of a key and queue wait for a place, which would come to the same end one by one.
    private static func blockSome(_ key: String, _ queue: String, _ context: NSManagedObjectContext) throws {
        let ready = JobState.ready.rawValue
        let first = ids("key == %@ AND state == %@ AND queue == %@", key, ready, queue)
        first.sortDescriptors = QueuedJob.inOrder
        first.fetchLimit = portion
        let found = try context.fetch(first)
        guard !found.isEmpty else { return }
        try update("SELF IN %@ AND state == %@", [found, ready], ["state": JobState.blocked.rawValue], context)
    }

    /// Whether a job of the same key and queue comes before a job, and has no place yet.
    private static func hasPredecessor(_ job: QueuedJob, _ key: String, _ context: NSManagedObjectContext) throws
        -> Bool
    {
        func comesFirst(_ other: QueuedJob) -> Bool {
            other.priority > job.priority || (other.priority == job.priority && other.runAt < job.runAt)
        }
        // The first job of a state is one step in the index, however many jobs have the key. A search for those before the job
        // could read all of them. Only running jobs have places, and these are few.
        for state in [JobState.running, .ready, .blocked] {
            let request = QueuedJob.request(state)
            request.predicate = NSPredicate(
                format: "state == %@ AND key == %@ AND queue == %@",
                state.rawValue,
                key,
                job.queue
            )
            if state != .running { request.fetchLimit = 1 }
            if try context.fetch(request).contains(where: { $0.keyPlace == nil && comesFirst($0) }) { return true }
        }
        return false
    }

    /// Makes the next job of a key ready in each queue, if there is a place for it.
    ///
    /// No queue waits for a ready job of another one, which may be paused. If several jobs are ready, then only as many start as there are places.
    func unblock(_ key: String, limit: Int16) async throws {
        var queue = ""
        while let next = try await nextQueue(after: queue, ofBlocked: key) {
            queue = next
            for _ in 0..<Self.patience {
                let isOver: Bool = try await perform { try Self.unblock(key, limit, next, $0) }
                if isOver { break }
            }
        }
    }

    private func nextQueue(after queue: String, ofBlocked key: String) async throws -> String? {
        try await perform { context in
            let next = QueuedJob.request(.blocked)
            next.predicate = NSPredicate(
                format: "key == %@ AND state == %@ AND queue > %@",
                key,
                JobState.blocked.rawValue,
                queue
            )
            next.sortDescriptors = [NSSortDescriptor(key: "queue", ascending: true)] + QueuedJob.inOrder
            next.fetchLimit = 1
            return try context.fetch(next).first?.queue
        }
    }

    /// Makes the next job of a key and queue ready.
    ///
    /// - Returns: Whether there is no other that could be made ready.
    static func unblock(_ key: String, _ limit: Int16, _ queue: String, _ context: NSManagedObjectContext)
        throws -> Bool
    {
        let running = try context.count(for: ids("key == %@ AND state == %@", key, JobState.running.rawValue))
        // More than the limit need not be counted, and in the order of the index few are read.
        let first = ids("key == %@ AND state == %@ AND queue == %@", key, JobState.ready.rawValue, queue)
        first.sortDescriptors = QueuedJob.inOrder
        first.fetchLimit = Int(limit)
        let ready = try context.fetch(first).count
        guard running + ready < limit else { return true }
        let next = QueuedJob.request(.blocked)
        next.predicate = NSPredicate(
            format: "key == %@ AND state == %@ AND queue == %@",
            key,
            JobState.blocked.rawValue,
            queue
        )
        next.fetchLimit = 1
        // A job behind one without a place would only be blocked again.
        guard let job = try context.fetch(next).first, try !hasPredecessor(job, key, context) else { return true }
        job.state = .ready
        do {
            try context.save()
            return running + ready + 1 >= limit
        } catch let error as CocoaError where error.code == .managedObjectMerge {
            return false
        }
    }
}
