import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataJobs

/// The loop of a worker, whose clock stands still: only what wakes it makes it go on.
@Suite("The loop of a worker")
struct JobLoopTests {
    private static func run(_ worker: JobWorker, within patience: Duration = .seconds(25)) -> Task<Void, any Error> {
        Task { try await worker.run(stoppingOn: [], within: patience) }
    }

    @Test(arguments: StoreKind.allCases)
    func `a save of this process wakes the worker, and a stop lets running jobs finish`(_ kind: StoreKind) async throws
    {
        let jobs = try JobStack(kind)
        let (begun, go) = (Steps(), Steps())
        let worker = jobs.worker()
        worker.handle(Write.self) { run in
            begun.pass()
            if run.job.text == "slow" { await go.wait() }
            try await run.perform { context in Note(context: context).text = run.job.text }
        }
        let running = Self.run(worker)
        // The worker waits for something to happen.
        while jobs.clock.sleeperCount == 0 { await Task.yield() }
        let error = await #expect(throws: CocoaError.self) { try await worker.run(stoppingOn: []) }
        expectEqual(error?.code, .persistentStoreOperation)
        try jobs.enqueue(Write(text: "quick"))
        await begun.wait()
        try jobs.enqueue(Write(text: "slow"))
        await begun.wait(for: 2)
        let stop = Task { await worker.stop() }
        go.pass()
        await stop.value
        try await running.value
        try expectEqual(jobs.notes(), ["quick", "slow"])
        try jobs.enqueue(Write(text: "later"))
        try expectEqual(jobs.jobs { "\($0.state)" }, ["done", "done", "ready"])
        // A worker that was stopped stays so.
        try await worker.run(stoppingOn: [])
        try expectEqual(jobs.jobs { "\($0.state)" }, ["done", "done", "ready"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the clock wakes the worker at the time of the next job`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let done = Steps()
        var settings = JobWorker.Settings()
        settings.clock = jobs.clock
        settings.poll = .seconds(86_400)
        let worker = JobWorker(jobs.stack.coordinator, name: "one", settings: settings)
        worker.handle(Write.self) { _ in done.pass() }
        let time = jobs.clock.now.addingTimeInterval(600)
        try jobs.enqueue(Write(text: "later")) { $0.start = .at(time) }
        let running = Self.run(worker)
        while jobs.clock.sleeperCount == 0 { await Task.yield() }
        jobs.clock.set(to: time)
        await done.wait()
        await worker.stop()
        try await running.value
    }

    @Test(arguments: StoreKind.allCases)
    func `when patience ends, tasks are cancelled and their jobs are given back`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "deaf"))
        try jobs.enqueue(Write(text: "polite"))
        let (begun, go, ended) = (Steps(), Steps(), Steps())
        let worker = jobs.worker()
        worker.handle(Write.self) { run in
            try await run.perform { context in Note(context: context).text = run.job.text }
            begun.pass()
            defer { ended.pass() }
            if run.job.text == "deaf" { return await Task { await go.wait() }.value }
            try await SystemJobClock().sleep(until: Date(timeIntervalSinceNow: 60))
        }
        let running = Self.run(worker, within: .seconds(10))
        await begun.wait(for: 2)
        // A cancelled task of the loop stops the worker as well.
        running.cancel()
        // The stop waits by the clock.
        while worker.runningCount == 2, jobs.clock.sleeperCount == 0 { await Task.yield() }
        while worker.runningCount == 2 {
            jobs.clock.advance(by: .seconds(11))
            await Task.yield()
            if (try? jobs.jobs { "\($0.state)" }) == ["ready", "ready"] { break }
        }
        try await running.value
        try expectEqual(jobs.jobs { "\($0.state) \($0.attempt) \($0.claimedBy ?? "-")" }, ["ready 0 -", "ready 0 -"])
        go.pass()
        await ended.wait(for: 2)
        while worker.runningCount > 0 { await Task.yield() }
        try expectEqual(jobs.notes(), [])
        expectEqual(worker.counts.done, 0)
    }

    @Test(.enabled(if: StoreKind.databases.contains(.database)))
    func `a save of another process wakes the worker if the store says so`() async throws {
        let options: [AnyHashable: Any] = [
            NSPersistentStoreRemoteChangeNotificationPostOptionKey: true, NSPersistentHistoryTrackingKey: true,
        ]
        let jobs = try JobStack(.database, options: options)
        let other = NSPersistentStoreCoordinator(managedObjectModel: JobStack.model)
        try other.addPersistentStore(
            type: jobs.stack.kind.type,
            configuration: nil,
            at: jobs.stack.storeURL,
            options: options
        )
        let done = Steps()
        let worker = jobs.worker()
        worker.handle(Write.self) { _ in done.pass() }
        let running = Self.run(worker)
        while jobs.clock.sleeperCount == 0 { await Task.yield() }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = other
        try await context.perform {
            try context.enqueue(Write(text: "from afar"))
            try context.save()
        }
        await done.wait()
        await worker.stop()
        try await running.value
    }

    @Test func `a signal stops the worker`() async throws {
        let jobs = try JobStack(.database)
        let worker = jobs.worker()
        let running = Task { try await worker.run(stoppingOn: [SIGUSR2]) }
        while jobs.clock.sleeperCount == 0 { await Task.yield() }
        kill(getpid(), SIGUSR2)
        try await running.value
    }

    @Test(arguments: StoreKind.allCases)
    func `the end of a run leaves the next run of the job alone, which has the same number of the attempt`(
        _ kind: StoreKind
    ) async throws {
        struct End: Error {}
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        let (worker, runs, begun, goOn) = (jobs.worker(), Shared(0), Steps(), [Steps(), Steps()])
        worker.handle(Write.self) { run in
            // The second run begins after the first one has come here.
            runs.update { $0 += 1 }
            let number = runs.current
            begun.pass()
            await goOn[number - 1].wait()
            if number == 1 { throw End() }
            if Task.isCancelled { throw CancellationError() }
            try await run.perform { context in Note(context: context).text = run.job.text }
        }
        let first = try await worker.desk.take(1, of: "default", at: jobs.clock.now)
        await worker.begin(first)
        await begun.wait()
        let time = jobs.clock.now
        _ = try await worker.desk.settle(first[0]) { $0.giveBack(until: nil, at: time) }
        let second = try await worker.desk.take(1, of: "default", at: jobs.clock.now)
        expectEqual((first + second).map(\.attempt), [1, 1])
        await worker.begin(second)
        await begun.wait(for: 2)

        goOn[0].pass()
        while worker.counts.lost + worker.counts.retried == 0 { await Task.yield() }
        // The first run frees its place after it has counted.
        for _ in 0..<1000 { await Task.yield() }

        expectEqual(worker.counts.lost, 1)
        expectEqual(worker.runningCount, 1)
        try expectEqual(jobs.jobs { "\($0.state) \($0.claimedBy ?? "-") \($0.attempt)" }, ["running one 1"])
        let stopping = Task { await worker.stop(within: .seconds(1000)) }
        goOn[1].pass()
        await stopping.value
        expectEqual(worker.counts.done, 1)
        expectEqual(worker.runningCount, 0)
        try expectEqual(jobs.jobs { "\($0.state) \($0.attempt)" }, ["done 1"])
        try expectEqual(jobs.notes(), ["a"])
    }
}
