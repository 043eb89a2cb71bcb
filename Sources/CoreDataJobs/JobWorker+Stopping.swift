import CoreData
import StrataLocks

// The end of a worker, and waits for its runs.
extension JobWorker {
    /// Stops the worker: it takes no further jobs, and lets the running ones finish.
    ///
    /// The tasks of handlers that still run at the end of that time are cancelled, and their jobs are given back, so that
    /// another worker takes them at once; that attempt does not count. Such a handler may not have ended when this returns,
    /// but nothing of its context is saved.
    ///
    /// ```swift
    /// let worker = JobWorker(container)
    /// let running = Task { try await worker.run(stoppingOn: []) }
    /// await worker.stop(within: .seconds(10))
    /// _ = await running.result
    /// ```
    ///
    /// - Parameter patience: How long the jobs may take, by the worker's clock.
    public func stop(within patience: Duration = .seconds(25)) async {
        await beginStop(within: patience).value
    }

    @discardableResult
    func beginStop(within patience: Duration) -> Task<Void, Never> {
        let deadline = settings.clock.now.addingTimeInterval(patience.seconds)
        let task = state.withLock { state in
            if let stop = state.stop { return stop }
            // Detached, since the caller may have been cancelled.
            let stop = Task.detached { await self.finishRuns(until: deadline) }
            state.stop = stop
            return stop
        }
        bell.ring()
        return task
    }

    /// Waits until no job runs, until a time, or until the bell was rung beyond a count, and looks after the runs meanwhile.
    func awaitRuns(until deadline: Date, orBeyond rings: Int = .max) async {
        while true {
            let count = bell.count
            let now = settings.clock.now
            guard runningCount > 0, now < deadline, count <= rings else { return }
            // The loop does not run at this time.
            do { try await beat(at: now) } catch { reportStore(error) }
            let beat = state.withLock { $0.nextBeat } ?? deadline
            let next = min(deadline, beat, now.addingTimeInterval(settings.poll.seconds))
            await bell.wait(beyond: count, until: max(next, now.addingTimeInterval(0.01)), by: settings.clock)
        }
    }

    private func finishRuns(until deadline: Date) async {
        await awaitRuns(until: deadline)
        let clock = settings.clock
        for claim in state.withLock({ $0.runs.values.map(\.claim) }) {
            end(claim, .stopped)
            // The handler may be deaf to the cancellation. Its save will find that it has lost the job.
            await settle(claim, .postponed) { $0.giveBack(until: nil, at: clock.now) }
        }
    }
}
