import CoreData
import StrataLocks

/// The blocks that were handed to contexts and have to run: each once, and none never.
final class PendingBlocks: Sendable {
    private struct State {
        var last = 0
        /// What is still to run, by number.
        var open: [Int: String] = [:]
    }

    private let state = Locked(State())
    private let run: Run

    init(_ run: Run) { self.run = run }

    /// Notes a block that is about to be handed over.
    ///
    /// - Parameters:
    ///   - what: What kind of block it is.
    ///   - place: The number of its context.
    /// - Returns: What the block calls when it runs.
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

    /// Waits until all have run, and finds those that have not in the time that a single operation may take.
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
