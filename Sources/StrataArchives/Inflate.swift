import StrataPredicates

/// Unpacks raw DEFLATE data (RFC 1951), the form of a model's copy in a store.
package struct Inflate {
    /// The error for damaged data.
    package struct Malformed: Error {
        package init() {}
    }

    private let input: [UInt8]
    private let limit: Int
    private var output: [UInt8] = []
    private var position = 0
    private var bits: UInt32 = 0
    private var bitCount = 0

    /// The unpacked data.
    ///
    /// - Parameters:
    ///   - data: The packed data. Bytes after the last block are ignored.
    ///   - limit: The maximum number of bytes to unpack. A small file can contain a thousand times its size.
    /// - Returns: The unpacked data.
    /// - Throws: ``Malformed`` if the data is damaged, ends early, or unpacks to more than `limit`.
    package static func inflate(_ data: Data, limit: Int) throws(Malformed) -> Data {
        var inflate = Inflate(input: [UInt8](data), limit: limit)
        while try !inflate.block() {}
        return Data(inflate.output)
    }

    private init(input: [UInt8], limit: Int) {
        self.input = input
        self.limit = limit
    }

    // MARK: - Blocks

    /// Unpacks one block, and returns whether it was the last.
    private mutating func block() throws(Malformed) -> Bool {
        let isLast = try take(1) == 1
        switch try take(2) {
        case 0: try stored()
        case 1: try compressed(literals: Self.fixedLiterals, distances: Self.fixedDistances)
        case 2:
            let (literals, distances) = try codes()
            try compressed(literals: literals, distances: distances)
        default: throw Malformed()
        }
        return isLast
    }

    private mutating func stored() throws(Malformed) {
        // A stored block starts at a whole byte; the remaining bits belong to a byte before it.
        bits = 0
        bitCount = 0
        guard input.count - position >= 4 else { throw Malformed() }
        let length = Int(input[position]) | Int(input[position + 1]) << 8
        let complement = Int(input[position + 2]) | Int(input[position + 3]) << 8
        position += 4
        guard length == ~complement & 0xFFFF, input.count - position >= length, output.count + length <= limit else {
            throw Malformed()
        }
        output += input[position..<(position + length)]
        position += length
    }

    private mutating func compressed(literals: Code, distances: Code) throws(Malformed) {
        while true {
            let symbol = try decode(literals)
            if symbol == 256 { return }
            if symbol < 256 {
                guard output.count < limit else { throw Malformed() }
                output.append(UInt8(symbol))
                continue
            }
            guard symbol - 257 < Self.lengths.count else { throw Malformed() }
            let length = Self.lengths[symbol - 257] + (try take(Self.lengthBits[symbol - 257]))
            let index = try decode(distances)
            guard index < Self.distances.count else { throw Malformed() }
            let distance = Self.distances[index] + (try take(Self.distanceBits[index]))
            guard distance <= output.count, output.count + length <= limit else { throw Malformed() }
            // This copies byte by byte, because the source may overlap the bytes that are being written.
            for _ in 0..<length {
                output.append(output[output.count - distance])
            }
        }
    }

    /// The codes of a block that contains its codes.
    private mutating func codes() throws(Malformed) -> (literals: Code, distances: Code) {
        let literalCount = try take(5) + 257
        let distanceCount = try take(5) + 1
        let orderCount = try take(4) + 4
        guard literalCount <= 286, distanceCount <= 30 else { throw Malformed() }
        var orderLengths = [UInt8](repeating: 0, count: 19)
        for index in 0..<orderCount {
            orderLengths[Self.order[index]] = UInt8(try take(3))
        }
        let order = try Code(lengths: orderLengths, allowsIncomplete: false)
        var lengths: [UInt8] = []
        while lengths.count < literalCount + distanceCount {
            let symbol = try decode(order)
            switch symbol {
            case 0..<16: lengths.append(UInt8(symbol))
            case 16:
                guard let last = lengths.last else { throw Malformed() }
                lengths += Array(repeating: last, count: 3 + (try take(2)))
            case 17: lengths += Array(repeating: 0, count: 3 + (try take(3)))
            default: lengths += Array(repeating: 0, count: 11 + (try take(7)))
            }
        }
        guard lengths.count == literalCount + distanceCount, lengths[256] != 0 else { throw Malformed() }
        return (
            try Code(lengths: Array(lengths[..<literalCount]), allowsIncomplete: true),
            try Code(lengths: Array(lengths[literalCount...]), allowsIncomplete: true)
        )
    }

    // MARK: - Bits

    private mutating func take(_ count: Int) throws(Malformed) -> Int {
        while bitCount < count {
            guard position < input.count else { throw Malformed() }
            bits |= UInt32(input[position]) << UInt32(bitCount)
            position += 1
            bitCount += 8
        }
        let value = Int(bits & (1 << UInt32(count) - 1))
        bits >>= UInt32(count)
        bitCount -= count
        return value
    }

    /// The next symbol.
    ///
    /// Codes of the same length are consecutive numbers, so counting down finds the symbol's place.
    private mutating func decode(_ code: Code) throws(Malformed) -> Int {
        var value = 0
        var first = 0
        var index = 0
        for length in 1...15 {
            value |= try take(1)
            let count = code.counts[length]
            if value - count < first { return Int(code.symbols[index + value - first]) }
            index += count
            first = (first + count) << 1
            value <<= 1
        }
        throw Malformed()
    }

    /// A canonical Huffman code.
    private struct Code: Sendable {
        /// The number of symbols with a code of each length.
        let counts: [Int]
        /// The symbols, in the order of their codes.
        let symbols: [UInt16]

        /// Makes the code from the length of each symbol's code, which is 0 for symbols that do not occur.
        ///
        /// A code of one symbol leaves half of the codes unused; it is valid if `allowsIncomplete` is true.
        init(lengths: [UInt8], allowsIncomplete: Bool) throws(Malformed) {
            var counts = [Int](repeating: 0, count: 16)
            for length in lengths {
                counts[Int(length)] += 1
            }
            counts[0] = 0
            var free = 1
            for length in 1...15 {
                free = free << 1 - counts[length]
                guard free >= 0 else { throw Malformed() }
            }
            guard free == 0 || (allowsIncomplete && counts.reduce(0, +) <= 1) else { throw Malformed() }
            self.counts = counts
            symbols = (1...15).flatMap { length in
                lengths.indices.filter { Int(lengths[$0]) == length }.map(UInt16.init)
            }
        }

        /// Makes one of the fixed codes, whose lengths are known to be correct.
        init(fixed lengths: [UInt8]) {
            counts = (0...15).map { length in length == 0 ? 0 : lengths.count { Int($0) == length } }
            symbols = (1...15).flatMap { length in
                lengths.indices.filter { Int(lengths[$0]) == length }.map(UInt16.init)
            }
        }
    }

    // MARK: - Tables

    private static let fixedLiterals = Code(
        fixed: Array(repeating: 8, count: 144) + Array(repeating: 9, count: 112) + Array(repeating: 7, count: 24)
            + Array(repeating: 8, count: 8)
    )
    private static let fixedDistances = Code(fixed: Array(repeating: 5, count: 30))
    private static let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

    /// The number of bits after the symbol of a length, and the shortest length of the symbol.
    private static let lengthBits =
        Array(repeating: 0, count: 8) + (1...5).flatMap { Array(repeating: $0, count: 4) } + [0]
    private static let lengths: [Int] = {
        var next = 3
        // The last symbol stands only for 258.
        return lengthBits.dropLast().map { bits in
            defer { next += 1 << bits }
            return next
        } + [258]
    }()

    private static let distanceBits = [0, 0] + (0...13).flatMap { [$0, $0] }
    private static let distances: [Int] = {
        var next = 1
        return distanceBits.map { bits in
            defer { next += 1 << bits }
            return next
        }
    }()
}
