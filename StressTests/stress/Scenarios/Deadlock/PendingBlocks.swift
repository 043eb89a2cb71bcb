import CoreData
import StrataLocks

/// The blocks that were handed to contexts.
///
/// Each of them must run exactly once.
final class PendingBlocks: Sendable {
    private struct State {
        var last = 0
        /// The blocks that have not run yet, by number.
        var open: [Int: String] = [:]
    }

    private let state = Locked(State())
    private let run: Run

    init(_ run: Run) { self.run = run }

    /// Records a block that is about to be handed over.
    ///
    /// - Parameters:
    ///   - what: The kind of block.
    ///   - place: The number of its context.
    /// - Returns: The function that the block must call when it runs.
    func ticket(_ what: StaticString, _ place: Int) -> @Sendable () -> Void {
        let number = state.withLock { state in
            state.last += 1
            state.open[state.last] = "\(what) of context \(place)"
            return state.last
        }
        return { [self] in
            leave(number, what)
            if run.isSabotaged("block-twice"), number % 50 == 0 { leave(number, what) }
        }
    }

    private func leave(_ number: Int, _ what: StaticString) {
        if state.withLock({ $0.open.removeValue(forKey: number) }) == nil { run.find("\(what) has run twice") }
    }

    /// Waits until all blocks have run, and reports those that have not after the time for a single operation.
    func settle() {
        let end = ContinuousClock.now + .seconds(run.options.stall)
        while state.withLock({ !$0.open.isEmpty }), .now < end { usleep(1_000) }
        let lost = state.withLock { $0.open }
        guard !lost.isEmpty else { return }
        let first = lost.sorted { $0.key < $1.key }.prefix(5).map(\.value).joined(separator: ", ")
        let waits = WaitGraph.waitingNow.joined(separator: "; ")
        let reason = waits.isEmpty ? "no context waits for another one's queue" : waits
        run.find("\(first): \(lost.count) in all, was never run; \(reason)")
    }
}
