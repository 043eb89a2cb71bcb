import Foundation

/// SHA-256 and SHA-512 of short messages (FIPS 180-4).
///
/// Version hashes need both, a few hundred bytes at a time, and Foundation on Linux has neither. The two differ only in
/// the size of a word. They are written separately because debug builds do not specialise generic code, which made the
/// hashing of a model the most expensive part of opening a store.
package enum SHA2 {
    /// The 32 bytes of SHA-256.
    package static func sha256(_ message: some Sequence<UInt8>) -> Data {
        var state = initial256
        let padded = pad(message, block: 64)
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { schedule in
            guard let schedule = schedule.baseAddress else { return }
            padded.withUnsafeBytes { bytes in
                for block in stride(from: 0, to: bytes.count, by: 64) {
                    for index in 0..<16 {
                        schedule[index] = UInt32(
                            bigEndian: bytes.loadUnaligned(fromByteOffset: block + index * 4, as: UInt32.self)
                        )
                    }
                    compress256(&state, schedule)
                }
            }
        }
        return data(state.map(\.bigEndian))
    }

    /// The 64 bytes of SHA-512.
    package static func sha512(_ message: some Sequence<UInt8>) -> Data {
        var state = initial512
        let padded = pad(message, block: 128)
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 80) { schedule in
            guard let schedule = schedule.baseAddress else { return }
            padded.withUnsafeBytes { bytes in
                for block in stride(from: 0, to: bytes.count, by: 128) {
                    for index in 0..<16 {
                        schedule[index] = UInt64(
                            bigEndian: bytes.loadUnaligned(fromByteOffset: block + index * 8, as: UInt64.self)
                        )
                    }
                    compress512(&state, schedule)
                }
            }
        }
        return data(state.map(\.bigEndian))
    }

    // MARK: - Shared parts

    /// The message, a one bit, zeros, and the length in bits at the end of the last block.
    private static func pad(_ message: some Sequence<UInt8>, block: Int) -> [UInt8] {
        var padded = Array(message)
        let bits = UInt64(padded.count) * 8
        padded.append(0x80)
        let lengthSize = block / 8
        let used = (padded.count + lengthSize) % block
        padded.append(contentsOf: repeatElement(0, count: (used == 0 ? 0 : block - used) + lengthSize - 8))
        withUnsafeBytes(of: bits.bigEndian) { padded.append(contentsOf: $0) }
        return padded
    }

    private static func data(_ words: [some FixedWidthInteger]) -> Data {
        words.withUnsafeBytes { Data($0) }
    }

    // MARK: - Words of 32 bits

    /// Processes a block, the first 16 words of `schedule`, and updates the state.
    private static func compress256(_ state: inout [UInt32], _ schedule: UnsafeMutablePointer<UInt32>) {
        var index = 16
        while index < 64 {
            let (early, late) = (schedule[index - 15], schedule[index - 2])
            let small0 = rotate(early, 7) ^ rotate(early, 18) ^ (early &>> 3)
            let small1 = rotate(late, 17) ^ rotate(late, 19) ^ (late &>> 10)
            schedule[index] = schedule[index - 16] &+ small0 &+ schedule[index - 7] &+ small1
            index += 1
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        rounds256.withUnsafeBufferPointer { constants in
            guard let constants = constants.baseAddress else { return }
            var round = 0
            while round < 64 {
                let sigma1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
                let first = h &+ sigma1 &+ ((e & f) ^ (~e & g)) &+ constants[round] &+ schedule[round]
                let sigma0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
                let second = sigma0 &+ ((a & b) ^ (a & c) ^ (b & c))
                (h, g, f, e, d, c, b, a) = (g, f, e, d &+ first, c, b, a, first &+ second)
                round += 1
            }
        }
        state = [
            state[0] &+ a, state[1] &+ b, state[2] &+ c, state[3] &+ d,
            state[4] &+ e, state[5] &+ f, state[6] &+ g, state[7] &+ h,
        ]
    }

    private static func rotate(_ value: UInt32, _ count: UInt32) -> UInt32 {
        (value &>> count) | (value &<< (32 &- count))
    }

    // MARK: - Words of 64 bits

    /// Processes a block, the first 16 words of `schedule`, and updates the state.
    private static func compress512(_ state: inout [UInt64], _ schedule: UnsafeMutablePointer<UInt64>) {
        var index = 16
        while index < 80 {
            let (early, late) = (schedule[index - 15], schedule[index - 2])
            let small0 = rotate(early, 1) ^ rotate(early, 8) ^ (early &>> 7)
            let small1 = rotate(late, 19) ^ rotate(late, 61) ^ (late &>> 6)
            schedule[index] = schedule[index - 16] &+ small0 &+ schedule[index - 7] &+ small1
            index += 1
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        rounds512.withUnsafeBufferPointer { constants in
            guard let constants = constants.baseAddress else { return }
            var round = 0
            while round < 80 {
                let sigma1 = rotate(e, 14) ^ rotate(e, 18) ^ rotate(e, 41)
                let first = h &+ sigma1 &+ ((e & f) ^ (~e & g)) &+ constants[round] &+ schedule[round]
                let sigma0 = rotate(a, 28) ^ rotate(a, 34) ^ rotate(a, 39)
                let second = sigma0 &+ ((a & b) ^ (a & c) ^ (b & c))
                (h, g, f, e, d, c, b, a) = (g, f, e, d &+ first, c, b, a, first &+ second)
                round += 1
            }
        }
        state = [
            state[0] &+ a, state[1] &+ b, state[2] &+ c, state[3] &+ d,
            state[4] &+ e, state[5] &+ f, state[6] &+ g, state[7] &+ h,
        ]
    }

    private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
        (value &>> count) | (value &<< (64 &- count))
    }

    // MARK: - Constants: fractional parts of square roots (initial) and cube roots (rounds) of the first primes

    private static let initial256: [UInt32] = [
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    ]

    private static let initial512: [UInt64] = [
        0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
        0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
    ]

    private static let rounds256: [UInt32] = [
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
    ]

    private static let rounds512: [UInt64] = [
        0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
        0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
        0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
        0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
        0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
        0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
        0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
        0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
        0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
        0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
        0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
        0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
        0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
        0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
        0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
        0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
        0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
        0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
        0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
        0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
    ]
}
