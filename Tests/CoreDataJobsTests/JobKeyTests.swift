import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataJobs

@Suite("Unique jobs, and jobs with a key")
struct JobKeyTests {
    // MARK: - Unique jobs

    @Test(arguments: StoreKind.allCases)
    func `a unique job is enqueued once until it has finished, or for a time`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let context = jobs.stack.context()
        func enqueue(_ period: Duration) throws -> Bool {
            try context.performAndWait {
                let job = try context.enqueue(Write(text: "\(period)")) {
                    $0.unique = JobUniqueness("key", for: period)
                }
                let isNew = job.isInserted
                // The same save finds its own.
                try expect(context.enqueue(Write(text: "x")) { $0.unique = JobUniqueness("key") } === job)
                try context.save()
                return isNew
            }
        }
        let worker = jobs.writer()
        try expect(enqueue(.zero))
        try expect(!enqueue(.zero))
        try await expectEqual(worker.drain().done, 1)
        try expect(enqueue(.seconds(3600)))
        try await expectEqual(worker.drain().done, 1)
        try expect(!enqueue(.seconds(3600)))
        // The hour has passed. Then the old job gives the key to the new one in one save.
        try jobs.change { if $0.uniqueUntil != nil { $0.uniqueUntil = Date(timeIntervalSinceNow: -1) } }
        await context.perform { context.reset() }
        try expect(enqueue(.zero))
        try await expectEqual(worker.drain().done, 1)
        try expectEqual(jobs.jobs { "\($0.state) \($0.uniqueKey ?? "-")" }, ["done -", "done -", "done -"])
    }

    @Test(arguments: StoreKind.allCases)
    func `if two contexts enqueue a unique job at once, the later save conflicts and its second run finds the job`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try JobStack(kind)
        let context = jobs.stack.context()
        let runs = Locked(0)
        try context.performAndWait(retrying: 2) {
            let job = try context.enqueue(Write(text: "mine")) { $0.unique = JobUniqueness("key") }
            let run = runs.withLock { runs in
                runs += 1
                return runs
            }
            expectEqual(job.isInserted, run == 1)
            if run == 1 { try jobs.enqueue(Write(text: "theirs")) { $0.unique = JobUniqueness("key") } }
        }
        expectEqual(runs.withLock { $0 }, 2)
        try expectEqual(jobs.jobs { $0.payload }, [#"{"text":"theirs"}"#])
    }

    // MARK: - Keys

    @Test(arguments: StoreKind.allCases)
    func `jobs with a key run one at a time and in order, whatever workers do`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        for number in 1...4 { try jobs.enqueue(Write(text: "\(number)")) { $0.key = JobKey("customer") } }
        try jobs.enqueue(Write(text: "free"))
        let (begun, go) = (Steps(), Steps())
        let order = Locked<[String]>([])
        let workers = ["one", "two"].map { name in
            let worker = jobs.worker(name)
            worker.handle(Write.self) { run in
                order.withLock { $0.append(run.job.text) }
                begun.pass()
                if run.job.text == "1" { await go.wait() }
            }
            return worker
        }
        // All five are taken, and only two of them run.
        try await expectEqual(workers[0].pass(), 4)
        await begun.wait()
        try await expectEqual(workers[1].pass() > 0, true)
        await begun.wait(for: 2)
        while workers[0].runningCount + workers[1].runningCount > 1 { await Task.yield() }
        expectEqual(order.withLock { $0 }.sorted(), ["1", "free"])
        try expectEqual(
            jobs.jobs { "\($0.state) \($0.keyPlace ?? "-")" },
            ["running customer#0", "blocked -", "blocked -", "blocked -", "done -"]
        )
        // A new one comes after those that wait.
        try jobs.enqueue(Write(text: "5")) { $0.key = JobKey("customer") }
        try await workers[1].drain()
        go.pass()
        while workers[0].runningCount > 0 { await Task.yield() }
        for worker in [workers[1], workers[0], workers[1]] { try await worker.drain() }
        expectEqual(order.withLock { $0.filter { $0 != "free" } }, ["1", "2", "3", "4", "5"])
        try expectEqual(Set(jobs.jobs(JobStack.state)), ["done"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a job that finds its key busy lets one portion of the others wait, and all run in their order`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try JobStack(kind)
        let count = JobDesk.portion + 10
        let context = jobs.stack.context()
        try await context.perform {
            for number in 0..<count {
                try context.enqueue(Write(text: "\(number)")) { $0.key = JobKey("k") }.runAt = Date(
                    timeIntervalSince1970: Double(number)
                )
            }
            try context.save()
        }
        let desk = jobs.worker("one").desk
        let claims = try await desk.take(2, of: "default", at: jobs.clock.now)
        try await expectEqual(desk.enterKey(claims[0], at: jobs.clock.now), true)
        try await expectEqual(desk.enterKey(claims[1], at: jobs.clock.now), false)
        let states = try jobs.jobs(JobStack.state)
        expectEqual(states.count { $0 == "blocked" }, JobDesk.portion + 1)
        expectEqual(states.count { $0 == "ready" }, 8)
        _ = try await desk.settle(claims[0]) { $0.finish(.done, at: Date()) }
        try await desk.unblock("k", limit: 1)

        let order = Locked<[Int]>([])
        let worker = jobs.worker("two")
        worker.handle(Write.self) { run in order.withLock { $0.append(Int(run.job.text) ?? -1) } }
        try await expectEqual(worker.drain(atOnce: 4).done, count - 1)
        expectEqual(order.withLock { $0 }, Array(1..<count))
    }

    @Test(arguments: StoreKind.allCases)
    func `a key with a limit of two lets two jobs run`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        for number in 1...3 { try jobs.enqueue(Write(text: "\(number)")) { $0.key = JobKey("api", limit: 2) } }
        let desk = jobs.worker("one").desk
        let claims = try await desk.take(3, of: "default", at: jobs.clock.now)
        var entered: [Bool] = []
        for claim in claims { entered.append(try await desk.enterKey(claim, at: jobs.clock.now)) }
        expectEqual(entered, [true, true, false])
        try expectEqual(jobs.jobs { $0.keyPlace ?? "-" }, ["api#0", "api#1", "-"])
        _ = try await desk.settle(claims[0]) { $0.finish(.done, at: Date()) }
        try await desk.unblock("api", limit: 2)
        try expectEqual(jobs.jobs(JobStack.state), ["done", "running", "ready"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a paused queue does not hold up the jobs of another queue with the same key`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        for queue in ["default", "sums"] {
            for number in 1...2 {
                try jobs.enqueue(Write(text: "\(queue) \(number)")) {
                    $0.queue = queue
                    $0.key = JobKey("k")
                    $0.priority = queue == "default" ? 5 : 0
                }
            }
        }
        let context = jobs.stack.context()
        try context.performAndWait {
            try context.pauseJobs(in: "default")
            try context.save()
        }
        try await expectEqual(jobs.writer().drain().done, 2)
        try expectEqual(jobs.jobs { "\($0.queue) \($0.state)" }.suffix(2), ["sums done", "sums done"])
        // The jobs of the paused queue wait for a place as well.
        try jobs.enqueue(Write(text: "sums 3")) {
            $0.queue = "sums"
            $0.key = JobKey("k")
        }
        try jobs.change { if $0.state == .ready { $0.state = .blocked } }
        try await jobs.worker().desk.unblock("k", limit: 1)
        try await expectEqual(jobs.writer().drain().done, 1)
        try context.performAndWait {
            try context.resumeJobs(in: "default")
            try context.save()
        }
        try await expectEqual(jobs.writer().drain().done, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a job behind one that has no place yet is not made ready again and again`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        for number in 1...3 { try jobs.enqueue(Write(text: "\(number)")) { $0.key = JobKey("k", limit: 3) } }
        let desk = jobs.worker("slow").desk
        let claims = try await desk.take(2, of: "default", at: jobs.clock.now)
        try await expectEqual(desk.enterKey(claims[0], at: jobs.clock.now), true)
        // The second is another worker's, which has not asked for a place yet.
        let worker = jobs.writer()
        try await expectEqual(worker.pass(), 1)
        while worker.runningCount > 0 { await Task.yield() }
        try expectEqual(jobs.jobs(JobStack.state), ["running", "running", "blocked"])
        try await expectEqual(worker.pass(), 0)
        // With its place the next one's turn has come.
        try await expectEqual(desk.enterKey(claims[1], at: jobs.clock.now), true)
        try expectEqual(jobs.jobs(JobStack.state), ["running", "running", "ready"])
        try await expectEqual(worker.drain().done, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a worker that dies between two saves leaves no job blocked`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        for number in 1...2 { try jobs.enqueue(Write(text: "\(number)")) { $0.key = JobKey("k\(number)") } }
        try jobs.change { $0.state = .blocked }
        try await expectEqual(jobs.writer().drain().done, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `the job of a dead worker keeps its place among the jobs of its key`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        for number in 1...2 { try jobs.enqueue(Write(text: "\(number)")) { $0.key = JobKey("k") } }
        let dead = jobs.worker("dead").desk
        let claims = try await dead.take(1, of: "default", at: jobs.clock.now)
        try await expectEqual(dead.enterKey(claims[0], at: jobs.clock.now), true)
        let other = jobs.writer("other")
        try await expectEqual(other.drain(), JobCounts())
        try jobs.endLeases()
        try await expectEqual(other.drain().done, 2)
        try expectEqual(jobs.notes(), ["1", "2"])
    }
}
