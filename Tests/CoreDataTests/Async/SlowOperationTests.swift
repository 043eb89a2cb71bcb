import CoreData
import Expectations
import TestSupport
import Testing

/// The process has one log, so these tests run one after the other, and each looks only at its contexts.
@Suite("The slow-operation log", .serialized)
final class SlowOperationTests {
    private let log = Shared<[SlowOperation]>([])

    deinit {
        SlowOperationLog.threshold = nil
        SlowOperationLog.handler = nil
        SlowOperationLog.waitThreshold = .seconds(5)
    }

    /// The operations that were reported for contexts with this name.
    private func told(_ name: String) -> [SlowOperation] { log.current.filter { $0.context.contains("\"\(name)\"") } }

    private func listen(_ threshold: Duration?) {
        let log = log
        SlowOperationLog.handler = { operation in log.update { $0.append(operation) } }
        SlowOperationLog.threshold = threshold
    }

    @Test func `it is off by default`() throws {
        expectEqual(SlowOperationLog.threshold, nil)
        SlowOperationLog.handler = { _ in Issue.record("Nobody asked.") }
        try Stack(.memory).context("quiet").performAndWait {}
    }

    @Test func `the log reports rows, faults and the store's time (user demand 7)`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities((1...100).map { "City \($0)" })
        let id = try stack.storeCity("Porto")
        let context = stack.context("counting slowly")
        listen(.zero)
        try context.performAndWait {
            _ = try context.fetch(citiesByName())
            context.reset()
            _ = try context.get(id, City.self).venues.count
        }
        await context.perform { City(context: context).name = "Faro" }
        let operations = told("counting slowly")
        expectEqual(operations.map(\.kind), [.performAndWait, .perform])
        let first = try require(operations.first)
        expectEqual(first.rows, 101)
        expect(first.faults >= 1)
        expect(first.storeTime > .zero && first.storeTime <= first.duration)
        expectEqual(operations.last?.rows, 0)
        expect(first.description.contains("101 rows"))
    }

    @Test func `it reports how long a block waited for the queue`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context("waiting")
        listen(.zero)
        let gate = Gate()
        let (ends, end) = AsyncStream<Void>.makeStream()
        enqueue(context) { gate.stopOnce() }
        await gate.arrival()
        enqueue(context) { _ = end.yield() }
        let submitted = ContinuousClock.now
        while ContinuousClock.now < submitted + .milliseconds(60) { await Task.yield() }
        gate.open()
        for await _ in ends { break }
        context.performAndWait {}
        let operations = told("waiting")
        expectEqual(operations.map(\.kind), [.perform, .perform, .performAndWait])
        expect(operations[0].duration >= .milliseconds(60))
        expect(operations[1].queueWait >= .milliseconds(60))
    }

    @Test func `it leaves out what is faster than the threshold`() throws {
        listen(.seconds(3600))
        let stack = try Stack(.memory)
        let context = stack.context("fast")
        context.performAndWait { _ = context.hasChanges }
        expect(told("fast").isEmpty)
    }

    @Test func `a block that is waited for is reported by itself`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities(["Porto", "Faro"])
        let (outer, inner) = (stack.context("outer"), stack.context("inner"))
        listen(.zero)
        try outer.performAndWait {
            try inner.performAndWait { _ = try inner.fetch(citiesByName()) }
            // A nested call on the same context is part of the operation that is under way.
            try outer.performAndWait { _ = try outer.fetch(citiesByName()) }
        }
        expectEqual(told("inner").map(\.rows), [2])
        expectEqual(told("outer").map(\.rows), [2])
    }

    @Test func `the environment switches it on, and lines go to standard error`() async throws {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            setenv("STRATA_SLOW_OPERATIONS", "0", 1)
            let stack = try Stack(.memory)
            stack.context("told").performAndWait {}
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("CoreData: slow performAndWait in private-queue context \"told\""), "\(text)")
    }

    @Test func `a program whose standard error is closed goes on`() async {
        await #expect(processExitsWith: .success) {
            let stack = try Stack(.memory)
            close(2)
            SlowOperationLog.threshold = .zero
            stack.context("untold").performAndWait {}
        }
    }

    // MARK: - Waiting for the main queue

    /// Keeps the main queue busy until `work`, which waits for it, has been reported.
    private func waitInVain(named name: String, _ work: () throws -> Void) throws {
        let (isBusy, isTold) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let log = log
        SlowOperationLog.handler = { operation in
            guard operation.context.contains("\"\(name)\"") else { return }
            log.update { $0.append(operation) }
            isTold.signal()
        }
        SlowOperationLog.waitThreshold = .milliseconds(20)
        DispatchQueue.main.async {
            isBusy.signal()
            expectEqual(isTold.wait(timeout: .now() + 60), .success)
        }
        isBusy.wait()
        try work()
    }

    private func mainContext(_ stack: Stack, _ name: String) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        context.name = name
        return context
    }

    @Test func `a wait for the main queue is reported after 5 seconds by default, with the log off`() {
        expectEqual(SlowOperationLog.waitThreshold, .seconds(5))
        expectEqual(SlowOperationLog.threshold, nil)
    }

    @Test func `a wait for a context of the main queue that no thread serves is reported once, while it lasts`() throws
    {
        let stack = try Stack(.memory)
        let context = mainContext(stack, "unserved")
        let worker = stack.context("worker")
        try waitInVain(named: "unserved") { worker.performAndWait { context.performAndWait {} } }
        let operation = try require(told("unserved").first)
        expectEqual(told("unserved").count, 1)
        expectEqual(operation.kind, .waiting)
        expect(operation.queueWait >= .milliseconds(20))
        expectEqual(operation.waiter?.contains("private-queue context \"worker\""), true)
        expect(operation.description.contains("has waited for main-queue context \"unserved\""))
    }

    @Test func `a child that asks a context of the main queue is reported`() throws {
        let stack = try Stack(.memory)
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = mainContext(stack, "unserved parent")
        try waitInVain(named: "unserved parent") { try child.performAndWait { _ = try child.fetch(citiesByName()) } }
        expectEqual(told("unserved parent").map(\.kind), [.waiting])
    }

    @Test func `a wait that ends in time is not reported`() throws {
        let stack = try Stack(.memory)
        let context = mainContext(stack, "served")
        SlowOperationLog.handler = { [log] operation in log.update { $0.append(operation) } }
        SlowOperationLog.waitThreshold = .seconds(3600)
        context.performAndWait {}
        SlowOperationLog.waitThreshold = nil
        context.performAndWait {}
        expect(told("served").isEmpty)
    }
}
