#if Schedules
/// Chooses which of several threads goes on.
package struct SchedulingStrategy: Sendable {
    /// The ways to choose.
    package enum Kind: Sendable {
        /// Any thread, each with the same chance.
        case randomWalk
        /// The thread with the highest priority, which a few random steps change ("probabilistic concurrency testing").
        ///
        /// A fault that needs `depth` ordered events is found with a chance of at least 1 in `threads * steps ^ (depth - 1)`.
        case priorities(depth: Int, steps: Int)
        /// Each thread goes on until it waits, but at some steps another one takes over: the number of the step, and the
        /// place of the thread among those that could go on. A search tries one set of changes after the other.
        case changes([Int: Int])
    }

    private let kind: Kind
    private var random: UInt64
    private var priorities: [Int: UInt64] = [:]
    private var step = 0
    private var changes: [Int: UInt64] = [:]
    /// How many other threads could have gone on at each step; for a search only.
    private(set) var alternatives: [Int] = []

    /// Makes a strategy whose choices follow from the seed alone.
    package init(_ kind: Kind, seed: UInt64) {
        self.kind = kind
        random = seed &* 0x9e37_79b9_7f4a_7c15 &+ 1
        guard case .priorities(let depth, let steps) = kind else { return }
        for priority in 1..<UInt64(max(depth, 2)) { changes[Int(draw() % UInt64(max(steps, 1)))] = priority }
    }

    /// SplitMix64.
    private mutating func draw() -> UInt64 {
        random &+= 0x9e37_79b9_7f4a_7c15
        var bits = random
        bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
        bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
        return bits ^ (bits >> 31)
    }

    /// Notes a new thread.
    mutating func add(_ number: Int) {
        guard case .priorities(let depth, _) = kind else { return }
        // Above all priorities of the steps that change one.
        priorities[number] = UInt64(depth) + draw() >> 8
    }

    /// The thread that goes on; `nil` if there is none.
    mutating func next(of ready: [Int], former: Int?) -> Int? {
        step += 1
        if case .changes(let changes) = kind {
            let others = ready.filter { $0 != former }
            alternatives.append(others.count == ready.count ? max(others.count - 1, 0) : others.count)
            if let change = changes[step], !others.isEmpty {
                // If the former thread cannot go on, then the first of the others does so without a change.
                return others[(others.count == ready.count ? change + 1 : change) % others.count]
            }
            return others.count == ready.count ? others.first : former
        }
        guard ready.count > 1 else { return ready.first }
        switch kind {
        case .changes: return ready.first
        case .randomWalk: return ready[Int(draw() % UInt64(ready.count))]
        case .priorities:
            if let former, let priority = changes[step] { priorities[former] = priority }
            return ready.max { priorities[$0, default: 0] < priorities[$1, default: 0] }
        }
    }
}
#endif
