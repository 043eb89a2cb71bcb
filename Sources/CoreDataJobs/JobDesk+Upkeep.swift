import CoreData

// The work of workers beside jobs: they free blocked jobs, delete old ones, and enqueue those of schedules.
extension JobDesk {
    /// Makes jobs ready that wait for a key which no job has; such a wait remains if a worker dies between two saves.
    func unblockAll() async throws {
        var last = ""
        // One look for each key, however many jobs wait for it.
        while true {
            let after = last
            let next: (key: String, limit: Int16)? = try await perform { context in
                let request = QueuedJob.request(.blocked)
                request.predicate = NSPredicate(format: "state == %@ AND key > %@", JobState.blocked.rawValue, after)
                let byKey = ["key", "queue"].map { NSSortDescriptor(key: $0, ascending: true) }
                request.sortDescriptors = byKey + QueuedJob.inOrder
                request.fetchLimit = 1
                return try context.fetch(request).first.flatMap { job in job.key.map { ($0, job.keyLimit) } }
            }
            guard let next else { return }
            last = next.key
            try await unblock(next.key, limit: next.limit)
        }
    }

    /// Deletes a portion of the jobs that are no longer kept.
    ///
    /// - Returns: Whether there may be more.
    func purge(at now: Date) async throws -> Bool {
        let ids = try await expired(at: now)
        try await delete(ids, at: now)
        return ids.count == Self.portion
    }

    /// A portion of the jobs that are no longer kept.
    func expired(at now: Date) async throws -> [NSManagedObjectID] {
        try await perform { context in
            let old = Self.ids("expiresAt != nil AND expiresAt <= %@", now as NSDate)
            old.sortDescriptors = [NSSortDescriptor(key: "expiresAt", ascending: true)]
            old.fetchLimit = Self.portion
            return try context.fetch(old)
        }
    }

    /// Deletes those of some jobs that are still not kept: one may have been retried since the look.
    func delete(_ ids: [NSManagedObjectID], at now: Date) async throws {
        guard !ids.isEmpty else { return }
        try await perform { context in
            let old = Self.ids("SELF IN %@ AND expiresAt != nil AND expiresAt <= %@", [ids, now as NSDate])
            _ = try context.execute(NSBatchDeleteRequest(fetchRequest: old))
        }
    }

    // MARK: - Schedules

    /// Enqueues a job of a schedule for the newest of its times, if no other worker has.
    ///
    /// - Returns: The next time.
    func enqueue(_ schedule: JobScheduleEntry, at now: Date) async throws -> Date? {
        for _ in 0..<Self.patience {
            let outcome: (next: Date?, isOver: Bool) = try await perform { context in
                let request = NSFetchRequest<JobScheduleState>(entityName: "JobScheduleState")
                request.predicate = NSPredicate(format: "name == %@", schedule.name)
                let state: JobScheduleState
                if let known = try context.fetch(request).first {
                    state = known
                    guard let time = schedule.times.latest(after: known.lastTime, through: now) else {
                        return (schedule.times.next(after: max(known.lastTime, now)), true)
                    }
                    state.lastTime = time
                    _ = try schedule.enqueue(time, context)
                } else {
                    state = JobScheduleState(context: context)
                    state.name = schedule.name
                    state.lastTime = now
                }
                do {
                    try context.save()
                } catch let error as CocoaError
                    where [.managedObjectMerge, .managedObjectConstraintMerge].contains(error.code)
                {
                    // Another worker was first.
                    return (nil, false)
                }
                return (schedule.times.next(after: now), true)
            }
            if outcome.isOver { return outcome.next }
        }
        return nil
    }
}
