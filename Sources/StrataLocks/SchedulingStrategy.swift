#if Schedules
/// Chooses which of several threads goes on.
package struct SchedulingStrategy: Sendable {
    /// The ways to choose.
    package enum Kind: Sendable {
        /// Any thread, each with the same chance.
        case randomWalk
        /// The same thread as before, with a chance of one in `steps` for another one: a step that needs another thread to
        /// get far meanwhile is found so.
        case longStrides(steps: Int)
        /// The thread with the highest priority, which a few random steps change ("probabilistic concurrency testing").
        ///
        /// A fault that needs `depth` ordered events is found with a chance of at least 1 in `threads * steps ^ (depth - 1)`.
        case priorities(depth: Int, steps: Int)
        /// The thread with the highest priority. A thread that reaches a place of one of a few shared objects may fall behind
        /// all others.
        ///
        /// The seed decides which objects these are. So a short window at one mutex is found even if the run has
        /// thousands of steps elsewhere.
        case focus
        /// Each thread goes on until it waits, but at some steps another one takes over: the number of the step, and the
        /// place of the thread among those that could go on. A search tries one set of changes after the other.
        case changes([Int: Int])
    }

    private let kind: Kind
    private var random: UInt64
    private var priorities: [Int: UInt64] = [:]
    private var step = 0
    private var changes: [Int: UInt64] = [:]
    /// Whether threads fall behind at places of an object.
    private var isChosen: [UInt: Bool] = [:]
    /// The next priority below all others.
    private var lowest = UInt64(1) << 40
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
        switch kind {
        // Above all priorities of the steps that change one.
        case .priorities(let depth, _): priorities[number] = UInt64(depth) + draw() >> 8
        case .focus: priorities[number] = UInt64(1) << 41 + draw() >> 8
        default: break
        }
    }

    /// One of so many objects is chosen, and one of so many visits of it lets the thread fall behind.
    private static let focus = (objects: UInt64(8), visits: UInt64(4))

    /// Notes that a thread has reached a place of a shared object.
    mutating func reach(_ object: UInt, _ number: Int) {
        guard case .focus = kind, object != 0 else { return }
        if isChosen[object] == nil { isChosen[object] = draw() % Self.focus.objects == 0 }
        guard isChosen[object] == true, draw() % Self.focus.visits == 0 else { return }
        priorities[number] = lowest
        lowest -= 1
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
        case .focus: return ready.max { priorities[$0, default: 0] < priorities[$1, default: 0] }
        case .randomWalk: return ready[Int(draw() % UInt64(ready.count))]
        case .longStrides(let steps):
            if let former, ready.contains(former), draw() % UInt64(steps) != 0 { return former }
            return ready[Int(draw() % UInt64(ready.count))]
        case .priorities:
            if let former, let priority = changes[step] { priorities[former] = priority }
            return ready.max { priorities[$0, default: 0] < priorities[$1, default: 0] }
        }
    }
}
#endif
