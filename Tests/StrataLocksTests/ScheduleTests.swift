import Dispatch
import Expectations
import Foundation
import StrataLocks
import Synchronization
import Testing

#if Schedules
/// The scheduler, in builds with the trait `Schedules`.
///
/// There is one run at a time.
@Suite("Schedules, in a build that has them", .serialized)
struct ScheduleTests {
    /// Two threads add to a number with a place between reading and writing; returns the sum and what the run has shown.
    private func additions(_ kind: SchedulingStrategy.Kind, _ seed: UInt64) -> (sum: Int, outcome: ScheduleRun.Outcome)
    {
        let number = Locked(0)
        let outcome = ScheduleRun.run(
            SchedulingStrategy(kind, seed: seed),
            (0..<2).map { _ in
                { @Sendable in
                    let read = number.withLock { $0 }
                    number.withLock { $0 = read + 1 }
                }
            }
        )
        return (number.withLock { $0 }, outcome)
    }

    @Test func `some orders lose an addition and some do not, whichever strategy chooses`() {
        for kind in [SchedulingStrategy.Kind.randomWalk, .priorities(depth: 2, steps: 8), .focus] {
            let sums = Set((1...60).map { additions(kind, $0).sum })
            expectEqual(sums, [1, 2])
        }
    }

    @Test func `a seed gives the same choices again, and other seeds give others`() {
        var traces: Set<UInt64> = []
        for seed in UInt64(1)...30 {
            let runs = (0..<3).map { _ in additions(.randomWalk, seed) }
            expectEqual(Set(runs.map(\.outcome.trace)).count, 1)
            expectEqual(Set(runs.map(\.sum)).count, 1)
            traces.insert(runs[0].outcome.trace)
        }
        expect(traces.count > 10)
    }

    @Test func `a thread waits for its turn on a suspended queue, and no other one stands still with it`() {
        for seed in UInt64(1)...50 {
            let queue = DispatchQueue(label: "suspended")
            let order = Locked<[String]>([])
            let isSuspended = Locked(false)
            let outcome = ScheduleRun.run(
                SchedulingStrategy(.randomWalk, seed: seed),
                [
                    {
                        while !isSuspended.withLock({ $0 }) { Schedule.pause() }
                        Schedule.sync(on: queue) { order.withLock { $0.append("block") } }
                    },
                    {
                        Schedule.suspend(queue)
                        isSuspended.withLock { $0 = true }
                        for _ in 0..<3 { order.withLock { $0.append("before") } }
                        Schedule.resume(queue)
                    },
                ]
            )
            expectEqual(order.withLock { $0 }, ["before", "before", "before", "block"])
            expectEqual(outcome.strays, 0)
        }
    }

