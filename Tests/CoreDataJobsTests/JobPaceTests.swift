import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataJobs

/// How much a worker asks the store, and how many jobs it runs at once.
@Suite("The pace of a worker")
struct JobPaceTests {
    @Test(arguments: StoreKind.allCases)
    func `a drain runs as many jobs at once as it may, and those that they enqueue`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        for text in ["a", "b", "c"] { try jobs.enqueue(Write(text: text)) }
        let worker = jobs.worker("one", ["default": 3])
        let (begun, most) = (Steps(), Shared(0))
        worker.handle(Write.self) { run in
            if run.job.text != "d" {
                // None of these ends before all have begun.
                begun.pass()
                await begun.wait(for: 3)
            }
            most.update { $0 = max($0, worker.runningCount) }
            try await run.perform { context in
                Note(context: context).text = run.job.text
                if run.job.text == "a" { try context.enqueue(Write(text: "d")) }
            }
        }
        try await expectEqual(worker.drain(atOnce: 8).done, 4)
        expectEqual(most.current, 3)
        try expectEqual(jobs.notes(), ["a", "b", "c", "d"])
        try expectEqual(jobs.jobs(JobStack.state), ["done", "done", "done", "done"])

        for text in ["e", "f"] { try jobs.enqueue(Write(text: text)) }
        worker.handle(Write.self) { _ in expectEqual(worker.runningCount, 1) }
        try await expectEqual(worker.drain().done, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a cancelled drain throws when its runs have ended`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Write(text: "a"))
        try jobs.enqueue(Write(text: "b"))
        let worker = jobs.worker("one", ["default": 1])
        let (begun, go) = (Steps(), Steps())
        worker.handle(Write.self) { run in
            begun.pass()
            await go.wait()
            try await run.perform { context in Note(context: context).text = run.job.text }
        }
        let draining = Task { try await worker.drain(atOnce: 2) }
        await begun.wait()
        draining.cancel()
        go.pass()
        await expectThrows(CancellationError.self) { try await draining.value }
        expectEqual(worker.runningCount, 0)
        try expectEqual(jobs.notes(), ["a"])
        try expectEqual(jobs.jobs(JobStack.state), ["done", "ready"])
    }
}
