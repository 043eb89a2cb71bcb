import Foundation
import LoadFigures
import Synchronization

/// Threads that work at the same time.
struct Crew {
    struct Size: Hashable {
        let readers: Int
        let writers: Int
        /// The threads that both read and write.
        var mixed = 0
    }

    /// The work that one thread repeats: it asks before each time whether it is over, and returns how often it was
    /// done.
    typealias Work = @Sendable (_ isOver: () -> Bool) throws -> Int

    /// The work of a thread that both reads and writes, which does an operation and returns whether it was a write.
    ///
    /// It gets the number of the operation.
    typealias Operation = (_ number: Int) throws -> Bool

    let readers: [Work]
    let writers: [Work]
    /// Each is called on the thread that then does its operations.
    var mixed: [@Sendable () throws -> Operation] = []
    /// Closes what was shared.
    let close: () -> Void

    /// Lets all threads work for some seconds.
    func run(seconds: Double) throws -> Throughput {
        let shift = Shift()
        let all = readers.map { ($0, false) } + writers.map { ($0, true) }
        let threads =
            all.map { work, isWriter in
                Thread { shift.run(work, isWriter) }
            }
            + mixed.map { start in
                Thread { shift.runMixed(start) }
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
            writeTimes: results.writeTimes,
            longestRead: results.longestRead,
            longestWrite: results.longestWrite
        )
    }

    /// The state that the threads of one run share.
    fileprivate final class Shift: Sendable {
        struct Results {
            var reads = 0
            var writes = 0
            var readTimes = Latencies()
            var writeTimes = Latencies()
            var longestRead = Duration.zero
            var longestWrite = Duration.zero
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

        func runMixed(_ start: () throws -> Operation) {
            var own = Results()
            do {
                let operation = try start()
                isReady.signal()
                begin.wait()
                var number = 0
                while !over.load(ordering: .relaxed) {
                    let start = ContinuousClock.now
                    let isWrite = try operation(number)
                    own.add(ContinuousClock.now - start, isWrite: isWrite)
                    number += 1
                }
            } catch { own.error = error }
            if own.error != nil, own.reads + own.writes == 0 { isReady.signal() }
            results.withLock { $0.add(own) }
            isDone.signal()
        }
    }
}

extension Crew.Shift.Results {
    fileprivate mutating func add(_ time: Duration, isWrite: Bool) {
        if isWrite {
            writes += 1
            writeTimes.add(time)
            longestWrite = max(longestWrite, time)
        } else {
            reads += 1
            readTimes.add(time)
            longestRead = max(longestRead, time)
        }
    }

    fileprivate mutating func add(_ other: Self) {
        reads += other.reads
        writes += other.writes
        readTimes.add(other.readTimes)
        writeTimes.add(other.writeTimes)
        longestRead = max(longestRead, other.longestRead)
        longestWrite = max(longestWrite, other.longestWrite)
        error = error ?? other.error
    }
}
