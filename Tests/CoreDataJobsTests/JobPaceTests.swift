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

    /// Counts the fetches of the coordinator, or other events.
    private struct Events: CoreDataInstrument {
        var kind = CoreDataEvent.Kind.fetch
        let count = Shared(0)

        func record(_ event: CoreDataEvent) { if event.kind == kind { count.update { $0 += 1 } } }
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
        let fetches = Events()
        jobs.stack.coordinator.instrument = fetches
        let start = ContinuousClock.now
        try await expectEqual(worker.drain(atOnce: 8).done, 200)
        // A look at everything is six fetches, at most each 50 ms.
        let looks = Int((ContinuousClock.now - start) / .milliseconds(50)) + 2
        expect(fetches.count.current < 150 + looks * 6, "\(fetches.count.current) \(looks)")
    }

    @Test(arguments: StoreKind.allCases)
    func `jobs without effects in the store that end at once are ended with few saves, each with its output`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try JobStack(kind)
        for number in 0..<40 {
            try jobs.enqueue(Add(numbers: [number])) { if number == 7 { $0.keep = .zero } }
        }
        let worker = jobs.worker("one", ["sums": 40])
        let (begun, go) = (Steps(), Steps())
        worker.handle(Add.self) { run in
            if run.job.numbers == [3] {
                // This one has read, and changed nothing.
                _ = try await run.perform { try $0.count(for: QueuedJob.request()) }
            }
            if run.job.numbers == [4] { try await run.perform { context in Note(context: context).text = "four" } }
            begun.pass()
            await begun.wait(for: 40)
            await go.wait()
            if run.job.numbers == [5] { throw Failure(description: "five") }
            return run.job.numbers[0] * 2
        }
        let draining = Task { try await worker.drain(atOnce: 40) }
        await begun.wait(for: 40)
        // One job is another worker's now, and one is gone.
        try jobs.change { job in
            if job.payload.contains("[11]") { job.claimedBy = "other" }
            if job.payload.contains("[12]") { job.managedObjectContext?.delete(job) }
        }
        go.pass()
        let counts = try await draining.value
        expectEqual([counts.done, counts.retried, counts.lost], [37, 1, 2])
        let states = try jobs.jobs { "\($0.payload) \($0.state) \($0.output ?? "-") \($0.progress)" }
        expectEqual(states.count, 38)
        expectEqual(states.count { $0.contains("done") }, 36)
        expect(states.contains { $0.contains("[20]") && $0.contains("done 40 1.0") }, "\(states)")
        expect(states.contains { $0.contains("[5]") && $0.contains("scheduled -") }, "\(states)")
        expect(states.contains { $0.contains("[11]") && $0.contains("running -") }, "\(states)")
        try expectEqual(jobs.notes(), ["four"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the ends of many jobs without effects are fewer saves than jobs`(_ kind: StoreKind) async throws {
        let jobs = try JobStack(kind)
        let context = jobs.stack.context()
        try context.performAndWait {
            for number in 0..<200 { try context.enqueue(Write(text: "\(number)")) }
            try context.save()
        }
        let worker = jobs.worker("one", ["default": 50])
        worker.handle(Write.self) { _ in }
        let saves = Events(kind: .save)
        jobs.stack.coordinator.instrument = saves
        try await expectEqual(worker.drain(atOnce: 50).done, 200)
        expect((4..<120).contains(saves.count.current), "\(saves.count.current)")
        try expectEqual(Set(jobs.jobs(JobStack.state)), ["done"])
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
