import CoreData
import Dispatch
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataEssentials

/// Blocks that their callers wait for, in contexts whose queue nothing has needed yet.
@Suite("Contexts without a queue")
struct UnmadeQueueTests {
    @Test(arguments: StoreKind.allCases)
    func `a context in which callers wait for their blocks makes no queue`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let venue = Venue(context: context)
            venue.name = "Coliseu"
            try context.save()
            // A nested block runs directly.
            context.performAndWait { venue.name = "Rivoli" }
            try context.save()
        }
        expectEqual(context.performAndWait { context.registeredObjects.count }, 0)
        expect(!context.contextQueue.isMade)
    }

    @Test func `an error ends the turn`() {
        let context = NSManagedObjectContext(.privateQueue)
        expectThrows(CocoaError.self) { try context.performAndWait { throw CocoaError(.coreData) } }
        expectEqual(context.performAndWait { 1 }, 1)
        expect(!context.contextQueue.isMade)
    }

    @Test func `what is submitted meanwhile runs after the block, in its order`() {
        let context = NSManagedObjectContext(.privateQueue)
        let order = Locked<[Int]>([])
        let done = DispatchSemaphore(value: 0)
        context.performAndWait {
            for number in 1...3 {
                context.perform {
                    order.withLock { $0.append(number) }
                    if number == 3 { done.signal() }
                }
            }
            expect(context.contextQueue.isMade)
            // The queue is suspended, so no block can have begun.
            usleep(20_000)
            order.withLock { $0.append(0) }
        }
        done.wait()
        expectEqual(order.withLock { $0 }, [0, 1, 2, 3])
        // The queue is there from now on, and serves callers that wait as well.
        context.performAndWait { order.withLock { $0.append(4) } }
        expectEqual(order.withLock { $0 }, [0, 1, 2, 3, 4])
    }

    @Test func `of many threads that wait, one at a time is in the scope`() {
        for _ in 0..<50 {
            let context = NSManagedObjectContext(.privateQueue)
            // Two blocks at once would lose an addition, or trap.
            nonisolated(unsafe) var (count, inside) = (0, 0)
            DispatchQueue.concurrentPerform(iterations: 8) { number in
                for _ in 0..<20 {
                    context.performAndWait {
                        inside += 1
                        precondition(inside == 1)
                        count += 1
                        inside -= 1
                    }
                    if number == 7 { context.perform { count += 1 } }
                }
            }
            context.performAndWait { expectEqual(count, 8 * 20 + 20) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a child reads from a parent whose caller waits for a block, once that has ended`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let parent = stack.context()
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = parent
        let (entered, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let found = Locked<Int?>(nil)
        DispatchQueue.global().async {
            entered.wait()
            let count = child.performAndWait { try? child.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
            found.withLock { $0 = count }
            done.signal()
        }
        parent.performAndWait {
            entered.signal()
            usleep(20_000)
            expect(found.withLock { $0 } == nil)
            _ = Venue(context: parent)
        }
        done.wait()
        expectEqual(found.withLock { $0 }, 1)
    }
}
