/// Random numbers from a seed, one stream for each purpose, so that a draw in one moves no other.
struct SeededStream: RandomNumberGenerator {
    private var state: UInt64

    /// The stream of that number.
    init(seed: UInt64, stream: UInt64) {
        state = seed &+ stream &* 0x9E37_79B9_7F4A_7C15
        _ = next()
    }

    /// SplitMix64, by Sebastiano Vigna.
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
