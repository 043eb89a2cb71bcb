import Foundation

/// The checksum by which the compiler names files.
enum MD5 {
    private static let shifts: [[UInt32]] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]]
    private static let constants: [UInt32] = (1...64).map { (number: Int) -> UInt32 in
        UInt32(abs(sin(Double(number))) * 4_294_967_296)
    }

    /// The checksum in capital letters.
    static func hexadecimal(of bytes: [UInt8]) -> String {
        var message = bytes + [0x80]
        while message.count % 64 != 56 { message.append(0) }
        let bitCount = UInt64(bytes.count) * 8
        for index in UInt64(0)..<8 { message.append(UInt8(truncatingIfNeeded: bitCount >> (8 * index))) }
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476]
        for start in stride(from: 0, to: message.count, by: 64) {
            var block: [UInt32] = []
            for word in stride(from: start, to: start + 64, by: 4) {
                let bytes = message[word..<word + 4].reversed()
                block.append(bytes.reduce(0) { $0 << 8 | UInt32($1) })
            }
            mix(block, into: &state)
        }
        return hexadecimal(state)
    }

    private static func hexadecimal(_ state: [UInt32]) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for word in state {
            for index in UInt32(0)..<4 {
                let byte = Int(word >> (8 * index) & 0xFF)
                text += [digits[byte >> 4], digits[byte & 15]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func mix(_ block: [UInt32], into state: inout [UInt32]) {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        for round in 0..<64 {
            let mixed: UInt32
            let index: Int
            switch round / 16 {
            case 0: (mixed, index) = ((b & c) | (~b & d), round)
            case 1: (mixed, index) = ((d & b) | (~d & c), (5 * round + 1) % 16)
            case 2: (mixed, index) = (b ^ c ^ d, (3 * round + 5) % 16)
            default: (mixed, index) = (c ^ (b | ~d), (7 * round) % 16)
            }
            let sum = a &+ mixed &+ constants[round] &+ block[index]
            (a, d, c) = (d, c, b)
            let shift = shifts[round / 16][round % 4]
            b = b &+ (sum << shift | sum >> (32 - shift))
        }
        state[0] &+= a
        state[1] &+= b
        state[2] &+= c
        state[3] &+= d
    }
}
