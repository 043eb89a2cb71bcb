import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Queues of contexts")
struct QueueTests {
    @Test func `blocks of a private queue never run on the main thread (CS-4)`() async throws {
        let context = try Stack(.memory).context()
        let (ends, end) = AsyncStream<Bool>.makeStream()
        await MainActor.run {
            for _ in 0..<200 { enqueue(context) { _ = end.yield(Thread.isMainThread) } }
        }
        var count = 0
        for await isMain in ends {
            expect(!isMain)
            count += 1
            if count == 200 { break }
        }
        let awaited = await Task { @MainActor in await context.perform { Thread.isMainThread } }.value
        expect(!awaited)
    }

    @Test func `blocks that many threads submit run one at a time, each thread's in its order (CS-5, 6)`() async throws
    {
        let context = try Stack(.memory).context()
        let inside = Shared((now: 0, most: 0))
        let order = Shared<[[Int]]>(Array(repeating: [], count: 8))
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<8 {
                group.addTask {
                    for index in 0..<200 {
                        let block: @Sendable () -> Void = {
                            inside.update { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                            order.update { $0[thread].append(index) }
                            inside.update { $0.now -= 1 }
                        }
                        if index % 3 == 0 { context.performAndWait(block) } else { enqueue(context, block) }
                    }
                }
            }
        }
        context.performAndWait {}
        expectEqual(inside.current.most, 1)
        expect(order.current.allSatisfy { $0 == Array(0..<200) })
    }

    @Test(arguments: StoreKind.allCases)
    func `on the main queue without perform an event ends with a fetch, a save or processPendingChanges (CS-14)`(
        _ kind: StoreKind
    ) async throws {
        let stack = try Stack(kind)
        let log = try await MainActor.run {
            let context = NSManagedObjectContext(.mainQueue)
            context.persistentStoreCoordinator = stack.coordinator
            let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
            City(context: context).name = "Porto"
            expect(log.entries.isEmpty)
            context.processPendingChanges()
            expectEqual(log.entries.count, 1)
            City(context: context).name = "Faro"
            try expectEqual(context.fetch(citiesByName()).count, 2)
            expectEqual(log.entries.count, 2)
            City(context: context).name = "Braga"
            try context.save()
            return log
        }
        expectEqual(log.entries.count, 3)
    }
}
