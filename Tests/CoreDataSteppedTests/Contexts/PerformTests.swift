import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials

/// Submits a block without waiting: in asynchronous code `perform` alone means the form that is awaited.
private func submit(_ context: NSManagedObjectContext, _ block: @escaping @Sendable () -> Void) {
    context.perform(block)
}

@Suite("Blocks of a context")
struct PerformTests {
    let stack: Stack

    init() throws { stack = try Stack(.memory) }

    /// A way into the scope of a context.
    enum Entrance: CaseIterable, Sendable {
        case block, blockAhead, visitor

        func enter(_ gate: ScopeGate) -> Bool {
            switch self {
            case .block:
                gate.enter()
                return true
            case .blockAhead: return gate.enterAhead()
            case .visitor: return gate.enter(Visit { _ in })
            }
        }
    }

    @Test(arguments: Entrance.allCases)
    func `whoever is in a scope keeps the glances of other threads out, and waits for one that came before`(
        _ entrance: Entrance
    ) throws {
        let gate = ScopeGate()
        for _ in 0..<3 {
            expect(entrance.enter(gate))
            expect(!gate.enterForGlance() && !gate.enterAhead())
            gate.leave()
        }
        let (isAtGate, isOver) = (Shared(false), Shared(false))
        expect(gate.enterForGlance())
        let thread = onThread {
            isAtGate.update { $0 = true }
            expect(entrance.enter(gate))
            expect(isOver.current)
            expect(!gate.enterForGlance())
            gate.leave()
        }
        try wait { isAtGate.current }
        for _ in 0..<1000 { sched_yield() }
        isOver.update { $0 = true }
        gate.leaveAfterGlance()
        try thread.join()
        expect(gate.enterForGlance())
        gate.leaveAfterGlance()
        // A block that was submitted keeps them out as well, so that its thread sees what it has done.
        gate.awaitBlock()
        expect(!gate.enterForGlance() && !gate.enterAhead())
        gate.endBlock()
        expect(gate.enterForGlance())
        gate.leaveAfterGlance()
    }

    @Test func `the concurrency type is fixed when the context is made (CS-1)`() {
        expectEqual(NSManagedObjectContext(.privateQueue).concurrencyType, .privateQueueConcurrencyType)
        expectEqual(NSManagedObjectContext(.mainQueue).concurrencyType, .mainQueueConcurrencyType)
        expect(
            NSManagedObjectContext(concurrencyType: .mainQueueConcurrencyType).concurrencyType
                == .mainQueueConcurrencyType
        )
    }

    @Test func `perform never runs its block inline, not even inside the scope (CS-3)`() {
        let context = stack.context()
        let order = Shared<[Int]>([])
        context.performAndWait {
            context.perform { order.update { $0.append(2) } }
            order.update { $0.append(1) }
        }
        context.performAndWait {}
        expectEqual(order.current, [1, 2])
    }

    @Test func `perform runs no block inline for a context of the main queue on the main thread either (CS-3)`() async {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        let order = Shared<[String]>([])
        await MainActor.run {
            submit(context) { order.update { $0.append("block") } }
            order.update { $0.append("caller") }
        }
        await context.perform(schedule: .enqueued) {}
        expectEqual(order.current, ["caller", "block"])
    }

    @Test func `blocks run in the order of submission, and performAndWait waits for those before it (CS-5, 6)`() {
        let context = stack.context()
        let order = Shared<[Int]>([])
        for index in 0..<200 { context.perform { order.update { $0.append(index) } } }
        context.performAndWait { order.update { $0.append(200) } }
        expectEqual(order.current, Array(0...200))
    }

    @Test func `performAndWait runs inline inside the scope, at any depth (CS-7)`() {
        let context = stack.context()
        let depth = context.performAndWait {
            context.performAndWait { context.performAndWait { context.registeredObjects.count + 3 } }
        }
        expectEqual(depth, 3)
        let done = DispatchSemaphore(value: 0)
        context.perform {
            context.performAndWait { _ = context.hasChanges }
            done.signal()
        }
        expectEqual(done.wait(timeout: .now() + 10), .success)
    }

    @Test func `a main-queue context is used on the main queue, with or without perform (CS-9, 10, 11)`() async {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        await MainActor.run {
            expect(!context.hasChanges)
            context.performAndWait { expect(context.registeredObjects.isEmpty) }
        }
        let other = stack.context()
        await withCheckedContinuation { continuation in
            other.perform {
                context.perform {
                    dispatchPrecondition(condition: .onQueue(.main))
                    continuation.resume()
                }
            }
        }
    }

    @Test
    func `a main-queue context stays usable inside another one's performAndWait on the main queue (user demand 2)`()
        async
    {
        let main = NSManagedObjectContext(.mainQueue)
        main.persistentStoreCoordinator = stack.coordinator
        let other = stack.context()
        await MainActor.run {
            other.performAndWait {
                expect(!main.hasChanges)
                main.performAndWait { expect(!main.hasChanges && !other.hasChanges) }
            }
        }
    }