    @Test func `locks that two threads take in opposite orders are reported`() async {
        await #expect(processExitsWith: .success) {
            for seed in UInt64(1)...200 {
                let both = TwoLocks()
                let outcome = ScheduleRun.run(
                    SchedulingStrategy(.randomWalk, seed: seed),
                    [
                        { both.one.withLock { _ in both.other.withLock { $0 += 1 } } },
                        { both.other.withLock { _ in both.one.withLock { $0 += 1 } } },
                    ]
                )
                guard let deadlock = outcome.deadlock else { continue }
                expectEqual(deadlock, "thread 0 waits for a lock, thread 1 waits for a lock")
                exit(0)
            }
            exit(1)
        }
    }

    private final class TwoLocks: Sendable {
        let one = Locked(0)
        let other = Locked(0)
    }

    @Test func `threads that wait for permits get all of them in every order`() {
        for seed in UInt64(1)...40 {
            let semaphore = FairSemaphore(permits: 1)
            let taken = Locked(0)
            let bodies = (0..<3).map { _ in
                { @Sendable in
                    for _ in 0..<3 {
                        guard case .acquired = semaphore.acquire(timeout: 60) else { continue }
                        taken.withLock { $0 += 1 }
                        semaphore.release()
                    }
                }
            }
            let outcome = ScheduleRun.run(SchedulingStrategy(.randomWalk, seed: seed), bodies)
            expectEqual(taken.withLock { $0 }, 9)
            expectEqual(outcome.deadlock, nil)
            expectEqual(semaphore.freeCount, 1)
        }
    }

    @Test func `work on a queue keeps its order, and work that was submitted is part of the run`() {
        for seed in UInt64(1)...40 {
            let queue = DispatchQueue(label: "work")
            let order = Locked<[Int]>([])
            let outcome = ScheduleRun.run(
                SchedulingStrategy(.randomWalk, seed: seed),
                [
                    {
                        for number in 0..<3 { Schedule.async(on: queue) { order.withLock { $0.append(number) } } }
                        Schedule.sync(on: queue) { order.withLock { $0.append(3) } }
                    },
                    { Schedule.sync(on: queue) { order.withLock { $0.append(-1) } } },
                ]
            )
            let all = order.withLock { $0 }
            expectEqual(all.filter { $0 >= 0 }, [0, 1, 2, 3])
            expectEqual(all.count, 5)
            expectEqual(outcome.deadlock, nil)
        }
    }

    @Test func `each strategy finds the window between a read and a write of an atomic`() {
        let kinds: [SchedulingStrategy.Kind] = [
            .randomWalk, .longStrides(steps: 4), .priorities(depth: 2, steps: 8), .focus,
        ]
        for kind in kinds {
            let sums = Set(
                (UInt64(1)...200).map { seed in
                    let cell = CellBox()
                    let body: @Sendable () -> Void = {
                        let read = cell.number.load(ordering: .acquiring)
                        cell.number.store(read + 1, ordering: .releasing)
                    }
                    _ = ScheduleRun.run(SchedulingStrategy(kind, seed: seed), [body, body])
                    return cell.number.load(ordering: .acquiring)
                }
            )
            expectEqual(sums, [1, 2])
        }
    }

    @Test func `changes of an atomic in one step lose nothing, and it has the interface of an atomic`() {
        for seed in UInt64(1)...50 {
            let cell = CellBox()
            let body: @Sendable () -> Void = {
                cell.number.add(2, ordering: .relaxed)
                cell.number.subtract(1, ordering: .relaxed)
            }
            _ = ScheduleRun.run(SchedulingStrategy(.randomWalk, seed: seed), [body, body])
            expectEqual(cell.number.load(ordering: .relaxed), 2)
        }
        let cell = CellBox()
        expectEqual(cell.number.exchange(5, ordering: .acquiringAndReleasing), 0)
        let refused = cell.number.compareExchange(expected: 4, desired: 6, ordering: .acquiringAndReleasing)
        expectEqual(refused.exchanged, false)
        expectEqual(refused.original, 5)
        let done = cell.number.compareExchange(expected: 5, desired: 6, ordering: .acquiringAndReleasing)
        expectEqual(done.exchanged, true)
        expectEqual(cell.number.load(ordering: .acquiring), 6)
    }

    private final class CellBox: Sendable {
        let number = AtomicCell(0)
    }

    @Test func `a deadline passes only if nothing else can end the wait, and that is counted`() {
        for seed in UInt64(1)...10 {
            let semaphore = FairSemaphore(permits: 1)
            let body: @Sendable () -> Void = {
                // The time is over long before the other thread is done.
                guard case .acquired = semaphore.acquire(timeout: 0.001) else { return }
                for _ in 0..<50 { Schedule.pause() }
                semaphore.release()
            }
            let outcome = ScheduleRun.run(SchedulingStrategy(.randomWalk, seed: seed), [body, body])
            expectEqual(outcome.expirations, 0)
            expectEqual(semaphore.freeCount, 1)
        }
        let semaphore = FairSemaphore(permits: 0)
        let outcome = ScheduleRun.run(
            SchedulingStrategy(.randomWalk, seed: 1),
            [{ if case .timedOut = semaphore.acquire(timeout: 0.01) { semaphore.release() } }]
        )
        expectEqual(outcome.expirations, 1)
        expectEqual(outcome.deadlock, nil)
        expectEqual(semaphore.freeCount, 1)
    }

    @Test func `work after some time is part of the run, and comes at different moments`() {
        let orders = (UInt64(1)...60).map { seed in
            let queue = DispatchQueue(label: "later")
            let order = Locked<[String]>([])
            let outcome = ScheduleRun.run(
                SchedulingStrategy(.randomWalk, seed: seed),
                [
                    {
                        Schedule.async(on: queue, after: 3600) { order.withLock { $0.append("later") } }
                        for _ in 0..<3 { order.withLock { $0.append("now") } }
                    },
                    { for _ in 0..<3 { order.withLock { $0.append("other") } } },
                ]
            )
            expectEqual(outcome.deadlock, nil)
            return order.withLock { $0 }
        }
        expect(orders.allSatisfy { $0.count == 7 })
        expect(orders.contains { $0.last == "later" })
        expect(orders.contains { $0.last != "later" })
    }

    @Test func `a thread that waits for something unknown does not stop the others`() {
        let strays = (UInt64(1)...6).map { seed in
            let gate = DispatchSemaphore(value: 0)
            let strategy = SchedulingStrategy(.priorities(depth: 2, steps: 1), seed: seed)
            let outcome = ScheduleRun.run(strategy, [{ gate.wait() }, { gate.signal() }])
            expectEqual(outcome.deadlock, nil)
            return outcome.strays
        }
        // The thread that waits went first in some of them.
        expectEqual(Set(strays), [0, 1])
    }
}
#endif
