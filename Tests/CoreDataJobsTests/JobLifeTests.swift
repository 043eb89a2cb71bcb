import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataJobs

@Suite("Lives of jobs")
struct JobLifeTests {
    // MARK: - Order and time

    @Test(arguments: StoreKind.allCases)
    func `jobs run in the order of priority and time, and when their time has come`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let worker = jobs.worker()
        let order = Locked<[String]>([])
        worker.handle(Write.self) { run in order.withLock { $0.append(run.job.text) } }
        let later = jobs.clock.now.addingTimeInterval(3600)
        try jobs.enqueue(Write(text: "later")) { $0.start = .at(later) }
        try jobs.enqueue(Write(text: "soon")) { $0.start = .after(.seconds(60)) }
        try jobs.enqueue(Write(text: "first"))
        try jobs.enqueue(Write(text: "second"))
        try jobs.enqueue(Write(text: "urgent")) { $0.priority = 5 }
        try await worker.drain()
        expectEqual(order.withLock { $0 }, ["urgent", "first", "second"])
        try await expectEqual(worker.desk.nextTime().map { $0 < later }, true)
        jobs.clock.advance(by: .seconds(120))
        try await worker.drain()
        jobs.clock.set(to: later)
        try await worker.drain()
        expectEqual(order.withLock { Array($0.suffix(2)) }, ["soon", "later"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a finished job is kept for its time, and a failed one until it is retried`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let worker = jobs.writer()
        worker.handle(Add.self) { _ in throw JobExit.fail("never") }
        try jobs.enqueue(Write(text: "day"))
        try jobs.enqueue(Write(text: "not at all")) { $0.keep = .zero }
        try jobs.enqueue(Add(numbers: []))
        try await worker.drain()
        try expectEqual(jobs.jobs(JobStack.text), [#"{"text":"day"} done"#, #"{"numbers":[]} failed"#])
        jobs.clock.advance(by: .seconds(86_399))
        try await worker.drain()
        try expectEqual(jobs.jobs(JobStack.state), ["done", "failed"])
        jobs.clock.advance(by: .seconds(61))
        try await worker.drain()
        try expectEqual(jobs.jobs { "\($0.state) \($0.failure ?? "")" }, ["failed never"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a job is kept as long as its unique period lasts`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let worker = jobs.writer()
        for (number, keep) in [Duration.zero, .seconds(60)].enumerated() {
            try jobs.enqueue(Write(text: "\(number)")) {
                $0.keep = keep
                $0.unique = JobUniqueness("key \(number)", for: .seconds(3600))
            }
        }
        try await expectEqual(worker.drain().done, 2)
        jobs.clock.advance(by: .seconds(3500))
        try await worker.drain()
        try expectEqual(jobs.jobs { "\($0.state) \($0.uniqueKey ?? "-")" }, ["done key 0", "done key 1"])
        let context = jobs.stack.context()
        try context.performAndWait {
            let job = try context.enqueue(Write(text: "again")) { $0.unique = JobUniqueness("key 0") }
            expect(!job.isInserted)
        }
        jobs.clock.advance(by: .seconds(200))
        try await worker.drain()
        try expectEqual(jobs.jobs(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a pass deletes one portion of the jobs that are no longer kept, and the next one goes on`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try JobStack(kind)
        let context = jobs.stack.context()
        try await context.perform {
            for number in 0...JobDesk.portion { try context.enqueue(Write(text: "\(number)")).cancel() }
            try context.save()
        }
        jobs.clock.advance(by: .seconds(90_000))
        let worker = jobs.writer()
        try await expectEqual(worker.pass(), 1)
        try expectEqual(jobs.jobs(JobStack.state), ["cancelled"])
        try await expectEqual(worker.pass(), 0)
        try expectEqual(jobs.jobs(JobStack.state), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a job that is retried after a look for old jobs is not deleted`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        for text in ["a", "b"] { try jobs.enqueue(Write(text: text)) }
        try jobs.change { $0.cancel() }
        let later = Date(timeIntervalSinceNow: 90_000)
        let desk = jobs.worker().desk
        let old = try await desk.expired(at: later)
        expectEqual(old.count, 2)
        try jobs.change { if $0.payload.contains("a\"") { $0.retry() } }
        try await desk.delete(old, at: later)
        try expectEqual(jobs.jobs(JobStack.text), [#"{"text":"a"} ready"#])
    }

    // MARK: - Ends that handlers choose

    @Test(arguments: StoreKind.allCases)
    func `a handler cancels, postpones, or names the wait before the next attempt`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let worker = jobs.worker()
        worker.handle(Write.self) { run in
            switch run.job.text {
            case "cancel": throw JobExit.cancel("there is no such user")
            case "postpone": throw JobExit.postpone(.seconds(10))
            default: throw JobExit.retry(after: .seconds(20), "busy")
            }
        }
        for text in ["cancel", "postpone", "retry"] { try jobs.enqueue(Write(text: text)) }
        let counts = try await worker.drain()
        expectEqual([counts.cancelled, counts.postponed, counts.retried], [1, 1, 1])
        let now = jobs.clock.now
        try expectEqual(
            jobs.jobs {
                "\($0.state) \($0.attempt) \(Int($0.runAt.timeIntervalSince(now).rounded())) \($0.failure ?? "-")"
            }
            .dropFirst(),
            ["scheduled 0 10 -", "scheduled 1 20 busy"]
        )
        try expectEqual(
            jobs.jobs { "\($0.state) \($0.failure ?? "-")" }.first,
            "cancelled there is no such user"
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `a job without a handler waits for a worker that has one`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        try await expectEqual(jobs.worker("old").drain().postponed, 1)
        try expectEqual(
            jobs.jobs { "\($0.state) \($0.attempt) \($0.failure ?? "")" },
            ["scheduled 0 The worker old has no handler for Write."]
        )
        jobs.clock.advance(by: .seconds(30))
        try await expectEqual(jobs.writer("new").drain().done, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a payload of another form is a failed attempt, and a failed save as well`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        try jobs.enqueue(Write(text: "b"))
        try jobs.change { if $0.payload.contains("a\"") { $0.payload = "[]" } }
        let worker = jobs.worker()
        worker.handle(Write.self) { run in
            try await run.perform { context in
                Note(context: context).code = "same"
                Note(context: context).code = "same"
            }
        }
        try await expectEqual(worker.drain().retried, 2)
        try expectEqual(jobs.jobs { "\($0.state) \($0.failure != nil)" }, ["scheduled true", "scheduled true"])
        try expectEqual(jobs.notes(), [])
    }

    // MARK: - Leases

    @Test(arguments: StoreKind.allCases)
    func `another worker takes the job of one that has died, and the attempt counts`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a")) { $0.maximumAttempts = 2 }
        let dead = jobs.worker("dead")
        let claims = try await dead.desk.take(4, of: "default", at: jobs.clock.now)
        expectEqual(claims.map(\.attempt), [1])
        let other = jobs.writer("other")
        try await expectEqual(other.drain(), JobCounts())
        try jobs.endLeases()
        try await expectEqual(other.drain().done, 1)
        try expectEqual(jobs.jobs { "\($0.state) \($0.attempt)" }, ["done 2"])
        // The first worker was only slow. Its end is not recorded, and its changes are not saved.
        let context = dead.desk.newContext()
        await context.perform { Note(context: context).text = "late" }
        let settled = try await dead.desk.settle(claims[0], in: context) { $0.finish(.failed, at: Date()) }
        expect(settled == nil)
        try expectEqual(jobs.jobs(JobStack.state), ["done"])
        try expectEqual(jobs.notes(), ["a"])
    }

    /// Claims of a worker whose process has stood still since then, until their leases were over.
    private func oldClaims(_ worker: JobWorker, _ count: Int, _ jobs: JobStack) async throws -> [JobClaim] {
        var claims = try await worker.desk.take(count, of: "default", at: jobs.clock.now)
        try require(claims.count == count)
        for index in claims.indices { claims[index].leasedAfter -= .seconds(60) }
        try jobs.endLeases()
        return claims
    }

    @Test(arguments: StoreKind.allCases, [(false, nil), (true, nil), (false, "k")] as [(Bool, String?)])
    func `a worker that stood still does not begin a job that another has or had`(
        _ kind: StoreKind,
        _ form: (isDone: Bool, key: String?)
    ) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a")) { $0.key = form.key.map { JobKey($0) } }
        let (slow, other, runs) = (jobs.worker("slow"), jobs.worker("other"), Shared(0))
        let (begun, go) = (Steps(), Steps())
        slow.handle(Write.self) { _ in runs.update { $0 += 1 } }
        other.handle(Write.self) { run in
            begun.pass()
            await go.wait()
            try await run.perform { context in Note(context: context).text = run.job.text }
        }
        let claims = try await oldClaims(slow, 1, jobs)
        let draining = Task { try await other.drain() }
        await begun.wait()
        if form.isDone {
            go.pass()
            _ = try await draining.value
        }
        await slow.begin(claims)
        await slow.awaitRuns(until: .distantFuture)
        expectEqual(runs.current, 0)
        expectEqual(slow.counts.lost, 1)
        go.pass()
        try await expectEqual(draining.value.done, 1)
        try expectEqual(jobs.jobs { "\($0.state) \($0.attempt)" }, ["done 2"])
        try expectEqual(jobs.notes(), ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a worker that stood still, and has claimed the job again, begins the later attempt only`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        let (worker, attempts) = (jobs.worker("slow"), Shared<[Int]>([]))
        worker.handle(Write.self) { run in attempts.update { $0.append(run.attempt) } }
        let claims = try await oldClaims(worker, 1, jobs)
        let again = try await worker.desk.rescue(1, of: "default", at: jobs.clock.now)
        expectEqual(again.map(\.attempt), [2])
        await worker.begin(claims)
        await worker.awaitRuns(until: .distantFuture)
        expectEqual(attempts.current, [])
        expectEqual(worker.counts.lost, 1)
        await worker.begin(again)
        await worker.awaitRuns(until: .distantFuture)
        expectEqual(attempts.current, [2])
        expectEqual(worker.counts.done, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a worker that stood still renews the lease of a job that nobody else has, before it begins`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        let worker = jobs.worker("slow")
        worker.handle(Write.self) { run in
            try expectEqual(jobs.jobs(Self.hasLongLease), ["true"])
            try await run.perform { context in Note(context: context).text = run.job.text }
        }
        try await worker.begin(oldClaims(worker, 1, jobs))
        await worker.awaitRuns(until: .distantFuture)
        expectEqual(worker.counts.done, 1)
        try expectEqual(jobs.notes(), ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a worker that stood still does only those jobs of a group that it still has`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        for text in ["a", "b"] { try jobs.enqueue(Write(text: text)) }
        let (slow, calls) = (jobs.worker("slow"), Shared<[[String]]>([]))
        slow.handle(Write.self, together: 2) { group in calls.update { $0.append(group.jobs.map(\.text)) } }
        let claims = try await oldClaims(slow, 2, jobs)
        try await expectEqual(jobs.worker("other").desk.rescue(1, of: "default", at: jobs.clock.now).count, 1)
        await slow.begin(claims)
        await slow.awaitRuns(until: .distantFuture)
        expectEqual(calls.current, [["b"]])
        expectEqual(slow.counts.lost, 1)
        try expectEqual(jobs.jobs { "\($0.state) \($0.claimedBy ?? "-")" }, ["running other", "done -"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a running job without a lease is taken by a worker`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        try await expectEqual(jobs.worker("dead").desk.take(1, of: "default", at: jobs.clock.now).count, 1)
        // This is how a claim leaves the job if the reads after its commit fail.
        try jobs.change { job in
            job.claimedBy = nil
            job.claimedUntil = nil
        }
        try await expectEqual(jobs.writer("other").drain().done, 1)
        try expectEqual(jobs.jobs { "\($0.state) \($0.attempt)" }, ["done 2"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a job that kills its workers fails`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a")) { $0.maximumAttempts = 2 }
        let desk = jobs.worker("dead").desk
        try await expectEqual(desk.take(1, of: "default", at: jobs.clock.now).count, 1)
        try jobs.endLeases()
        try await expectEqual(desk.rescue(1, of: "default", at: jobs.clock.now).count, 1)
        try jobs.endLeases()
        try await expectEqual(jobs.writer().drain().failed, 1)
        try expectEqual(
            jobs.jobs { "\($0.state) \($0.attempt) \($0.failure ?? "")" },
            ["failed 2 The worker ended before the job did."]
        )
        try expectEqual(jobs.notes(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a heartbeat renews leases, and the end of the job finds no conflict`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        let (worker, begun, go) = (jobs.worker(), Steps(), Steps())
        worker.handle(Write.self) { run in
            try await run.perform { context in Note(context: context).text = "long" }
            begun.pass()
            await go.wait()
        }
        try await expectEqual(worker.pass(), 1)
        await begun.wait()
        try jobs.change { $0.claimedUntil = Date(timeIntervalSinceNow: 1) }
        jobs.clock.advance(by: .seconds(20))
        try await expectEqual(worker.pass(), 0)
        try expectEqual(jobs.jobs { "\(($0.claimedUntil ?? .distantPast) > Date(timeIntervalSinceNow: 40))" }, ["true"])
        go.pass()
        // The run may end before the drain begins to count.
        try await worker.drain()
        expectEqual(worker.counts.done, 1)
        try expectEqual(jobs.notes(), ["long"])
    }

    private static let hasLongLease: @Sendable (QueuedJob) -> String = {
        "\(($0.claimedUntil ?? .distantPast) > Date(timeIntervalSinceNow: 40))"
    }

    @Test(arguments: StoreKind.allCases)
    func `leases are renewed while a drain waits for its jobs`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        let (worker, begun, go) = (jobs.worker(), Steps(), Steps())
        worker.handle(Write.self) { _ in
            begun.pass()
            await go.wait()
        }
        let draining = Task { try await worker.drain() }
        await begun.wait()
        try jobs.change { $0.claimedUntil = Date(timeIntervalSinceNow: 1) }
        jobs.clock.advance(by: .seconds(20))
        let end = Date(timeIntervalSinceNow: 10)
        while try jobs.jobs(Self.hasLongLease) != ["true"], Date() < end {
            try await Task.sleep(for: .milliseconds(10))
        }
        try expectEqual(jobs.jobs(Self.hasLongLease), ["true"])
        go.pass()
        try await expectEqual(draining.value.done, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a drain whose task is cancelled waits for the job that runs`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        let (worker, begun, go) = (jobs.worker(), Steps(), Steps())
        worker.handle(Write.self) { _ in
            begun.pass()
            await go.wait()
        }
        let draining = Task { try await worker.drain() }
        await begun.wait()
        draining.cancel()
        go.pass()
        await #expect(throws: CancellationError.self) { try await draining.value }
        try expectEqual(jobs.jobs(JobStack.state), ["done"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a clock that is set back does not end the heartbeat or the maintenance`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        let (worker, begun, go) = (jobs.worker(), Steps(), Steps())
        worker.handle(Write.self) { _ in
            begun.pass()
            await go.wait()
        }
        try await expectEqual(worker.pass(), 1)
        await begun.wait()
        jobs.clock.set(to: jobs.clock.now.addingTimeInterval(-3600))
        let now = jobs.clock.now
        try jobs.enqueue(Write(text: "old"))
        try jobs.change { job in
            if job.state == .running { job.claimedUntil = Date(timeIntervalSinceNow: 1) }
            if job.state == .ready { job.finish(.cancelled, at: now.addingTimeInterval(-100_000)) }
        }
        try await expectEqual(worker.pass(), 0)
        try expectEqual(jobs.jobs(Self.hasLongLease), ["true"])
        go.pass()
        // The run may end before the drain begins, which counts what happens since then.
        _ = try await worker.drain()
        expectEqual(worker.counts.done, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `the task of a run is cancelled when another worker has its job`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        let (worker, begun, ended) = (jobs.worker(), Steps(), Steps())
        worker.handle(Write.self) { run in
            try await run.perform { context in Note(context: context).text = "slow" }
            begun.pass()
            defer { ended.pass() }
            try await SystemJobClock().sleep(until: Date(timeIntervalSinceNow: 60))
        }
        try await expectEqual(worker.pass(), 1)
        await begun.wait()
        try jobs.endLeases()
        let other = jobs.writer("other")
        try await expectEqual(other.drain().done, 1)
        try await worker.heartbeat(at: jobs.clock.now)
        await ended.wait()
        try await worker.drain()
        expectEqual(worker.counts.lost, 1)
        try expectEqual(jobs.notes(), ["a"])
    }

    // MARK: - Those who look after jobs

    @Test(arguments: StoreKind.allCases)
    func `jobs are cancelled, also while they run`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "waits")) { $0.start = .after(.seconds(60)) }
        try jobs.enqueue(Write(text: "runs"))
        let (worker, begun) = (jobs.worker(), Steps())
        worker.handle(Write.self) { run in
            try await run.report(progress: 0.25, "a quarter")
            begun.pass()
            try await SystemJobClock().sleep(until: Date(timeIntervalSinceNow: 60))
        }
        try await expectEqual(worker.pass(), 1)
        await begun.wait()
        try expectEqual(
            jobs.jobs { "\($0.state) \($0.progress) \($0.progressText ?? "")" },
            ["scheduled 0.0 ", "running 0.25 a quarter"]
        )
        try jobs.change { $0.cancel() }
        try expectEqual(jobs.jobs(JobStack.state), ["cancelled", "running"])
        try await expectEqual(worker.drain().cancelled, 1)
        try expectEqual(jobs.jobs(JobStack.state), ["cancelled", "cancelled"])
        try jobs.change { $0.retry() }
        try expectEqual(
            jobs.jobs { "\($0.state) \($0.attempt) \($0.expiresAt == nil)" },
            ["ready 0 true", "ready 0 true"]
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `a job that is to be cancelled is not given back, not tried again, and does not fail`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try JobStack(kind)
        let worker = jobs.worker("one", ["default": 9, "sums": 1])
        worker.handle(Write.self) { run in
            // The worker has not noticed the request yet.
            let context = jobs.stack.context()
            try context.performAndWait {
                try require(context.existingObject(with: run.id) as? QueuedJob).cancel()
                try context.save()
            }
            switch run.job.text {
            case "postpone": throw JobExit.postpone(.seconds(10))
            case "retry": throw JobExit.retry(after: .seconds(10), "busy")
            case "fail": throw JobExit.fail("never")
            default: throw Failure(description: "no luck")
            }
        }
        let texts = ["postpone", "retry", "fail", "throw"]
        for text in texts { try jobs.enqueue(Write(text: text)) }
        let counts = try await worker.drain()
        expectEqual([counts.cancelled, counts.postponed, counts.retried, counts.failed], [4, 0, 0, 0])
        try expectEqual(jobs.jobs(JobStack.state), texts.map { _ in "cancelled" })
    }

    @Test(arguments: StoreKind.allCases)
    func `a job of a dead worker that is to be cancelled does not run again`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        try jobs.enqueue(Write(text: "with a key")) { $0.key = JobKey("k") }
        try jobs.enqueue(Write(text: "last")) { $0.maximumAttempts = 1 }
        try jobs.enqueue(Add(numbers: [])) { $0.queue = "default" }
        try await expectEqual(jobs.worker("dead").desk.take(4, of: "default", at: jobs.clock.now).count, 4)
        try jobs.change { $0.cancel() }
        try jobs.endLeases()
        try await expectEqual(jobs.writer().drain().cancelled, 4)
        try expectEqual(jobs.jobs(JobStack.state), Array(repeating: "cancelled", count: 4))
        try expectEqual(jobs.notes(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a job that is to be cancelled does not wait for its key`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        for text in ["a", "b"] { try jobs.enqueue(Write(text: text)) { $0.key = JobKey("k") } }
        let desk = jobs.worker("one").desk
        let claims = try await desk.take(2, of: "default", at: jobs.clock.now)
        try await expectEqual(desk.enterKey(claims[0], at: jobs.clock.now), true)
        try jobs.change { $0.cancel() }
        try await expectEqual(desk.enterKey(claims[1], at: jobs.clock.now), false)
        try expectEqual(jobs.jobs(JobStack.state), ["running", "cancelled"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a paused queue is left alone until it is resumed`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let worker = jobs.writer()
        let context = jobs.stack.context()
        try context.performAndWait {
            try context.resumeJobs(in: "default")
            try context.pauseJobs(in: "default")
            try context.enqueue(Write(text: "a"))
            try context.save()
        }
        try await expectEqual(worker.drain(), JobCounts())
        try context.performAndWait {
            try expectEqual(context.pausedJobQueues(), ["default"])
            try context.resumeJobs(in: "default")
            try context.save()
        }
        try await expectEqual(worker.drain().done, 1)
    }

    // MARK: - Entities

    @Test(arguments: StoreKind.allCases)
    func `a subclass relates jobs to objects of the program`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let context = jobs.stack.context()
        try context.performAndWait {
            let note = Note(context: context)
            note.text = "before"
            let job: NoteJob = try context.enqueue(Write(text: "after"), as: NoteJob.self)
            job.note = note
            try context.save()
        }
        let worker = jobs.worker()
        worker.handle(Write.self) { run in
            try await run.perform { context in
                let job = try require(context.existingObject(with: run.id) as? NoteJob)
                job.note?.text = run.job.text
            }
        }
        try await expectEqual(worker.drain().done, 1)
        try expectEqual(jobs.notes(), ["after"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a handler changes the properties of its own job's subclass`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let context = jobs.stack.context()
        try context.performAndWait {
            let job: NoteJob = try context.enqueue(Write(text: "made"), as: NoteJob.self)
            job.remark = "before"
            try context.save()
        }
        let worker = jobs.worker()
        worker.handle(Write.self) { run in
            try await run.perform { context in
                let job = try require(context.existingObject(with: run.id) as? NoteJob)
                let note = Note(context: context)
                note.text = run.job.text
                job.note = note
                job.remark = nil
                job.mark = 3
                // These are the worker's.
                job.priority = 7
                job.attempt = 9
            }
            // The save at the end finds that the job has changed.
            try await run.report(progress: 0.5)
        }
        try await expectEqual(worker.drain().done, 1)
        try expectEqual(
            jobs.jobs { job in
                guard let job = job as? NoteJob else { return "another class" }
                return "\(job.note?.text ?? "-") \(job.remark ?? "-") \(job.mark) \(job.priority) \(job.attempt)"
            },
            ["made - 3 0 1"]
        )
    }

    @Test func `options that make no sense, and a model without jobs, are refused`() throws {
        let jobs = try JobStack(.database)
        let context = jobs.stack.context()
        context.performAndWait {
            let wrong: [(inout JobOptions) -> Void] = [
                { $0.maximumAttempts = 0 }, { $0.maximumAttempts = 10_001 }, { $0.queue = "" },
                { $0.keep = .seconds(-1) },
                { $0.key = JobKey("k", limit: 0) },
            ]
            for change in wrong {
                let error = expectThrows(CocoaError.self) { try context.enqueue(Write(text: ""), change) }
                expectEqual(error?.code, .persistentStoreOperation)
            }
            expect(!context.hasChanges)
        }
        let other = try Stack(.database).context()
        other.performAndWait {
            let error = expectThrows(CocoaError.self) { try other.enqueue(Write(text: "")) }
            expectEqual(error?.code, .persistentStoreOperation)
        }
    }

    @Test func `a back-off grows to its limit, and chance makes it longer`() {
        let backoff = JobBackoff.exponential(from: .seconds(15), to: .seconds(100), jitter: 0.5)
        expectEqual((1...5).map { backoff.wait(after: $0, chance: 0) }, [15, 30, 60, 100, 100])
        expectEqual(backoff.wait(after: 2, chance: 1), 45)
        expectEqual(backoff.wait(after: 30_000, chance: 0), 100)
        expectEqual(JobBackoff.constant(.seconds(5)).wait(after: 9, chance: 1), 5)
    }
}

/// Runs a step at the first fault that one context reads from the store.
private final class FaultStep: CoreDataInstrument {
    private let step: Shared<(@Sendable () throws -> Void)?>
    private let context: String

    init(in context: String, _ step: @escaping @Sendable () throws -> Void) {
        self.context = context
        self.step = Shared(step)
    }

    func record(_ event: CoreDataEvent) {
        guard event.kind == .fault, event.context == context, let step = step.current else { return }
        self.step.update { $0 = nil }
        do { try step() } catch { expect(Bool(false), "\(error)") }
    }
}

@Suite("Jobs that are deleted")
struct DeletedJobTests {
    @Test(arguments: StoreKind.allCases)
    func `a job whose row goes while its worker ends it is lost, and nothing of the handler is saved`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        let worker = jobs.worker()
        worker.handle(Write.self) { run in
            try await run.perform { context in Note(context: context).text = run.job.text }
            // The worker reads the row of the job, which is gone when it looks at the state.
            jobs.stack.coolDown()
            jobs.stack.coordinator.instrument = FaultStep(in: "one run") {
                let context = jobs.stack.context()
                try context.performAndWait {
                    for job in try context.fetch(QueuedJob.request()) { context.delete(job) }
                    try context.save()
                }
            }
        }
        var lost = JobCounts()
        lost.lost = 1
        try await expectEqual(worker.drain(), lost)
        try expectEqual(jobs.notes(), [])
        try expectEqual(jobs.jobs(), [])
    }
}
