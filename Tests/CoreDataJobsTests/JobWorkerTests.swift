import CoreData
import CoreDataJobs
import Expectations
import StrataLocks
import TestSupport
import Testing

@Suite("Jobs")
struct JobWorkerTests {
    @Test(arguments: StoreKind.allCases)
    func `a job is enqueued by the save that causes it, or not at all`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let context = jobs.stack.context()
        try context.performAndWait {
            Note(context: context).text = "first"
            try context.enqueue(Write(text: "lost"))
            context.rollback()
            Note(context: context).text = "second"
            let queued = try context.enqueue(Write(text: "kept"))
            expect(queued.isInserted)
            expectEqual(try queued.payload(as: Write.self).text, "kept")
        }
        try expectEqual(jobs.jobs(), [])
        try context.performAndWait { try context.save() }
        try expectEqual(jobs.jobs { "\($0.payload) \($0.state) \($0.queue)" }, [#"{"text":"kept"} ready default"#])
        try expectEqual(jobs.notes(), ["second"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a worker runs jobs, and their changes and their end are one save`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        try jobs.enqueue(Add(numbers: [1, 2]))
        let worker = jobs.worker()
        worker.handle(Write.self) { run in
            try await run.perform { context in
                Note(context: context).text = run.job.text
                // Nothing is saved before the handler returns.
                try expectEqual(jobs.notes(), [])
            }
        }
        worker.handle(Add.self) { run in
            expectEqual(run.attempt, 1)
            return run.job.numbers.reduce(0, +)
        }
        let counts = try await worker.drain()
        expectEqual(counts.done, 2)
        expectEqual(worker.runningCount, 0)
        try expectEqual(jobs.notes(), ["a"])
        try expectEqual(
            jobs.jobs {
                "\($0.name) \($0.state) \($0.attempt) \($0.claimedBy ?? "-") \($0.output ?? "-") \($0.progress)"
            },
            ["Write done 1 - - 1.0", "Add done 1 - 3 1.0"]
        )
        let context = jobs.stack.context()
        try context.performAndWait {
            try expectEqual(
                context.fetch(QueuedJob.request(.done, queue: "sums")).map { try $0.output(of: Add.self) },
                [3]
            )
        }
        try expectEqual(jobs.stack.problems(of: JobStack.model), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a handler that throws is tried again after its back-off, without its changes, until it has failed`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Add(numbers: []))
        let worker = jobs.worker()
        worker.handle(Add.self) { run in
            try await run.perform { context in Note(context: context).text = "attempt \(run.attempt)" }
            expectEqual(run.isLastAttempt, run.attempt == 3)
            throw Failure(description: "no luck in attempt \(run.attempt)")
        }
        for attempt in 1...2 {
            try await expectEqual(worker.drain().retried, 1)
            try expectEqual(
                jobs.jobs {
                    "\($0.state) \($0.attempt) \($0.failedAttempt) \($0.failure ?? "") \($0.claimedBy ?? "-")"
                },
                ["scheduled \(attempt) \(attempt) no luck in attempt \(attempt) -"]
            )
            jobs.clock.advance(by: .seconds(59))
            try await expectEqual(worker.drain().retried, 0)
            jobs.clock.advance(by: .seconds(1))
        }
        try await expectEqual(worker.drain().failed, 1)
        try expectEqual(
            jobs.jobs {
                "\($0.state) \($0.attempt) \($0.failure ?? "") \($0.expiresAt == nil) \($0.finishedAt != nil)"
            },
            ["failed 3 no luck in attempt 3 true true"]
        )
        try expectEqual(jobs.notes(), [])
        // Someone has mended the cause.
        try jobs.change { $0.retry() }
        worker.handle(Add.self) { run in run.attempt }
        try await expectEqual(worker.drain().done, 1)
        try expectEqual(jobs.jobs { "\($0.state) \($0.attempt) \($0.failure ?? "")" }, ["done 1 no luck in attempt 3"])
    }
}
