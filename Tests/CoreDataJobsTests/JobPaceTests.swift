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

    /// Counts the fetches of the coordinator.
    private struct Fetches: CoreDataInstrument {
        let count = Shared(0)

        func record(_ event: CoreDataEvent) { if event.kind == .fetch { count.update { $0 += 1 } } }
    }

    @Test(arguments: StoreKind.allCases)
    func `quick jobs that wait in a queue cost less than a look at the store each`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let context = jobs.stack.context()
        try context.performAndWait {
            for number in 0..<200 { try context.enqueue(Write(text: "\(number)")) }
            try context.save()
        }
        let worker = jobs.worker("one", ["default": 8])
        worker.handle(Write.self) { _ in }
        let fetches = Fetches()
        jobs.stack.coordinator.instrument = fetches
        let start = ContinuousClock.now
        try await expectEqual(worker.drain(atOnce: 8).done, 200)
        // A look at everything is six fetches, at most each 50 ms.
        let looks = Int((ContinuousClock.now - start) / .milliseconds(50)) + 2
        expect(fetches.count.current < 150 + looks * 6, "\(fetches.count.current) \(looks)")
    }

    @Test(arguments: StoreKind.allCases)
    func `a request to cancel is noticed soon, though many jobs end meanwhile`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        try jobs.enqueue(Add(numbers: []))
        for number in 0..<20 { try jobs.enqueue(Write(text: "\(number)")) }
        let worker = jobs.worker("one", ["default": 2, "sums": 1])
        let (begun, go) = (Steps(), Steps())
        worker.handle(Add.self) { _ in
            begun.pass()
            try await Task.sleep(for: .seconds(60))
            return 0
        }
        worker.handle(Write.self) { _ in await go.wait() }
        let draining = Task { try await worker.drain(atOnce: 3) }
        await begun.wait()
        try jobs.change { if $0.queue == "sums" { $0.cancel() } }
        go.pass()
        let start = ContinuousClock.now
        let counts = try await draining.value
        expectEqual(counts.cancelled, 1)
        expectEqual(counts.done, 20)
        expect(.now - start < .seconds(30))
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
