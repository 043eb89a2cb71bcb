import CoreData
import Synchronization

/// Ends the program if one of its workers makes no progress.
final class Watchdog: Sendable {
    private let beats: Mutex<[Int: ContinuousClock.Instant]> = Mutex([:])
    private let limit: Duration
    // nonisolated(unsafe): a dispatch source may be used on any thread, though the protocol does not say so.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    /// Begins to watch.
    ///
    /// - Parameter limit: How long a worker may take between two beats, in seconds.
    init(limit: Double) {
        self.limit = .seconds(limit)
        timer = DispatchSource.makeTimerSource(queue: .global())
    }

    func start() {
        timer.schedule(deadline: .now() + 1, repeating: 1)
        timer.setEventHandler { [weak self] in self?.look() }
        timer.resume()
    }

    func stop() { timer.cancel() }

    /// Tells that a worker is alive.
    func beat(_ worker: Int) { beats.withLock { $0[worker] = .now } }

    /// Tells that a worker has finished.
    func leave(_ worker: Int) { _ = beats.withLock { $0.removeValue(forKey: worker) } }

    private func look() {
        let late = beats.withLock { beats in beats.filter { .now - $0.value > limit }.keys.sorted() }
        guard !late.isEmpty else { return }
        FileHandle.standardError.write(Data("stress: workers \(late) have made no progress for \(limit)\n".utf8))
        exit(StressExit.stalled.rawValue)
    }
}
