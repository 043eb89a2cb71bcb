import Dispatch
import Expectations
import Synchronization
import Testing

@testable import StrataLocks

@Suite("Cancelling, sleeping and answering")
struct CancellationTests {
    @Test func `a cancellation stays, and an operation that is over by its own measure ends without one`() {
        let isOver = Atomic(false)
        let own = Cancellation(orWhen: { isOver.load(ordering: .relaxed) })
        expect(!own.isCancelled && !own.endsStatement)
        isOver.store(true, ordering: .relaxed)
        expect(!own.isCancelled && own.endsStatement)

        let called = Cancellation()
        expect(!called.endsStatement)
        called.cancel()
        called.cancel()
        expect(called.isCancelled && called.endsStatement)
    }

    @Test func `a sleep ends by a call, by a cancellation before or during it, or by its time`() throws {
        let waiter = Waiter()
        waiter.call()
        expectEqual(waiter.sleep(timeout: 0, cancellation: nil).0, .called)
        expectEqual(waiter.sleep(timeout: 0, cancellation: nil).0, .timedOut)
        let (awakening, waited) = waiter.sleep(timeout: 0.02, cancellation: nil)
        expect(awakening == .timedOut && waited >= 0.02 && waited < 30)

        let cancelled = Cancellation()
        cancelled.cancel()
        expectEqual(Waiter().sleep(timeout: 30, cancellation: cancelled).0, .called)

        let amid = Cancellation()
        let sleeper = onThread { expectEqual(Waiter().sleep(timeout: 30, cancellation: amid).0, .called) }
        amid.cancel()
        try sleeper.join()
    }

    @Test func `a cancellation ends what runs or is about to run, once, and nothing after its end`() {
        let stops = Atomic(0)
        let stop: @Sendable () -> Void = { stops.add(1, ordering: .relaxed) }
        let (during, before, after) = (Cancellation(), Cancellation(), Cancellation())
        during.running(stoppedBy: stop) {
            expectEqual(stops.load(ordering: .relaxed), 0)
            during.cancel()
            during.cancel()
            expectEqual(stops.load(ordering: .relaxed), 1)
        }
        before.cancel()
        before.running(stoppedBy: stop) { expectEqual(stops.load(ordering: .relaxed), 2) }
        after.running(stoppedBy: stop) {}
        after.cancel()
        expectEqual(stops.load(ordering: .relaxed), 2)
    }

    @Test func `what runs inside is stopped by itself, and the outer one again after its end`() {
        let outer = Atomic(0)
        let inner = Atomic(0)
        for innerEndsFirst in [false, true] {
            let cancellation = Cancellation()
            cancellation.running(stoppedBy: { outer.add(1, ordering: .relaxed) }) {
                cancellation.running(stoppedBy: { inner.add(1, ordering: .relaxed) }) {
                    if !innerEndsFirst { cancellation.cancel() }
                }
                cancellation.cancel()
            }
        }
        expectEqual(inner.load(ordering: .relaxed), 1)
        expectEqual(outer.load(ordering: .relaxed), 1)
    }

    @Test func `a part of an operation is stopped with the whole, and alone, and by its own measure`() throws {
        let whole = Cancellation()
        let stops = Atomic(0)
        let part = Cancellation(partOf: whole, orWhen: { stops.load(ordering: .relaxed) > 1 })
        let other = Cancellation(partOf: whole)
        other.cancel()
        expect(other.isCancelled && !whole.isCancelled && !part.isCancelled)
        part.running(stoppedBy: { stops.add(1, ordering: .relaxed) }) {
            whole.cancel()
            expectEqual(stops.load(ordering: .relaxed), 1)
        }
        expect(part.isCancelled && part.endsStatement)
        expectThrows(CancellationError.self) { try part.check() }
    }

    @Test func `the error of the first cancellation is the one that ends the operation`() throws {
        struct Reason: Error, Equatable { let number: Int }
        let cancellation = Cancellation()
        try cancellation.check()
        cancellation.cancel(throwing: Reason(number: 1))
        cancellation.cancel(throwing: Reason(number: 2))
        expectEqual(expectThrows(Reason.self) { try cancellation.check() }, Reason(number: 1))
    }

    @Test func `a task gets its answer whether that comes before it waits or later, from another thread`() async throws
    {
        await expectEqual(withAnswer { $0(7) }, 7)
        let started = DispatchSemaphore(value: 0)
        let answer = await withAnswer { (reply: @escaping @Sendable (String) -> Void) in
            _ = onThread {
                started.wait()
                reply("late")
            }
            started.signal()
        }
        expectEqual(answer, "late")
    }

    /// An object whose living instances are counted.
    private final class Counted: Sendable {
        static let living = Atomic(0)

        init() { Self.living.add(1, ordering: .relaxed) }

        deinit { Self.living.subtract(1, ordering: .relaxed) }
    }

    @Test func `a mutex lets one thread in at a time, is free after an error, and keeps its value as long as it lives`()
        throws
    {
        struct Failure: Error {}
        final class Box: Sendable {
            let content = Locked<(count: Int, aligned: SIMD8<Double>, object: Counted)>((0, .zero, Counted()))
        }
        do {
            let box = Box()
            expectThrows(Failure.self) { try box.content.withLock { _ throws(Failure) in throw Failure() } }
            let threads = (0..<4).map { _ in
                onThread { for _ in 0..<2000 { box.content.withLock { $0.count += 1 } } }
            }
            for thread in threads { try thread.join() }
            box.content.withLock { $0.aligned += 1 }
            expect(box.content.withLock { $0.count == 8000 && $0.aligned == SIMD8(repeating: 1) })
            expectEqual(Counted.living.load(ordering: .relaxed), 1)
        }
        // After its end a thread may hold its block for another moment.
        try wait { Counted.living.load(ordering: .relaxed) == 0 }
    }
}
