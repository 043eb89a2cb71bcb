import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataJobs

/// An instrument that keeps the events of jobs.
private struct JobEvents: CoreDataInstrument {
    private let events = Shared<[CoreDataEvent]>([])

    func record(_ event: CoreDataEvent) {
        guard event.kind.rawValue.hasPrefix("job") else { return }
        events.update { $0.append(event) }
    }

    /// The events since the last call.
    func take() -> [CoreDataEvent] {
        defer { events.update { $0 = [] } }
        return events.current
    }
}

@Suite("Figures of jobs")
struct JobInstrumentTests {
    private static func text(_ event: CoreDataEvent) -> String {
        "\(event.kind) \(event.entity ?? "-") \(event.context ?? "-") \(event.errorCode.map { "\($0)" } ?? "-")"
    }

    @Test(arguments: StoreKind.allCases)
    func `the begin and the end of each run are reported, with the worker and the type of the job`(_ kind: StoreKind)
        async throws
    {
        let jobs = try JobStack(kind)
        let events = JobEvents()
        jobs.stack.coordinator.instrument = events
        let worker = jobs.worker()
        let outcome = Shared<(any Error)?>(nil)
        worker.handle(Write.self) { _ in if let error = outcome.current { throw error } }
        func run(_ error: (any Error)?) async throws -> [String] {
            outcome.update { $0 = error }
            // The next attempt is due after less than this.
            jobs.clock.advance(by: .seconds(86_400))
            try await worker.drain()
            return events.take().map(Self.text)
        }
        try jobs.enqueue(Write(text: "a")) {
            $0.maximumAttempts = 2
            $0.start = .at(jobs.clock.now)
        }
        let busy = CocoaError(.fileReadUnknown)
        try await expectEqual(run(busy), ["jobWait Write one -", "jobRetry Write one 256"])
        try await expectEqual(
            run(JobExit.postpone(.seconds(5))),
            ["jobWait Write one -", "jobPostponement Write one -"]
        )
        try await expectEqual(run(busy), ["jobWait Write one -", "jobFailure Write one 256"])
        try jobs.change { $0.retry() }
        try await expectEqual(run(nil), ["jobWait Write one -", "jobDone Write one -"])
        try jobs.enqueue(Write(text: "b"))
        let cancelled = try await run(JobExit.cancel("there is nothing to do"))
        expectEqual(cancelled.map { $0.split(separator: " ").first }, ["jobWait", "jobCancellation"])
        expectEqual(worker.counts, JobCounts(done: 1, retried: 1, failed: 1, cancelled: 1, postponed: 1))
    }

