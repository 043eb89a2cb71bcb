import Expectations
import Foundation
import StrataLocks
import Synchronization
import Testing

@Suite("A semaphore that is fair")
struct FairSemaphoreTests {
    private let semaphore = FairSemaphore(permits: 1)

    /// The notes of the threads, in order.
    private final class Notes: Sendable {
        private let entries = Locked<[String]>([])

        var all: [String] { entries.withLock { $0 } }

        func add(_ entry: String) { entries.withLock { $0.append(entry) } }
    }

    /// A thread that asks for a permit and notes the outcome.
    ///
    /// The function returns once the thread waits.
    private func waiting(
        as name: String,
        _ notes: Notes,
        timeout: Double = 30,
        _ cancellation: Cancellation? = nil,
        goesFirst: Bool = false
    ) throws -> JoinableThread {
        let count = semaphore.waiterCount
        let thread = onThread { [semaphore] in
            let outcome = semaphore.acquire(timeout: timeout, cancellation: cancellation, goesFirst: goesFirst)
            notes.add("\(name) \(outcome.name)")
        }
        try wait { semaphore.waiterCount == count + 1 }
        return thread
    }

    /// Whether there is a permit.
    ///
    /// If so, then it is taken.
    private func isFree(_ semaphore: FairSemaphore) -> Bool { semaphore.acquire(timeout: 0).name == "acquired" }

    @Test func `as many as there are permits come in at once, and the next one waits no longer than it may`() {
        let semaphore = FairSemaphore(permits: 2)
        for _ in 1...2 {
            let outcome = semaphore.acquire(timeout: 0)
            expect(outcome.name == "acquired" && outcome.waited == 0)
        }
        for timeout in [0, -1, 0.02] {
            let outcome = semaphore.acquire(timeout: timeout)
            expectEqual(outcome.name, "timed out")
            expect((max(timeout, 0)..<30).contains(outcome.waited), "\(outcome)")
        }
        expectEqual(semaphore.waiterCount, 0)
        semaphore.release()
        expect(isFree(semaphore))
        expect(!isFree(semaphore))
    }

    // main                            a     b     c
    // holds                           asks  asks  asks
    // gives back; asks: has to wait   has
    // gives back; asks: has to wait         has
    // …
    @Test func `permits go to the thread that has waited longest, and none overtakes`() throws {
        let notes = Notes()
        expect(isFree(semaphore))
        let threads = try ["a", "b", "c"].map { try waiting(as: $0, notes) }

        for (count, thread) in threads.enumerated() {
            expectEqual(notes.all.count, count)
            semaphore.release()
            expect(!isFree(semaphore))
            try thread.join()
        }

        expectEqual(notes.all, ["a acquired", "b acquired", "c acquired"])
        semaphore.release()
        expect(isFree(semaphore))
    }

    @Test func `a thread that asks to go first overtakes all that wait`() throws {
        let notes = Notes()
        expect(isFree(semaphore))
        var threads = try ["a", "b"].map { try waiting(as: $0, notes) }
        threads.insert(try waiting(as: "c", notes, goesFirst: true), at: 0)
        for thread in threads {
            semaphore.release()
            expect(!isFree(semaphore))
            try thread.join()
        }
        expectEqual(notes.all, ["c acquired", "a acquired", "b acquired"])
        semaphore.release()
    }

    @Test func `a thread that gives up, or is cancelled, leaves the queue without a permit`() throws {
        let notes = Notes()
        let (before, amid) = (Cancellation(), Cancellation())
        expect(isFree(semaphore))
        let impatient = try waiting(as: "a", notes, amid)
        let patient = try waiting(as: "b", notes)
        expectEqual(semaphore.acquire(timeout: 0.01).name, "timed out")
        before.cancel()
        expectEqual(semaphore.acquire(timeout: 30, cancellation: before).name, "cancelled")
        expectEqual(semaphore.waiterCount, 2)

        amid.cancel()
        try impatient.join()
        expectEqual(notes.all, ["a cancelled"])
        expectEqual(semaphore.waiterCount, 1)
        semaphore.release()
        try patient.join()

        expectEqual(notes.all, ["a cancelled", "b acquired"])
        semaphore.release()
        expect(isFree(semaphore))
    }

    @Test func `a free permit is had though the operation was cancelled, and a wait may have no end`() throws {
        let cancellation = Cancellation()
        cancellation.cancel()
        expectEqual(semaphore.acquire(timeout: 0, cancellation: cancellation).name, "acquired")
        let notes = Notes()
        let thread = try waiting(as: "a", notes, timeout: .infinity)
        semaphore.release()
        try thread.join()
        expectEqual(notes.all, ["a acquired"])
    }

    @Test func `a thread that does not want to wait does not line up, and so is not called either`() {
        let cancellation = Cancellation()
        cancellation.cancel()
        expect(isFree(semaphore))
        expectEqual(semaphore.acquire(timeout: 0, cancellation: cancellation).name, "timed out")
    }

    @Test func `no permit is lost or made among threads that wait, give up and are cancelled`() throws {
        let semaphore = FairSemaphore(permits: 2)
        let inside = Atomic(0)
        let start = DispatchSemaphore(value: 0)
        let threads = (0..<6).map { index in
            onThread {
                start.wait()
                for round in 0..<300 {
                    let cancellation = Cancellation()
                    if (round + index) % 5 == 0 { cancellation.cancel() }
                    let timeout = (round + index) % 3 == 0 ? 0.0 : 30
                    let outcome = semaphore.acquire(timeout: timeout, cancellation: cancellation)
                    guard outcome.name == "acquired" else { continue }
                    expect(inside.add(1, ordering: .relaxed).newValue <= 2)
                    sched_yield()
                    inside.subtract(1, ordering: .relaxed)
                    semaphore.release()
                }
            }
        }
        for _ in threads { start.signal() }
        for thread in threads { try thread.join() }

        expectEqual((1...3).map { _ in isFree(semaphore) }, [true, true, false])
    }
}

extension FairSemaphore.Outcome {
    fileprivate var name: String {
        switch self {
        case .acquired: "acquired"
        case .timedOut: "timed out"
        case .cancelled: "cancelled"
        }
    }

    fileprivate var waited: Double {
        switch self {
        case .acquired(let waited), .timedOut(let waited): waited
        case .cancelled: 0
        }
    }
}
