import CoreData
import StrataLocks

// The runs of jobs, from the claim to the save that ends them.
extension JobWorker {
    /// Starts the run of jobs that were just claimed.
    func begin(_ claims: [JobClaim]) async {
        let begun = state.withLock { state -> [JobClaim]? in
            if state.stop != nil { return nil }
            if state.runs.isEmpty { state.nextBeat = settings.clock.now.addingTimeInterval(settings.lease.seconds / 3) }
            var begun: [JobClaim] = []
            for var claim in claims {
                state.begunCount += 1
                claim.run = state.begunCount
                // This worker was so slow that its own lease has ended, or the former run has just given the job back.
                state.runs[claim.id]?.end = .lost
                state.runs[claim.id]?.task?.cancel()
                state.runs[claim.id] = Run(claim: claim)
                begun.append(claim)
            }
            return begun
        }
        if let begun { return start(begun) }
        let clock = settings.clock
        for claim in claims { await settle(claim, .postponed) { $0.giveBack(until: nil, at: clock.now) } }
    }

    func start(_ claims: [JobClaim]) {
        let task = claims.count == 1 ? Task { await self.execute(claims[0]) } : Task { await self.execute(claims) }
        state.withLock { state in
            for claim in claims {
                guard let run = state.run(of: claim) else { continue }
                state.runs[claim.id]?.task = task
                if run.end != nil { task.cancel() }
            }
        }
    }

    func end(_ claim: JobClaim, _ end: Run.End) {
        let task = state.withLock { state in
            guard let run = state.run(of: claim), run.end == nil else { return nil as Task<Void, Never>? }
            state.runs[claim.id]?.end = end
            return run.task
        }
        task?.cancel()
    }

    func endOfRun(_ claim: JobClaim) -> Run.End? {
        state.withLock { state in
            guard let run = state.run(of: claim) else { return .lost }
            return run.end
        }
    }

    func execute(_ claim: JobClaim) async {
        let start = ContinuousClock.now
        await work(on: claim)
        forget([claim], since: start)
    }

    /// Frees the places of runs that have ended.
    func forget(_ claims: [JobClaim], since start: ContinuousClock.Instant) {
        let isQuick = ContinuousClock.now - start < Self.quickRun
        state.withLock { state in
            state.isQuick = isQuick
            for claim in claims where state.run(of: claim) != nil { state.runs[claim.id] = nil }
        }
        bell.ring()
    }

    func work(on claim: JobClaim) async {
        let clock = settings.clock
        if claim.isCancelRequested {
            return await settle(claim, .cancelled) { $0.finish(.cancelled, at: clock.now) }
        }
        guard claim.attempt <= claim.maximumAttempts else {
            // A rescue after the last attempt: its worker did not live to say how it went.
            return await settle(claim, .failed) { job in
                job.attempt -= 1
                job.note("The worker ended before the job did.", at: clock.now)
                job.finish(.failed, at: clock.now)
            }
        }
        guard let handler = state.withLock({ $0.handlers[claim.name] }) else {
            let time = clock.now.addingTimeInterval(settings.unknownJobDelay.seconds)
            return await settle(claim, .postponed) { job in
                job.note("The worker \(job.claimedBy ?? "") has no handler for \(job.name).", at: clock.now)
                job.giveBack(until: time, at: clock.now)
            }
        }
        do {
            if mayHaveLost(claim), try await !desk.stillHas(claim) { return await conclude(claim, .lost) }
            guard try await desk.enterKey(claim, at: clock.now) else { return }
        } catch {
            return reportStore(error)
        }
        report(.jobWait, of: claim, .seconds(max(clock.now.timeIntervalSince(claim.runAt), 0)))
        let effects = RunContext(desk)
        do {
            let output = try await handler(claim, effects, desk)
            let isDone: Bool
            if let context = await effects.changed {
                let settled = try await desk.settle(claim, in: context) { job in
                    job.output = output
                    job.progress = 1
                    job.finish(.done, at: clock.now)
                }
                isDone = settled != nil
            } else {
                isDone = try await desk.finish(claim, output: output) { clock.now }
            }
            await conclude(claim, isDone ? .done : .lost)
        } catch {
            await effects.rollBack()
            await settle(claim, after: error)
        }
    }

