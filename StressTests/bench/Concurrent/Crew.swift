import Foundation
import LoadFigures
import Synchronization

/// Threads that work at the same time.
struct Crew {
    struct Size: Hashable {
        let readers: Int
        let writers: Int
    }

    /// The work that one thread repeats: it asks before each time whether it is over, and returns how often it was
    /// done.
    typealias Work = @Sendable (_ isOver: () -> Bool) throws -> Int

    let readers: [Work]
    let writers: [Work]
    /// Closes what was shared.
    let close: () -> Void

    /// Lets all threads work for some seconds.
    func run(seconds: Double) throws -> Throughput {
        let shift = Shift()
        let all = readers.map { ($0, false) } + writers.map { ($0, true) }
        let threads = all.map { work, isWriter in
            Thread { shift.run(work, isWriter) }
        }
        for thread in threads { thread.start() }
        for _ in threads { shift.isReady.wait() }
        let start = ContinuousClock.now
        for _ in threads { shift.begin.signal() }
        Thread.sleep(forTimeInterval: seconds)
        shift.over.store(true, ordering: .relaxed)
        for _ in threads { shift.isDone.wait() }
        let time = (ContinuousClock.now - start) / .seconds(1)
        close()
        let results = shift.results.withLock { $0 }
        if let error = results.error { throw error }
        return Throughput(
            reads: Double(results.reads) / time,
            writes: Double(results.writes) / time,
            readTimes: results.readTimes,
            writeTimes: results.writeTimes
        )
    }

    /// The state that the threads of one run share.
    private final class Shift: Sendable {
        struct Results {
            var reads = 0
            var writes = 0
            var readTimes = Latencies()
            var writeTimes = Latencies()
            var error: (any Error)?
        }

        let isReady = DispatchSemaphore(value: 0)
        let begin = DispatchSemaphore(value: 0)
        let isDone = DispatchSemaphore(value: 0)
        let over = Atomic(false)
        let results = Mutex(Results())

        func run(_ work: Work, _ isWriter: Bool) {
            isReady.signal()
            begin.wait()
            var times = Latencies()
            var last: ContinuousClock.Instant?
            let count = Result {
                try work {
                    let now = ContinuousClock.now
                    if let last { times.add(now - last) }
                    last = now
                    return over.load(ordering: .relaxed)
                }
            }
            results.withLock { results in
                do {
                    if isWriter {
                        results.writes += try count.get()
                        results.writeTimes.add(times)
                    } else {
                        results.reads += try count.get()
                        results.readTimes.add(times)
                    }
                } catch {
                    results.error = error
                }
            }
            isDone.signal()
        }
    }
}
