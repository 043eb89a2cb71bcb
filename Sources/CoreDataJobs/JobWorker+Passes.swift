import CoreData
import StrataLocks

// One pass of the loop: what is due is done, and jobs are taken for the free places.
extension JobWorker {
    /// How long the worker only takes jobs after it has looked at everything, unless something is due.
    ///
    /// While many jobs end, each end frees a place, and each save of any worker rings the bell.
    static let calm = Duration.milliseconds(50)
    /// The same if the store is so busy that a look takes long: looks then take a twentieth of the time, or more if one takes
    /// longer than 25 ms.
    static func calm(after cost: Duration) -> Duration { min(max(calm, cost * 20), .milliseconds(500)) }
    /// The duration of a run that is quick.
    static let quickRun = Duration.milliseconds(10)
    /// How long a free place waits for others if jobs are quick, so that one claim fills several: twice as long as a claim takes.
    private static func claimWait(_ cost: Duration) -> Duration { min(max(.milliseconds(2), cost * 2), quickRun) }

    /// Begins runs, and before that does everything else that is due.
    ///
    /// - Parameters:
    ///   - limit: The most runs to begin.
    ///   - isFull: Whether it looks at everything; otherwise it only takes jobs.
    /// - Returns: The number of runs that have begun, or 1 if there is more to do at once.
    /// - Throws: Errors of the store.
    func pass(atMost limit: Int = .max, isFull: Bool = true) async throws -> Int {
        let now = settings.clock.now
        guard isFull else { return try await fill(atMost: limit, at: now, looksAtAll: false) }
        let start = ContinuousClock.now
        // An error leaves it due.
        state.withLock { $0.lastLook = nil }
        try await beat(at: now)
        let hasOld = try await maintain(at: now)
        let nextSchedule = await enqueueSchedules(at: now)
        let hasMore = try await desk.promote(at: now)
        let rules = try await desk.queueRules()
        state.withLock { ($0.pausedQueues, $0.queueLimits) = (rules.paused, rules.limits) }
        let begun = try await fill(atMost: limit, at: now, looksAtAll: true)
        let nextJob = try await desk.nextTime()
        state.withLock { state in
            state.nextTime = [nextSchedule, nextJob].compactMap { $0 }.min()
            state.lastLook = .now
            state.lookCost = .now - start
        }
        return hasMore || hasOld ? max(begun, 1) : begun
    }

    /// Takes jobs for the free places, and begins their runs.
    ///
    /// - Returns: The number of runs that have begun.
    private func fill(atMost limit: Int, at now: Date, looksAtAll: Bool) async throws -> Int {
        var begun = 0
        for (queue, places) in queues.sorted(by: { $0.key < $1.key }) {
            for takesLeft in looksAtAll ? [true, false] : [false] {
                let (free, isDeep, wait, bound) = state.withLock { state in
                    let isPaused = state.pausedQueues.contains(queue) || state.stop != nil
                    let free = isPaused ? 0 : places - state.runs.values.count { $0.claim.queue == queue }
                    let isDeep = state.deepQueues.contains(queue)
                    let wait = Self.claimWait(state.claimCost)
                    let isSoon = state.lastClaim.map { ContinuousClock.now - $0 < wait } ?? false
                    let most = limit < places ? min(limit + state.runs.count, places) : places
                    let waits = isDeep && isSoon && state.isQuick && free * 2 < most
                    return (min(free, limit - begun), isDeep, waits ? wait : nil, state.queueLimits[queue])
                }
                guard free > 0 else { continue }
                if let wait, !looksAtAll {
                    ring(after: wait)
                    continue
                }
                let start = ContinuousClock.now
                let claims: [JobClaim]
                if takesLeft {
                    claims = try await desk.rescue(free, of: queue, at: now)
                } else {
                    claims = try await desk.take(free, of: queue, at: now, looksFirst: !isDeep, within: bound)
                    state.withLock { state in
                        state.lastClaim = .now
                        state.claimCost = .now - start
                        if claims.count == free {
                            state.deepQueues.insert(queue)
                        } else {
                            state.deepQueues.remove(queue)
                        }
                    }
                }
                for group in groups(of: claims) { await begin(group) }
                begun += claims.count
            }
        }
        return begun
    }

    /// Renews the leases if it is time, and cancels the runs that are to be cancelled.
    func beat(at now: Date) async throws {
        let (claims, isDue) = state.withLock { state in
            let claims = state.runs.mapValues(\.claim)
            return (claims, Self.isDue(state.nextBeat, at: now, every: settings.lease / 3))
        }
        guard !claims.isEmpty else { return }
        if isDue { try await heartbeat(at: now) }
        // While many jobs end, each end comes here.
        let isCalm = state.withLock { state in
            state.lastRequestLook.map { ContinuousClock.now - $0 < Self.calm } ?? false
        }
        if isCalm { return ring(after: Self.calm) }
        for id in try await desk.cancelRequests(among: Array(claims.keys)) {
            if let claim = claims[id] { end(claim, .cancelled) }
        }
        state.withLock { $0.lastRequestLook = .now }
    }

    /// Whether the time of something regular has come.
    ///
    /// If it is further away than the interval, then the clock was set back, and the time has come as well.
    private static func isDue(_ time: Date?, at now: Date, every interval: Duration) -> Bool {
        // The second guards against rounding.
        time.map { $0 <= now || $0 > now.addingTimeInterval(interval.seconds + 1) } ?? true
    }

    /// Renews the leases of all runs, and cancels those whose jobs are another worker's.
    func heartbeat(at now: Date) async throws {
        let claims = state.withLock { state in
            state.nextBeat = now.addingTimeInterval(settings.lease.seconds / 3)
            return state.runs.values.map(\.claim)
        }
        guard !claims.isEmpty else { return }
        let kept = try await desk.renew(claims.map(\.id))
        for claim in claims where !kept.contains(claim.id) { end(claim, .lost) }
    }

    /// Deletes old jobs and frees blocked ones, if it is time.
    ///
    /// - Returns: Whether there may be more to delete.
    private func maintain(at now: Date) async throws -> Bool {
        let isDue = state.withLock { state in
            guard Self.isDue(state.nextMaintenance, at: now, every: settings.maintenance) else { return false }
            state.nextMaintenance = now.addingTimeInterval(settings.maintenance.seconds)
            return true
        }
        guard isDue else { return false }
        if try await desk.purge(at: now) {
            // The next pass goes on, after it has begun the jobs that are due.
            state.withLock { $0.nextMaintenance = nil }
            return true
        }
        try await desk.unblockAll()
        return false
    }
}
