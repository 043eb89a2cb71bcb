import CoreData
import StrataLocks

// Jobs that one handler does together, with one save.
extension JobWorker {
    /// Jobs that were just claimed, as they run together.
    func groups(of claims: [JobClaim]) -> [[JobClaim]] {
        let handlers = state.withLock { $0.groupHandlers }
        var groups: [[JobClaim]] = []
        /// The place of the group of each type that has room.
        var open: [String: Int] = [:]
        for claim in claims {
            let isPlain = claim.key == nil && !claim.isCancelRequested && claim.attempt <= claim.maximumAttempts
            guard isPlain, let most = handlers[claim.name]?.most, most > 1 else {
                groups.append([claim])
                continue
            }
            if let place = open[claim.name], groups[place].count < most {
                groups[place].append(claim)
            } else {
                open[claim.name] = groups.count
                groups.append([claim])
            }
        }
        return groups
    }

    /// Runs several jobs together, or starts the run of each if that fails.
    func execute(_ claims: [JobClaim]) async {
        let start = ContinuousClock.now
        if await haveDone(claims) { return forget(claims, since: start) }
        for claim in claims {
            if endOfRun(claim) == nil {
                // The task of the group may be cancelled for the sake of another job.
                self.start([claim])
            } else {
                await settle(claim, after: CancellationError())
                forget([claim], since: start)
            }
        }
    }

    /// Runs the handler of several jobs, and ends them all with one save.
    ///
    /// - Returns: Whether it has; otherwise nothing was saved.
    private func haveDone(_ claims: [JobClaim]) async -> Bool {
        guard let handler = state.withLock({ $0.groupHandlers[claims[0].name] }) else { return false }
        // The run of each job by itself finds out whether the worker still has it.
        guard !claims.contains(where: mayHaveLost) else { return false }
        let clock = settings.clock
        let context = desk.newContext()
        do {
            try await handler.run(claims, context)
            let isSaved = try await desk.settle(claims, in: context) { job in
                job.progress = 1
                job.finish(.done, at: clock.now)
            }
            if isSaved { for claim in claims { await conclude(claim, .done) } }
            return isSaved
        } catch {
            // The runs of the jobs by themselves show which of them is at fault.
            await context.perform { context.rollback() }
            return false
        }
    }
}
