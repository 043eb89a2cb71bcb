import CoreData
import StrataLocks

// The loop of a worker, which makes passes and sleeps between them until its bell rings.
extension JobWorker {
    /// Runs all jobs that are due, and those that they enqueue.
    ///
    /// This is for tests and for programs that end. It returns when nothing is due by the worker's clock, and none of its jobs
    /// runs any more. Other workers may still run jobs then, and jobs may wait for their ends: those of the same key, and those
    /// of a queue that has reached its limit.
    ///
    /// ```swift
    /// struct Greet: Job { var name: String }
    /// let worker = JobWorker(container)
    /// worker.handle(Greet.self) { run in print(run.job.name) }
    /// print(try await worker.drain().done)
    /// ```
    ///
    /// - Parameter most: The most jobs that run at once, within the number of each queue; 1 by default, so that they run one
    ///   after the other.
    /// - Returns: How the runs have ended.
    /// - Throws: Errors of the store, and `CancellationError`. It throws when its runs have ended.
    @discardableResult
    public func drain(atOnce most: Int = 1) async throws -> JobCounts {
        let before = counts
        do {
            while true {
                try Task.checkCancellation()
                let (count, busy) = (bell.count, runningCount)
                let isFull = most <= 1 || isLookDue
                var begun = try await pass(atMost: max(most, 1) - busy, isFull: isFull)
                // Only a look at everything shows that nothing is due.
                if begun == 0 && busy == 0 && !isFull { begun = try await pass(atMost: max(most, 1)) }
                if begun == 0 && busy == 0 { return counts - before }
                // Detached, since a cancelled task would not wait for the runs.
                await Task.detached { await self.awaitRuns(until: .distantFuture, orBeyond: count) }.value
            }
        } catch {
            await Task.detached { await self.awaitRuns(until: .distantFuture) }.value
            throw error
        }
    }

    // MARK: - The loop

    /// Takes and runs jobs until the worker is stopped.
    ///
    /// It ends after ``stop(within:)``, after one of the signals, and when its task is cancelled. In each case the worker
    /// takes no further jobs, and lets the running ones finish.
    ///
    /// If a store cannot be reached, then the worker reports that in the log, and tries again. A worker that was stopped stays
    /// so: this returns at once.
    ///
    /// - Parameters:
    ///   - signals: The signals that stop the worker: SIGTERM and SIGINT by default. Pass none if the program handles them.
    ///   - patience: How long the worker lets jobs finish; 25 seconds by default.
    /// - Throws: `persistentStoreOperation` (134070) if it runs already.
    public func run(stoppingOn signals: [Int32] = [SIGTERM, SIGINT], within patience: Duration = .seconds(25))
        async throws
    {
        let isSecond = state.withLock { state in
            defer { state.isRunning = true }
            return state.isRunning
        }
        guard !isSecond else { throw FetchPlanner.refused("The worker \(name) runs already.") }
        defer { state.withLock { $0.isRunning = false } }
        if isStopping { return }
        // Without this the signals would end the process.
        let actions = signals.map { signal($0, SIG_IGN) }
        let sources = signals.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { [weak self] in self?.beginStop(within: patience) }
            source.resume()
            return source
        }
        let listener = JobListener(desk.coordinator, bell)
        await withTaskCancellationHandler {
            await loop()
        } onCancel: {
            beginStop(within: patience)
        }
        await beginStop(within: patience).value
        listener.stop()
        for source in sources { source.cancel() }
        for (number, action) in zip(signals, actions) { signal(number, action) }
    }

    func loop() async {
        while !isStopping {
            let count = bell.count
            var next: Date?
            do {
                let isFull = isLookDue
                let begun = try await pass(isFull: isFull)
                state.withLock { $0.isFailing = false }
                if begun > 0 { continue }
                if !isFull { ring(after: Self.calm(after: state.withLock { $0.lookCost })) }
                next = nextEvent
            } catch {
                let isNew = state.withLock { state in
                    defer { state.isFailing = true }
                    return !state.isFailing
                }
                if isNew { desk.coordinator.report(error, "taking jobs") }
            }
            guard !isStopping else { return }
            let poll = settings.clock.now.addingTimeInterval(settings.poll.seconds)
            await bell.wait(beyond: count, until: min(poll, next ?? poll), by: settings.clock)
        }
    }

    var isStopping: Bool { state.withLock { $0.stop != nil } }

    /// The time of the next job, schedule or heartbeat; `nil` if there is none.
    private var nextEvent: Date? {
        state.withLock { state in
            [state.nextTime, state.runs.isEmpty ? nil : state.nextBeat].compactMap { $0 }.min()
        }
    }

    /// Whether it is time to look at everything.
    private var isLookDue: Bool {
        let (last, cost, times) = state.withLock {
            ($0.lastLook, $0.lookCost, [$0.nextTime, $0.runs.isEmpty ? nil : $0.nextBeat])
        }
        guard let last, ContinuousClock.now - last < Self.calm(after: cost) else { return true }
        let now = settings.clock.now
        return times.contains { $0.map { $0 <= now } ?? false }
    }

    /// Rings the bell after some time of the machine, whatever the worker's clock shows.
    func ring(after wait: Duration) {
        let time = ContinuousClock.now + wait
        let isNew = state.withLock { state in
            if let alarm = state.alarm, alarm <= time { return false }
            state.alarm = time
            return true
        }
        guard isNew else { return }
        Task { [self] in
            try? await Task.sleep(until: time)
            state.withLock { if $0.alarm == time { $0.alarm = nil } }
            bell.ring()
        }
    }
}
