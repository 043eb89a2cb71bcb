import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration

@Suite("Deadlocks", .timeLimit(.minutes(5)))
struct DeadlockTests {
    // MARK: - The decision

    private final class Party {}

    /// The way that leads from `goal` back to `held`, as positions.
    private func way(_ parties: [Party], from goal: Int, backTo held: [Int], _ waits: [Int: Int]) -> [Int]? {
        let nodes = parties.map { WaitGraph.Node($0) }
        let next = Dictionary(uniqueKeysWithValues: waits.map { (nodes[$0.key], nodes[$0.value]) })
        return WaitGraph.cycle(from: nodes[goal], backTo: held.map { nodes[$0] }) { next[$0] }?
            .compactMap { nodes.firstIndex(of: $0) }
    }

    @Test func `only a way that leads back is a deadlock`() {
        let parties = (0..<5).map { _ in Party() }
        expectEqual(way(parties, from: 1, backTo: [0], [:]), nil)
        expectEqual(way(parties, from: 1, backTo: [0], [1: 2, 2: 3]), nil)
        expectEqual(way(parties, from: 1, backTo: [0], [1: 0]), [1])
        expectEqual(way(parties, from: 1, backTo: [0], [1: 2, 2: 3, 3: 0]), [1, 2, 3])
        expectEqual(way(parties, from: 1, backTo: [4, 3, 0], [1: 2, 2: 3, 3: 0]), [1, 2])
        expectEqual(way(parties, from: 1, backTo: [0], [1: 2, 2: 1]), nil)
        expectEqual(way(parties, from: 0, backTo: [0], [:]), [])
    }

    // MARK: - Rings

    private func text(_ result: ExitTest.Result?) -> String {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }

    @Test(.timeLimit(.minutes(1)))
    func `two contexts that wait for each other stop the program with the chain spelled out (user demand 3)`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (first, second) = (stack.context("first"), stack.context("second"))
            let (firstIsIn, secondIsIn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            enqueue(first) {
                firstIsIn.signal()
                secondIsIn.wait()
                second.performAndWait {}
            }
            second.performAndWait {
                secondIsIn.signal()
                firstIsIn.wait()
                first.performAndWait {}
            }
        }
        let text = text(result)
        expect(text.contains("CoreData: deadlock: "), "\(text)")
        expect(text.contains("private-queue context \"first\" waits for private-queue context \"second\""), "\(text)")
        expect(text.contains("private-queue context \"second\" waits for private-queue context \"first\""), "\(text)")
    }

    @Test(.timeLimit(.minutes(1)))
    func `a ring of three contexts and a coordinator is found too`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let coordinator = stack.coordinator
            coordinator.name = "archive"
            let contexts = (1...3).map { stack.context("number \($0)") }
            let isIn = (0..<4).map { _ in DispatchSemaphore(value: 0) }
            let go = (0..<4).map { _ in DispatchSemaphore(value: 0) }
            for index in 0..<3 {
                enqueue(contexts[index]) {
                    isIn[index].signal()
                    go[index].wait()
                    if index < 2 { contexts[index + 1].performAndWait {} } else { coordinator.performAndWait {} }
                }
            }
            DispatchQueue.global().async {
                coordinator.performAndWait {
                    isIn[3].signal()
                    go[3].wait()
                    contexts[0].performAndWait {}
                }
            }
            for semaphore in isIn { semaphore.wait() }
            for semaphore in go { semaphore.signal() }
            DispatchSemaphore(value: 0).wait()
        }
        let text = text(result)
        for link in ["number 1", "number 2", "number 3", "coordinator \"archive\""] {
            expect(text.contains(link), "\(text)")
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a wait from the main queue for a context that waits for the main queue is found`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let worker = stack.context("worker")
            let main = NSManagedObjectContext(.mainQueue)
            main.persistentStoreCoordinator = stack.coordinator
            let (workerIsIn, mainIsIn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            enqueue(worker) {
                workerIsIn.signal()
                mainIsIn.wait()
                main.performAndWait {}
            }
            await MainActor.run {
                mainIsIn.signal()
                workerIsIn.wait()
                worker.performAndWait {}
            }
        }
        expect(text(result).contains("waits for the main queue") || text(result).contains("main-queue context"))
    }

    @Test(.timeLimit(.minutes(1)))
    func `a ring is found through a block that went in and out of a scope`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (first, second, third) = (stack.context("first"), stack.context("second"), stack.context("third"))
            let (isIn, thirdIsIn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            enqueue(third) {
                thirdIsIn.signal()
                isIn.wait()
                second.performAndWait {}
            }
            first.performAndWait {
                second.performAndWait {
                    first.performAndWait {
                        thirdIsIn.wait()
                        isIn.signal()
                        third.performAndWait {}
                    }
                }
            }
        }
        expect(text(result).contains("CoreData: deadlock: "))
    }

    // MARK: - No false alarms

    @Test func `contexts that wait in one direction, over and over and from many threads, are left alone`() async throws
    {
        let stack = try Stack(.memory)
        let chain = (0..<4).map { stack.context("level \($0)") }
        let counts = Shared([0, 0, 0, 0])
        @Sendable func descend(_ level: Int) {
            chain[level].performAndWait {
                counts.update { $0[level] += 1 }
                if level < 3 { descend(level + 1) }
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<200 { group.addTask { descend(index % 4) } }
        }
        expectEqual(counts.current, [50, 100, 150, 200])
    }

    @Test func `once a wait has ended, the other direction is free`() async throws {
        let stack = try Stack(.memory)
        let (first, second) = (stack.context("first"), stack.context("second"))
        let (ends, end) = AsyncStream<Void>.makeStream()
        // The block of `second` that follows the waited-for one begins before the waiting thread has woken up.
        func again() {
            enqueue(first) {
                second.performAndWait { enqueue(second) { first.performAndWait { _ = end.yield() } } }
            }
        }
        again()
        var count = 0
        for await _ in ends {
            count += 1
            if count == 500 { break }
            again()
        }
    }

    @Test func `waiting inline for a scope that the caller is in is no wait (CS-7)`() async throws {
        let stack = try Stack(.memory)
        let (first, second) = (stack.context("first"), stack.context("second"))
        let depth = first.performAndWait {
            second.performAndWait {
                first.performAndWait { second.performAndWait { stack.coordinator.performAndWait { 5 } } }
            }
        }
        expectEqual(depth, 5)
    }

    @Test func `an error thrown through two scopes leaves no wait behind`() throws {
        struct Expected: Error {}
        let stack = try Stack(.memory)
        let (first, second) = (stack.context("first"), stack.context("second"))
        expectThrows(Expected.self) { try first.performAndWait { try second.performAndWait { throw Expected() } } }
        expectEqual(second.performAndWait { first.performAndWait { 1 } }, 1)
    }
}
