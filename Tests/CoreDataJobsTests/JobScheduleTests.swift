import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataJobs

@Suite("Schedules of jobs")
struct JobScheduleTests {
    private struct Report: Job {
        var time: Date
    }

    /// The times of the reports that were made.
    private final class Times: Sendable {
        private let times = Locked<[Date]>([])
        var all: [Date] { times.withLock { $0 } }
        func add(_ time: Date) { times.withLock { $0.append(time) } }
    }

    /// A stack whose clock shows half past a coming hour.
    private static func stack(_ kind: StoreKind) throws -> JobStack {
        let jobs = try JobStack(kind)
        let hour = (Date().timeIntervalSince1970 / 3600).rounded(.up) * 3600
        jobs.clock.set(to: Date(timeIntervalSince1970: hour + 1800))
        return jobs
    }

    private static func worker(
        _ jobs: JobStack,
        _ name: String,
        on coordinator: NSPersistentStoreCoordinator? = nil,
        _ times: Times
    ) throws -> JobWorker {
        let worker = jobs.worker(name, on: coordinator)
        worker.schedule("hourly", try CronExpression("@hourly")) { Report(time: $0) }
        worker.handle(Report.self) { run in times.add(run.job.time) }
        return worker
    }

    @Test(arguments: StoreKind.allCases)
    func `there is one job for each time, with any number of workers`(_ kind: StoreKind) async throws {
        let jobs = try Self.stack(kind)
        let times = Times()
        let second = kind == .memory ? nil : try jobs.stack.secondCoordinator(model: JobStack.model)
        let workers = [
            try Self.worker(jobs, "one", times), try Self.worker(jobs, "two", on: second, times),
        ]
        // The first pass only notes that there is a schedule.
        for worker in workers { try await worker.drain() }
        expectEqual(times.all, [])
        let start = jobs.clock.now
        for hour in 1...3 {
            jobs.clock.set(to: start.addingTimeInterval(Double(hour) * 3600))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in workers { group.addTask { try await worker.drain() } }
                try await group.waitForAll()
            }
            for worker in workers { try await worker.drain() }
        }
        expectEqual(times.all, [1800, 5400, 9000].map { start.addingTimeInterval($0) })
    }

    @Test(arguments: StoreKind.allCases)
    func `after an absence there is one job, for the newest time that was missed`(_ kind: StoreKind) async throws {
        let jobs = try Self.stack(kind)
        let times = Times()
        try await Self.worker(jobs, "one", times).drain()
        let start = jobs.clock.now
        jobs.clock.set(to: start.addingTimeInterval(100 * 86_400))
        let worker = try Self.worker(jobs, "two", times)
        try await worker.drain()
        try await worker.drain()
        expectEqual(times.all, [start.addingTimeInterval(100 * 86_400 - 1800)])
        // A clock that is set back repeats nothing.
        jobs.clock.set(to: start)
        try await Self.worker(jobs, "three", times).drain()
        jobs.clock.set(to: start.addingTimeInterval(7200))
        try await Self.worker(jobs, "four", times).drain()
        expectEqual(times.all.count, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a schedule that throws does not keep the worker from its jobs, and is tried again later`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try Self.stack(kind)
        let times = Times()
        let tries = Locked(0)
        let isMended = Locked(false)
        let worker = try Self.worker(jobs, "one", times)
        worker.schedule("a broken one", try CronExpression("@hourly")) { options in
            tries.withLock { $0 += 1 }
            if !isMended.withLock({ $0 }) { options.maximumAttempts = 0 }
        } _: { _ in
            Write(text: "a")
        }
        worker.handle(Write.self) { _ in }
        try await worker.drain()
        let start = jobs.clock.now
        jobs.clock.set(to: start.addingTimeInterval(1800))
        try jobs.enqueue(Write(text: "b"))
        try await expectEqual(worker.drain().done, 2)
        expectEqual(times.all, [start.addingTimeInterval(1800)])
        try await expectEqual(worker.drain().done, 0)
        expectEqual(tries.withLock { $0 }, 1)
        isMended.withLock { $0 = true }
        jobs.clock.advance(by: .seconds(60))
        try await expectEqual(worker.drain().done, 1)
        jobs.clock.set(to: start.addingTimeInterval(5400))
        try await expectEqual(worker.drain().done, 2)
        expectEqual(tries.withLock { $0 }, 3)
    }

    @Test func `a time that is rare is found over years`() throws {
        let yearly = try CronExpression("0 0 29 2 *")
        let (start, end) = (Date(timeIntervalSince1970: 0), Date(timeIntervalSince1970: 1_790_000_000))
        expectEqual(yearly.latest(after: start, through: end)?.formatted(.iso8601), "2024-02-29T00:00:00Z")
        expect(yearly.latest(after: Date(timeIntervalSince1970: 1_720_000_000), through: end) == nil)
        let minutely = try CronExpression("* * * * *")
        expectEqual(minutely.latest(after: start, through: end), Date(timeIntervalSince1970: 1_789_999_980))
    }
}