    /// Whether so much of a lease is over that another worker may have the job.
    ///
    /// The process may have stood still since the claim. Heartbeats renew a lease earlier than this.
    func mayHaveLost(_ claim: JobClaim) -> Bool { ContinuousClock.now - claim.leasedAfter >= settings.lease / 2 }

    /// Counts and reports the end of a run, and lets the next job of its key in.
    ///
    /// - Parameters:
    ///   - claim: The claim of the run.
    ///   - outcome: How the run has ended.
    ///   - error: The error that the handler has thrown.
    func conclude(_ claim: JobClaim, _ outcome: JobOutcome, after error: (any Error)? = nil) async {
        state.withLock { $0.counts[keyPath: outcome.count] += 1 }
        report(outcome.event, of: claim, ContinuousClock.now - claim.start, error)
        guard let key = claim.key else { return }
        do {
            try await desk.unblock(key, limit: claim.keyLimit)
        } catch {
            reportStore(error)
        }
    }

    /// Reports an event of a job to the instrument of the coordinator.
    func report(
        _ kind: CoreDataEvent.Kind,
        of claim: JobClaim,
        _ duration: Duration,
        _ error: (any Error)? = nil
    ) {
        guard let instrument = desk.coordinator.instrument else { return }
        instrument.record(
            CoreDataEvent(
                kind: kind,
                duration: duration,
                context: name,
                entity: claim.name,
                errorCode: error.map { ($0 as NSError).code }
            )
        )
    }

    /// Records what becomes of a job after its handler has thrown, or its save has failed.
    func settle(_ claim: JobClaim, after error: any Error) async {
        let clock = settings.clock
        let text = Self.text(of: error)
        switch (error as? JobExit, endOfRun(claim)) {
        case (_, .lost):
            await conclude(claim, .lost, after: error)
        case (_, .cancelled), (.cancel, _):
            await settle(claim, .cancelled, after: error) { job in
                job.note(text, at: clock.now)
                job.finish(.cancelled, at: clock.now)
            }
        case (.postpone(let wait), _):
            let time = clock.now.addingTimeInterval(wait.seconds)
            await settle(claim, .postponed) { $0.giveBack(until: time, at: clock.now) }
        case (_, .stopped):
            await settle(claim, .postponed) { $0.giveBack(until: nil, at: clock.now) }
        case (let exit, nil):
            var wait: Double?
            if case .retry(let after, _) = exit { wait = after.seconds }
            var isFinal = claim.attempt >= claim.maximumAttempts
            if case .fail = exit { isFinal = true }
            let chance = Double.random(in: 0...1)
            await settle(claim, isFinal ? .failed : .retried, after: error) { [isFinal, wait] job in
                job.note(text, at: clock.now)
                // The worker has not noticed the request before the handler threw.
                if job.isCancelRequested { return job.finish(.cancelled, at: clock.now) }
                if isFinal { return job.finish(.failed, at: clock.now) }
                let backoff = (try? JobCoding.decode(JobBackoff.self, job.backoff)) ?? .exponential()
                let seconds = wait ?? backoff.wait(after: Int(job.attempt), chance: chance)
                job.state = .scheduled
                job.runAt = clock.now.addingTimeInterval(seconds)
                job.giveUp()
            }
        }
    }

    func settle(
        _ claim: JobClaim,
        _ outcome: JobOutcome,
        after failure: (any Error)? = nil,
        _ change: @Sendable @escaping (QueuedJob) throws -> Void
    ) async {
        do {
            let settled = try await desk.settle(claim, change)
            let end: JobOutcome = settled == nil ? .lost : settled == .cancelled ? .cancelled : outcome
            await conclude(claim, end, after: failure)
        } catch {
            // The lease ends by itself, and then the job is taken again.
            reportStore(error)
        }
    }

    func reportStore(_ error: any Error) { desk.coordinator.report(error, "recording the end of a job") }

    private static func text(of error: any Error) -> String {
        switch error {
        case JobExit.cancel(let text), JobExit.fail(let text), JobExit.retry(_, let text): text
        case let error as any LocalizedError: error.errorDescription ?? "\(error)"
        case let error as CocoaError: error.localizedDescription
        default: "\(error)"
        }
    }
}

extension JobWorker.State {
    /// The run of a claim; `nil` if it has ended, or another run of the job has begun since.
    func run(of claim: JobClaim) -> JobWorker.Run? {
        runs[claim.id].flatMap { $0.claim.run == claim.run ? $0 : nil }
    }
}