    @Test func `a block that waits for the main queue stays inside its own scope there (user demand 2)`() async {
        let main = NSManagedObjectContext(.mainQueue)
        main.persistentStoreCoordinator = stack.coordinator
        let other = stack.context()
        await withCheckedContinuation { continuation in
            other.perform {
                main.performAndWait { expect(!main.hasChanges && !other.hasChanges) }
                expect(!other.hasChanges)
                continuation.resume()
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `perform ends an event: objects-did-change follows the block, on that queue (CS-12)`(_ kind: StoreKind) throws
    {
        let stack = try Stack(kind)
        let context = stack.context()
        let inBlock = Shared(false)
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context) {
            _ = context.hasChanges
            return inBlock.current ? "inside" : "after"
        }
        context.perform {
            inBlock.update { $0 = true }
            City(context: context).name = "Braga"
            inBlock.update { $0 = false }
        }
        context.performAndWait {}
        expectEqual(log.entries.map(\.probed), ["after"])
        expectEqual(log.entries.first?.objects(NSInsertedObjectsKey).count, 1)
    }

    @Test func `performAndWait does not end the event: the next perform, a save or processPendingChanges does (CS-13)`()
        throws
    {
        let context = stack.context()
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        context.performAndWait { City(context: context).name = "Braga" }
        expect(log.entries.isEmpty)
        context.perform {}
        context.performAndWait {}
        expectEqual(log.entries.count, 1)
        context.performAndWait { City(context: context).name = "Faro" }
        context.performAndWait { expectEqual(log.entries.count, 1) }
        context.performAndWait { context.processPendingChanges() }
        expectEqual(log.entries.count, 2)
        context.performAndWait { City(context: context).name = "Lagos" }
        try context.performAndWait { try context.save() }
        expectEqual(log.entries.map { $0.objects(NSInsertedObjectsKey).count }, [1, 1, 1])
    }

    @Test func `values and errors come back, and the queue stays usable (CS-15, 18)`() async throws {
        struct Expected: Error, Equatable {}
        let context = stack.context()
        await expectEqual(context.perform { 7 }, 7)
        expectEqual(context.performAndWait { 8 }, 8)
        await expectThrows(Expected.self) { try await context.perform { throw Expected() } }
        expectThrows(Expected.self) { try context.performAndWait { throw Expected() } }
        await expectEqual(context.perform(schedule: .enqueued) { 9 }, 9)
    }

    @Test func `an asynchronous perform is one event too (CS-15)`() async {
        let context = stack.context()
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        await context.perform { City(context: context).name = "Braga" }
        expectEqual(log.entries.count, 1)
    }

    @Test @MainActor func `an immediate block runs at once inside the scope, an enqueued one in turn (CS-16, 17)`()
        async
    {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        let order = Shared<[String]>([])
        submit(context) { order.update { $0.append("submitted before") } }
        await context.perform(schedule: .immediate) { order.update { $0.append("immediate") } }
        await context.perform(schedule: .enqueued) { order.update { $0.append("enqueued") } }
        expectEqual(order.current, ["immediate", "submitted before", "enqueued"])
    }

    @Test func `outside of the scope an immediate block is enqueued like any other (CS-16)`() async {
        let context = stack.context()
        let order = Shared<[String]>([])
        for number in 0..<100 { submit(context) { order.update { $0.append("\(number)") } } }
        await context.perform(schedule: .immediate) { order.update { $0.append("immediate") } }
        expectEqual(order.current, (0..<100).map { "\($0)" } + ["immediate"])
    }

    @Test func `the coordinator's perform queues, and its waiting form is re-entrant (CS-19)`() async throws {
        let coordinator = stack.coordinator
        let nested = coordinator.performAndWait { coordinator.performAndWait { coordinator.persistentStores.count } }
        expectEqual(nested, 1)
        await expectEqual(coordinator.perform { coordinator.performAndWait { 2 } }, 2)
        struct Expected: Error {}
        await expectThrows(Expected.self) { try await coordinator.perform { throw Expected() } }
    }

    @Test func `the coordinator's blocks run one at a time, each thread's in its order (CS-19)`() async {
        let coordinator = stack.coordinator
        let inside = Shared((now: 0, most: 0))
        let order = Shared<[[Int]]>(Array(repeating: [], count: 4))
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    for index in 0..<100 {
                        let block: @Sendable () -> Void = {
                            inside.update { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                            order.update { $0[thread].append(index) }
                            inside.update { $0.now -= 1 }
                        }
                        if index % 3 == 0 {
                            coordinator.performAndWait(block)
                        } else {
                            _ = await coordinator.perform {
                                block()
                                return index
                            }
                        }
                    }
                }
            }
        }
        coordinator.performAndWait {}
        expectEqual(inside.current.most, 1)
        expect(order.current.allSatisfy { $0 == Array(0..<100) })
    }

    @Test func `the name is nil by default and stored as set, from any thread (CS-22)`() async {
        let context = NSManagedObjectContext(.privateQueue)
        expectEqual(context.name, nil)
        await Task.detached { context.name = "importer" }.value
        expectEqual(context.name, "importer")
    }

    @Test func `an error thrown inside a block leaves the pending changes as they were (CS-23)`() {
        struct Expected: Error {}
        let context = stack.context()
        expectThrows(Expected.self) {
            try context.performAndWait {
                City(context: context).name = "Braga"
                throw Expected()
            }
        }
        context.performAndWait { expectEqual(context.insertedObjects.count, 1) }
    }

    @Test func `a submitted block keeps its context alive until it has run (CS-24)`() {
        let done = DispatchSemaphore(value: 0)
        let gate = DispatchSemaphore(value: 0)
        weak var weakContext: NSManagedObjectContext?
        do {
            let context = stack.context()
            weakContext = context
            context.perform { [unowned context] in
                gate.wait()
                expect(!context.hasChanges)
                done.signal()
            }
        }
        gate.signal()
        expectEqual(done.wait(timeout: .now() + 10), .success)
        while weakContext != nil { sched_yield() }
    }

    @Test func `contexts of many tasks share the threads, and all their blocks run`() async {
        let stack = stack
        let total = await withTaskGroup(of: Int.self) { group in
            for index in 0..<200 {
                group.addTask {
                    let context = stack.context("request \(index)")
                    return await context.perform { context.registeredObjects.count + 1 }
                }
            }
            return await group.reduce(0, +)
        }
        expectEqual(total, 200)
    }
}
