import CoreData
import TestSupport
import Testing

/// Submits a block without waiting: in asynchronous code `perform` alone means the form that is awaited.
private func submit(_ context: NSManagedObjectContext, _ block: @escaping @Sendable () -> Void) {
    context.perform(block)
}

@Suite("Blocks of a context")
struct PerformTests {
    let stack: Stack

    init() throws { stack = try Stack(.memory) }

    @Test func `CS-1 the concurrency type is fixed when the context is made`() {
        #expect(NSManagedObjectContext(.privateQueue).concurrencyType == .privateQueueConcurrencyType)
        #expect(NSManagedObjectContext(.mainQueue).concurrencyType == .mainQueueConcurrencyType)
        #expect(
            NSManagedObjectContext(concurrencyType: .mainQueueConcurrencyType).concurrencyType
                == .mainQueueConcurrencyType
        )
    }

    @Test func `CS-3 perform never runs its block inline, not even inside the scope`() {
        let context = stack.context()
        let order = Shared<[Int]>([])
        context.performAndWait {
            context.perform { order.update { $0.append(2) } }
            order.update { $0.append(1) }
        }
        context.performAndWait {}
        #expect(order.current == [1, 2])
    }

    @Test func `CS-3 nor does it for a context of the main queue on the main thread`() async {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        let order = Shared<[String]>([])
        await MainActor.run {
            submit(context) { order.update { $0.append("block") } }
            order.update { $0.append("caller") }
        }
        await context.perform(schedule: .enqueued) {}
        #expect(order.current == ["caller", "block"])
    }

    @Test func `CS-5, 6 blocks run in the order of submission, and performAndWait waits for those before it`() {
        let context = stack.context()
        let order = Shared<[Int]>([])
        for index in 0..<200 { context.perform { order.update { $0.append(index) } } }
        context.performAndWait { order.update { $0.append(200) } }
        #expect(order.current == Array(0...200))
    }

    @Test func `CS-7 performAndWait runs inline inside the scope, at any depth`() {
        let context = stack.context()
        let depth = context.performAndWait {
            context.performAndWait { context.performAndWait { context.registeredObjects.count + 3 } }
        }
        #expect(depth == 3)
        let done = DispatchSemaphore(value: 0)
        context.perform {
            context.performAndWait { _ = context.hasChanges }
            done.signal()
        }
        #expect(done.wait(timeout: .now() + 10) == .success)
    }

    @Test func `CS-9, 10, 11 a main-queue context is used on the main queue, with or without perform`() async {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        await MainActor.run {
            #expect(!context.hasChanges)
            context.performAndWait { #expect(context.registeredObjects.isEmpty) }
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
    func `user demand 2: a main-queue context stays usable inside another one's performAndWait on the main queue`()
        async
    {
        let main = NSManagedObjectContext(.mainQueue)
        main.persistentStoreCoordinator = stack.coordinator
        let other = stack.context()
        await MainActor.run {
            other.performAndWait {
                #expect(!main.hasChanges)
                main.performAndWait { #expect(!main.hasChanges && !other.hasChanges) }
            }
        }
    }

    @Test func `user demand 2: a block that waits for the main queue stays inside its own scope there`() async {
        let main = NSManagedObjectContext(.mainQueue)
        main.persistentStoreCoordinator = stack.coordinator
        let other = stack.context()
        await withCheckedContinuation { continuation in
            other.perform {
                main.performAndWait { #expect(!main.hasChanges && !other.hasChanges) }
                #expect(!other.hasChanges)
                continuation.resume()
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `CS-12 perform ends an event: objects-did-change follows the block, on that queue`(_ kind: StoreKind) throws {
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
        #expect(log.entries.map(\.probed) == ["after"])
        #expect(log.entries.first?.objects(NSInsertedObjectsKey).count == 1)
    }

    @Test func `CS-13 performAndWait does not end the event: the next perform, a save or processPendingChanges does`()
        throws
    {
        let context = stack.context()
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        context.performAndWait { City(context: context).name = "Braga" }
        #expect(log.entries.isEmpty)
        context.perform {}
        context.performAndWait {}
        #expect(log.entries.count == 1)
        context.performAndWait { City(context: context).name = "Faro" }
        context.performAndWait { #expect(log.entries.count == 1) }
        context.performAndWait { context.processPendingChanges() }
        #expect(log.entries.count == 2)
        context.performAndWait { City(context: context).name = "Lagos" }
        try context.performAndWait { try context.save() }
        #expect(log.entries.map { $0.objects(NSInsertedObjectsKey).count } == [1, 1, 1])
    }

    @Test func `CS-15, 18 values and errors come back, and the queue stays usable`() async throws {
        struct Expected: Error, Equatable {}
        let context = stack.context()
        #expect(await context.perform { 7 } == 7)
        #expect(context.performAndWait { 8 } == 8)
        await #expect(throws: Expected.self) { try await context.perform { throw Expected() } }
        #expect(throws: Expected.self) { try context.performAndWait { throw Expected() } }
        #expect(await context.perform(schedule: .enqueued) { 9 } == 9)
    }

    @Test func `CS-15 an asynchronous perform is one event too`() async {
        let context = stack.context()
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        await context.perform { City(context: context).name = "Braga" }
        #expect(log.entries.count == 1)
    }

    @Test @MainActor func `CS-16, 17 an immediate block runs at once inside the scope, an enqueued one in turn`() async
    {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        let order = Shared<[String]>([])
        submit(context) { order.update { $0.append("submitted before") } }
        await context.perform(schedule: .immediate) { order.update { $0.append("immediate") } }
        await context.perform(schedule: .enqueued) { order.update { $0.append("enqueued") } }
        #expect(order.current == ["immediate", "submitted before", "enqueued"])
    }

    @Test func `CS-16 outside of the scope an immediate block is enqueued like any other`() async {
        let context = stack.context()
        let order = Shared<[String]>([])
        for number in 0..<100 { submit(context) { order.update { $0.append("\(number)") } } }
        await context.perform(schedule: .immediate) { order.update { $0.append("immediate") } }
        #expect(order.current == (0..<100).map { "\($0)" } + ["immediate"])
    }

    @Test func `CS-19 the coordinator's perform queues, and its waiting form is re-entrant`() async throws {
        let coordinator = stack.coordinator
        let nested = coordinator.performAndWait { coordinator.performAndWait { coordinator.persistentStores.count } }
        #expect(nested == 1)
        #expect(await coordinator.perform { coordinator.performAndWait { 2 } } == 2)
        struct Expected: Error {}
        await #expect(throws: Expected.self) { try await coordinator.perform { throw Expected() } }
    }

    @Test func `CS-19 the coordinator's blocks run one at a time, each thread's in its order`() async {
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
        #expect(inside.current.most == 1)
        #expect(order.current.allSatisfy { $0 == Array(0..<100) })
    }

    @Test func `CS-22 the name is nil by default and stored as set, from any thread`() async {
        let context = NSManagedObjectContext(.privateQueue)
        #expect(context.name == nil)
        await Task.detached { context.name = "importer" }.value
        #expect(context.name == "importer")
    }

    @Test func `CS-23 an error thrown inside a block leaves the pending changes as they were`() {
        struct Expected: Error {}
        let context = stack.context()
        #expect(throws: Expected.self) {
            try context.performAndWait {
                City(context: context).name = "Braga"
                throw Expected()
            }
        }
        context.performAndWait { #expect(context.insertedObjects.count == 1) }
    }

    @Test func `CS-24 a submitted block keeps its context alive until it has run`() {
        let done = DispatchSemaphore(value: 0)
        let gate = DispatchSemaphore(value: 0)
        weak var weakContext: NSManagedObjectContext?
        do {
            let context = stack.context()
            weakContext = context
            context.perform { [unowned context] in
                gate.wait()
                #expect(!context.hasChanges)
                done.signal()
            }
        }
        gate.signal()
        #expect(done.wait(timeout: .now() + 10) == .success)
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
        #expect(total == 200)
    }
}
