/// Random numbers from a seed, with one stream for each purpose, so that a draw from one stream changes no other.
struct SeededStream: RandomNumberGenerator {
    private var state: UInt64

    /// Makes the stream with that number.
    init(seed: UInt64, stream: UInt64) {
        state = seed &+ stream &* 0x9E37_79B9_7F4A_7C15
        state = next() &+ stream
    }

    /// A seed for streams that depend on this one.
    var seed: UInt64 { state }

    /// SplitMix64, by Sebastiano Vigna.
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 on that is less than `limit`.
    mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }

    /// True with that probability.
    mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &self) < probability }

    /// One of several.
    mutating func pick<C: Collection>(_ choices: C) -> C.Element where C.Index == Int {
        choices[choices.startIndex + below(choices.count)]
    }

    /// A number below `limit`; small numbers are far more frequent than large ones.
    mutating func skewed(_ limit: Int) -> Int {
        let share = Double.random(in: 0..<1, using: &self)
        return min(Int(Double(limit) * share * share * share), limit - 1)
    }

    /// An index, drawn with the probability that its weight has among all.
    mutating func index(_ weights: [Int]) -> Int {
        var choice = below(weights.reduce(0, +))
        for (index, weight) in weights.enumerated() {
            if choice < weight { return index }
            choice -= weight
        }
        return weights.count - 1
    }
}
