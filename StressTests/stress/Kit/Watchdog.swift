import CoreData
import StrataLocks

/// Ends the program if one of its workers makes no progress, and prints which context waits for which.
final class Watchdog: Sendable {
    private struct Beat {
        let time: ContinuousClock.Instant
        let doing: StaticString
    }

    private let beats: Locked<[Int: Beat]> = Locked([:])
    private let limit: Duration
    // nonisolated(unsafe): a dispatch source may be used on any thread, though the protocol does not say so.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    /// Makes a watchdog that does not watch yet.
    ///
    /// - Parameter limit: The longest time between two beats of a worker, in seconds.
    init(limit: Double) {
        self.limit = .seconds(limit)
        timer = DispatchSource.makeTimerSource(queue: .global())
    }

    func start() {
        ThreadStacks.prepare()
        timer.schedule(deadline: .now() + 1, repeating: 1)
        timer.setEventHandler { [weak self] in self?.look() }
        timer.resume()
    }

    func stop() { timer.cancel() }

    /// Reports that a worker is alive.
    func beat(_ worker: Int, _ doing: StaticString) {
        let beat = Beat(time: .now, doing: doing)
        beats.withLock { $0[worker] = beat }
    }

    /// Reports that a worker has finished.
    func leave(_ worker: Int) { _ = beats.withLock { $0.removeValue(forKey: worker) } }

    private func look() {
        let late = beats.withLock { beats in beats.filter { .now - $0.value.time > limit } }
        guard !late.isEmpty else { return }
        var lines = late.sorted { $0.key < $1.key }.map { "worker \($0.key) has not come back from: \($0.value.doing)" }
        let waits = WaitGraph.waitingNow
        lines += waits.isEmpty ? ["no context waits for another one's queue"] : waits
        for line in lines { FileHandle.standardError.write(Data("stress: stalled: \(line)\n".utf8)) }
        ThreadStacks.print()
        exit(StressExit.stalled.rawValue)
    }
}