    @Test(arguments: StoreKind.allCases)
    func `a wait is the time since the job was due, by the clock of the worker`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let events = JobEvents()
        jobs.stack.coordinator.instrument = events
        let time = jobs.clock.now.addingTimeInterval(100)
        try jobs.enqueue(Write(text: "a")) { $0.start = .at(time) }
        let worker = jobs.writer()
        try await worker.drain()
        expectEqual(events.take().count, 0)
        jobs.clock.advance(by: .seconds(130))
        try await worker.drain()
        let seen = events.take()
        expectEqual(seen.map(\.kind), [.jobWait, .jobDone])
        expect(abs((seen.first?.seconds ?? 0) - 30) < 0.01)
        expect(seen.last.map { $0.seconds > 0 && $0.seconds < 600 } == true)
    }

    @Test(arguments: StoreKind.allCases)
    func `a run whose job another worker has taken is reported as lost`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let events = JobEvents()
        jobs.stack.coordinator.instrument = events
        try jobs.enqueue(Write(text: "a"))
        let worker = jobs.worker()
        worker.handle(Write.self) { run in
            try await run.perform { context in Note(context: context).text = "slow" }
            try jobs.endLeases()
            try await jobs.writer("two").drain()
        }
        try await worker.drain()
        try expectEqual(jobs.notes(), ["a"])
        let seen = events.take().map { "\($0.kind) \($0.context ?? "")" }
        expectEqual(seen, ["jobWait one", "jobWait two", "jobDone two", "jobLoss one"])
        expectEqual(worker.counts, JobCounts(lost: 1))
    }

    @Test(arguments: StoreKind.allCases)
    func `a Prometheus instrument counts the runs, and a coordinator without one gets no events`(_ kind: StoreKind)
        async throws
    {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "before"))
        let worker = jobs.writer()
        try await worker.drain()
        let metrics = PrometheusInstrument()
        jobs.stack.coordinator.instrument = metrics
        for text in ["a", "b"] { try jobs.enqueue(Write(text: text)) }
        try await worker.drain()
        expect(metrics.count(of: .jobDone) == 2 && metrics.count(of: .jobWait) == 2)
        expectEqual(metrics.count(of: .jobLoss), 0)
        expect(metrics.text().contains("coredata_operation_seconds_count{kind=\"jobDone\"} 2\n"))
    }

    @Test(arguments: StoreKind.allCases)
    func `the statistics count jobs by queue and state, and name what waits too long`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let context = jobs.stack.context()
        @Sendable func statistics(at time: Date) throws -> JobStatistics {
            try context.performAndWait { try context.jobStatistics(at: time) }
        }
        try expectEqual(statistics(at: Date()).queues, [])
        expectEqual(try statistics(at: Date()).prometheusText, "")
        for number in 1...3 { try jobs.enqueue(Write(text: "\(number)")) }
        let oldest = Date()
        try jobs.enqueue(Write(text: "later")) { $0.start = .after(.seconds(60)) }
        try jobs.enqueue(Add(numbers: [1]))
        try context.performAndWait {
            try context.pauseJobs(in: "a \"quiet\" one")
            try context.save()
            // What is not saved does not count.
            try context.enqueue(Write(text: "unsaved"))
        }
        let worker = jobs.worker()
        worker.handle(Add.self) { _ in
            let now = Date(timeIntervalSinceNow: 30)
            let running = try statistics(at: now)
            expectEqual(running.queues.map(\.name), ["a \"quiet\" one", "default", "sums"])
            expectEqual(running.queues.map(\.isPaused), [true, false, false])
            expectEqual(running.queues.map(\.counts), [[:], [.scheduled: 1, .done: 3], [.running: 1]])
            expectEqual(running.queues.map(\.endedLeases), [0, 0, 0])
            // The lease is a minute.
            expectEqual(try statistics(at: now.addingTimeInterval(60)).queues.map(\.endedLeases), [0, 0, 1])
            return 1
        }
        let before = try statistics(at: oldest.addingTimeInterval(20))
        expectEqual(before.queues.map(\.counts), [[:], [.scheduled: 1, .ready: 3], [.ready: 1]])
        let wait = try require(before.queues[1].longestWait)
        expect(wait >= .seconds(20) && wait < .seconds(600))
        expect(before.queues[0].longestWait == nil)
        worker.handle(Write.self) { _ in }
        try await worker.drain()
        expectEqual(worker.counts, JobCounts(done: 4))
        let after = try statistics(at: Date())
        expectEqual(after.queues.map(\.counts), [[:], [.scheduled: 1, .done: 3], [.done: 1]])
        let lines = after.prometheusText.split(separator: "\n")
        for line in [
            "# TYPE coredata_jobs gauge", #"coredata_jobs{queue="default",state="done"} 3"#,
            #"coredata_jobs{queue="sums",state="ready"} 0"#, #"coredata_job_queue_paused{queue="a \"quiet\" one"} 1"#,
            #"coredata_job_longest_wait_seconds{queue="default"} 0.0"#, #"coredata_job_ended_leases{queue="sums"} 0"#,
        ] {
            expect(lines.contains { $0 == line }, "\(line) is missing")
        }
    }

    @Test func `statistics need the entities of jobs`() throws {
        let stack = try Stack(.memory, model: GuideModel.make())
        let context = stack.context()
        let error = expectThrows(CocoaError.self) { try context.performAndWait { try context.jobStatistics() } }
        expectEqual(error?.code, .persistentStoreOperation)
    }
}

extension JobCounts {
    fileprivate init(
        done: Int = 0,
        retried: Int = 0,
        failed: Int = 0,
        cancelled: Int = 0,
        postponed: Int = 0,
        lost: Int = 0
    ) {
        self.init()
        (self.done, self.retried, self.failed) = (done, retried, failed)
        (self.cancelled, self.postponed, self.lost) = (cancelled, postponed, lost)
    }
}
