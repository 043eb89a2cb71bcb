import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataJobs

@Suite("Limits of queues")
struct JobLimitTests {
    private static func stack(_ kind: StoreKind, jobs count: Int, limit: Int) throws -> JobStack {
        let jobs = try JobStack(kind)
        for number in 1...count { try jobs.enqueue(Write(text: "\(number)")) }
        try Self.limit(jobs, limit)
        return jobs
    }

    private static func limit(_ jobs: JobStack, _ limit: Int?) throws {
        let context = jobs.stack.context()
        try context.performAndWait {
            try context.limitJobs(in: "default", to: limit)
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `workers together run no more jobs of a queue than its limit`(_ kind: StoreKind) async throws {
        let jobs = try Self.stack(kind, jobs: 6, limit: 3)
        try jobs.enqueue(Add(numbers: [1]))
        let (begun, go, other) = (Steps(), Steps(), Steps())
        let order = Locked<[String]>([])
        let workers = ["one", "two"].map { name in
            let worker = jobs.worker(name, ["default": 2, "sums": 2])
            worker.handle(Write.self) { run in
                order.withLock { $0.append(run.job.text) }
                begun.pass()
                await go.wait()
            }
            worker.handle(Add.self) { _ in
                other.pass()
                return 1
            }
            return worker
        }
        // Another queue has places.
        try await expectEqual(workers[0].pass(), 3)
        await other.wait()
        try await expectEqual(workers[1].pass(), 1)
        await begun.wait(for: 3)
        try await expectEqual(workers[1].pass(), 0)
        try await expectEqual(workers[0].pass(), 0)
        try expectEqual(jobs.jobs(JobStack.state).count { $0 == "running" }, 3)
        expectEqual(order.withLock { $0.sorted() }, ["1", "2", "3"])
        go.pass()
        for worker in [workers[0], workers[1]] { try await worker.drain() }
        try expectEqual(Set(jobs.jobs(JobStack.state)), ["done"])
    }

    @Test(arguments: StoreKind.allCases)
    func `claims that are made at the same moment keep to the limit`(_ kind: StoreKind) async throws {
        let (rounds, limit) = (8, 2)
        let jobs = try Self.stack(kind, jobs: rounds * limit + 8, limit: limit)
        let desks = (0..<6).map { jobs.worker("\($0)").desk }
        for round in 0..<rounds {
            let claims = try await withThrowingTaskGroup(of: [(JobDesk, JobClaim)].self) { group in
                for desk in desks {
                    group.addTask {
                        try await desk.take(3, of: "default", at: jobs.clock.now, within: limit).map { (desk, $0) }
                    }
                }
                var claims: [(JobDesk, JobClaim)] = []
                for try await some in group { claims += some }
                return claims
            }
            expectEqual(claims.count, limit, "round \(round)")
            for (desk, claim) in claims { _ = try await desk.settle(claim) { $0.finish(.done, at: Date()) } }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the job of a dead worker counts until another worker has taken it over and ended it`(_ kind: StoreKind)
        async throws
    {
        let jobs = try Self.stack(kind, jobs: 2, limit: 1)
        let dead = jobs.worker("dead").desk
        try await expectEqual(dead.take(2, of: "default", at: jobs.clock.now, within: 1).count, 1)
        let other = jobs.writer("other")
        try await expectEqual(other.drain(atOnce: 4), JobCounts())
        try jobs.endLeases()
        try await expectEqual(other.drain(atOnce: 4).done, 2)
        try expectEqual(jobs.jobs { "\($0.payload) \($0.attempt)" }, [#"{"text":"1"} 2"#, #"{"text":"2"} 1"#])
    }

    @Test(arguments: StoreKind.allCases)
    func `a limit that is raised or ended lets more jobs run, and one that is lowered stops none`(_ kind: StoreKind)
        async throws
    {
        let jobs = try Self.stack(kind, jobs: 6, limit: 2)
        let (begun, go) = (Steps(), Steps())
        let worker = jobs.worker("one", ["default": 4])
        worker.handle(Write.self) { _ in
            begun.pass()
            await go.wait()
        }
        let context = jobs.stack.context()
        let isUnchanged = try context.performAndWait {
            try context.limitJobs(in: "default", to: 2)
            try context.limitJobs(in: "other", to: nil)
            return !context.hasChanges
        }
        expect(isUnchanged)
        try await expectEqual(worker.pass(), 2)
        try Self.limit(jobs, 3)
        try await expectEqual(worker.pass(), 1)
        try Self.limit(jobs, 1)
        try await expectEqual(worker.pass(), 0)
        await begun.wait(for: 3)
        expectEqual(worker.runningCount, 3)
        let queue = try context.performAndWait { try context.jobStatistics() }
        expectEqual(queue.queues.map(\.limit), [1])
        expect(queue.prometheusText.contains("coredata_job_queue_limit{queue=\"default\"} 1\n"))
        try expectEqual(context.performAndWait { try context.jobQueueLimits() }, ["default": 1])
        try Self.limit(jobs, nil)
        try await expectEqual(worker.pass(), 1)
        go.pass()
        // The runs may end before the drain begins, which counts what happens since then.
        _ = try await worker.drain()
        expectEqual(worker.counts.done, 6)
        let after = try context.performAndWait { try context.jobStatistics() }
        expectEqual(after.queues.map(\.limit), [nil])
        expect(!after.prometheusText.contains("limit"))
    }

    @Test(arguments: StoreKind.allCases)
    func `a limit below one is refused, and a model without limits has none`(_ kind: StoreKind) async throws {
        let model = JobEntities.model()
        model.entitiesByName["JobQueueState"]?.properties.removeAll { $0.name == "limit" }
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        try await context.perform {
            for limit in [0, -1, Int(Int32.max) + 1] {
                let error = expectThrows(CocoaError.self) { try context.limitJobs(in: "default", to: limit) }
                expectEqual(error?.code, .persistentStoreOperation)
            }
            let error = expectThrows(CocoaError.self) { try context.limitJobs(in: "default", to: 1) }
            expect(error?.localizedDescription.contains("attribute “limit”") == true)
            try context.pauseJobs(in: "other")
            try context.enqueue(Write(text: "old"))
            try context.save()
            try expectEqual(context.jobStatistics().queues.map(\.limit), [nil, nil])
        }
        let worker = JobWorker(stack.coordinator)
        worker.handle(Write.self) { _ in }
        try await expectEqual(worker.drain().done, 1)
    }
}
