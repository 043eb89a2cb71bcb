import StrataPredicates

/// Packs data as raw DEFLATE (RFC 1951), in one block with the fixed codes.
///
/// This is simple, and small enough for data that repeats its names.
package enum Deflate {
    private static let windowSize = 32 * 1024
    private static let longestMatch = 258
    /// The maximum number of earlier places with the same three bytes that are tried.
    private static let mostTries = 32

    /// Packs data; ``Inflate/inflate(_:limit:)`` undoes it.
    ///
    /// - Complexity: O(n).
    package static func deflate(_ data: Data) -> Data {
        let bytes = [UInt8](data)
        var writer = BitWriter()
        // This is the last block, with fixed codes.
        writer.write(1, bits: 1)
        writer.write(1, bits: 2)
        var heads = [Int32](repeating: -1, count: 1 << 15)
        var previous = [Int32](repeating: -1, count: bytes.count)
        var position = 0
        while position < bytes.count {
            let match = longest(at: position, bytes, &heads, &previous)
            guard match.length >= 3 else {
                writer.writeLiteral(Int(bytes[position]))
                position += 1
                continue
            }
            writer.writeMatch(length: match.length, distance: match.distance)
            for skipped in position + 1..<position + match.length { enter(skipped, bytes, &heads, &previous) }
            position += match.length
        }
        writer.writeLiteral(256)
        return writer.finish()
    }

    private static func hash(_ bytes: [UInt8], _ position: Int) -> Int {
        let three = UInt32(bytes[position]) | UInt32(bytes[position + 1]) << 8 | UInt32(bytes[position + 2]) << 16
        return Int((three &* 2_654_435_761) >> 17)
    }

    private static func enter(_ position: Int, _ bytes: [UInt8], _ heads: inout [Int32], _ previous: inout [Int32]) {
        guard position + 2 < bytes.count else { return }
        let slot = hash(bytes, position)
        previous[position] = heads[slot]
        heads[slot] = Int32(position)
    }

    /// The longest run of bytes that has occurred before; it also records the place for later searches.
    private static func longest(
        at position: Int,
        _ bytes: [UInt8],
        _ heads: inout [Int32],
        _ previous: inout [Int32]
    ) -> (length: Int, distance: Int) {
        guard position + 2 < bytes.count else { return (0, 0) }
        enter(position, bytes, &heads, &previous)
        var best = (length: 0, distance: 0)
        var candidate = Int(previous[position])
        var tries = mostTries
        let limit = min(longestMatch, bytes.count - position)
        while candidate >= 0, position - candidate <= windowSize, tries > 0 {
            var length = 0
            while length < limit, bytes[candidate + length] == bytes[position + length] { length += 1 }
            if length > best.length { best = (length, position - candidate) }
            if length == limit { break }
            candidate = Int(previous[candidate])
            tries -= 1
        }
        return best
    }

    /// The smallest length of each length code from 257 on, and the number of extra bits.
    fileprivate static let lengths: [(base: Int, extra: Int)] = [
        (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0), (11, 1), (13, 1), (15, 1), (17, 1), (19, 2),
        (23, 2), (27, 2), (31, 2), (35, 3), (43, 3), (51, 3), (59, 3), (67, 4), (83, 4), (99, 4), (115, 4), (131, 5),
        (163, 5), (195, 5), (227, 5), (258, 0),
    ]

    /// The same values for distances.
    fileprivate static let distances: [(base: Int, extra: Int)] = (0..<30).map { code in
        guard code > 3 else { return (code + 1, 0) }
        let extra = code / 2 - 1
        return ((2 + code % 2) << extra + 1, extra)
    }
}

/// Writes bits, starting with the lowest bit of each byte.
private struct BitWriter {
    private var bytes = Data()
    private var pending: UInt64 = 0
    private var count = 0

    mutating func write(_ value: Int, bits: Int) {
        pending |= UInt64(value) << UInt64(count)
        count += bits
        while count >= 8 {
            bytes.append(UInt8(truncatingIfNeeded: pending))
            pending >>= 8
            count -= 8
        }
    }

    /// Writes a code, whose highest bit comes first.
    private mutating func writeCode(_ code: Int, bits: Int) {
        for bit in stride(from: bits - 1, through: 0, by: -1) { write(code >> bit & 1, bits: 1) }
    }

    mutating func writeLiteral(_ symbol: Int) {
        switch symbol {
        case ..<144: writeCode(0x30 + symbol, bits: 8)
        case ..<256: writeCode(0x190 + symbol - 144, bits: 9)
        case ..<280: writeCode(symbol - 256, bits: 7)
        default: writeCode(0xC0 + symbol - 280, bits: 8)
        }
    }

    mutating func writeMatch(length: Int, distance: Int) {
        let code = Deflate.lengths.lastIndex { $0.base <= length } ?? 0
        writeLiteral(257 + code)
        write(length - Deflate.lengths[code].base, bits: Deflate.lengths[code].extra)
        let place = Deflate.distances.lastIndex { $0.base <= distance } ?? 0
        writeCode(place, bits: 5)
        write(distance - Deflate.distances[place].base, bits: Deflate.distances[place].extra)
    }

    mutating func finish() -> Data {
        if count > 0 { bytes.append(UInt8(truncatingIfNeeded: pending)) }
        return bytes
    }
}
