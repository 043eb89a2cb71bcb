import StrataPredicates

/// A binary property list as a flat table of nodes that refer to each other by index.
///
/// `PropertyListSerialization` builds a tree and cannot represent the UIDs of keyed archives. The table represents
/// them. A list that refers to the same node many times needs no more space here than in the file. The time and memory
/// for reading are proportional to the length of the data, whatever its contents.
package struct BinaryPropertyList {
    /// One value.
    ///
    /// Containers hold the indices of their parts.
    package enum Node {
        case null
        case bool(Bool)
        case integer(Int64)
        /// An integer above the largest `Int64`.
        case large(UInt64)
        case real(Double)
        /// Seconds since 2001.
        case date(Double)
        case data(Data)
        case string(String)
        /// In a keyed archive, the number of an object.
        case uid(Int)
        case array([Int])
        case dictionary([String: Int])
    }

    /// The error for damaged data.
    package struct Malformed: Error {
        package init() {}
    }

    package private(set) var nodes: [Node]
    package private(set) var root: Int

    /// Makes an empty table, to be filled with ``append(_:)``.
    package init() {
        nodes = []
        root = 0
    }

    /// The node at an index, or `nil`.
    package subscript(_ index: Int) -> Node? { nodes.indices.contains(index) ? nodes[index] : nil }

    /// Adds a node and returns its index.
    ///
    /// The last node that was added is the root.
    package mutating func append(_ node: Node) -> Int {
        nodes.append(node)
        root = nodes.count - 1
        return root
    }

    /// Replaces a node that was added before its parts were known.
    mutating func replace(_ index: Int, with node: Node) {
        nodes[index] = node
    }

    // MARK: - Reading

    /// Reads a binary property list.
    ///
    /// - Throws: ``Malformed`` if the data is none.
    package init(_ data: Data) throws(Malformed) {
        var reader = try Reader(bytes: [UInt8](data))
        nodes = try reader.nodes()
        root = reader.top
    }

    private struct Reader {
        let bytes: [UInt8]
        let top: Int
        private let count: Int
        private let referenceSize: Int
        private let offsetSize: Int
        private let tableStart: Int
        /// The number of bytes of content that may still be read.
        ///
        /// Nodes of a regular file do not overlap.
        private var budget: Int

        init(bytes: [UInt8]) throws(Malformed) {
            self.bytes = bytes
            budget = bytes.count
            guard bytes.count >= 40, bytes.starts(with: "bplist".utf8) else { throw Malformed() }
            let trailer = bytes.count - 32
            offsetSize = Int(bytes[trailer + 6])
            referenceSize = Int(bytes[trailer + 7])
            guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else { throw Malformed() }
            count = try Self.integer(bytes, at: trailer + 8, size: 8, limit: trailer + 16)
            top = try Self.integer(bytes, at: trailer + 16, size: 8, limit: trailer + 24)
            tableStart = try Self.integer(bytes, at: trailer + 24, size: 8, limit: trailer + 32)
            guard count > 0, top < count, tableStart >= 8, tableStart < trailer, count <= bytes.count,
                count * offsetSize <= trailer - tableStart
            else { throw Malformed() }
        }

        mutating func nodes() throws(Malformed) -> [Node] {
            // Keys are references by index, and may follow the dictionary, so dictionaries are made last.
            var nodes: [Node] = []
            nodes.reserveCapacity(count)
            var dictionaries: [(index: Int, references: [Int])] = []
            for index in 0..<count {
                let offset = try integer(at: tableStart + index * offsetSize, size: offsetSize, limit: bytes.count - 32)
                guard offset >= 8, offset < tableStart else { throw Malformed() }
                let marker = bytes[offset]
                if marker >> 4 == 0xD {
                    var start = offset + 1
                    let pairs = try length(marker, &start)
                    guard pairs <= bytes.count / 2 else { throw Malformed() }
                    dictionaries.append((index, try references(pairs * 2, at: start)))
                    nodes.append(.null)
                } else {
                    nodes.append(try node(marker, at: offset + 1))
                }
            }
            for (index, references) in dictionaries {
                let half = references.count / 2
                var entries: [String: Int] = Dictionary(minimumCapacity: half)
                for position in 0..<half {
                    guard case .string(let key) = nodes[references[position]] else { throw Malformed() }
                    entries[key] = references[half + position]
                }
                nodes[index] = .dictionary(entries)
            }
            return nodes
        }

        private mutating func node(_ marker: UInt8, at position: Int) throws(Malformed) -> Node {
            var start = position
            let low = Int(marker & 0xF)
            switch marker >> 4 {
            case 0x0:
                switch low {
                case 0: return .null
                case 8: return .bool(false)
                case 9: return .bool(true)
                default: throw Malformed()
                }
            case 0x1: return try integerNode(size: 1 << low, at: start)
            case 0x2, 0x3:
                let isDate = marker >> 4 == 3
                switch low {
                case 2 where !isDate:
                    return .real(Double(Float(bitPattern: UInt32(truncatingIfNeeded: try bits(4, start)))))
                case 3:
                    let value = Double(bitPattern: try bits(8, start))
                    return isDate ? .date(value) : .real(value)
                default: throw Malformed()
                }
            case 0x4:
                let count = try length(marker, &start)
                return .data(Data(try slice(count, at: start)))
            case 0x5:
                let count = try length(marker, &start)
                return .string(String(decoding: try slice(count, at: start), as: UTF8.self))
            case 0x6:
                let count = try length(marker, &start)
                guard count <= bytes.count else { throw Malformed() }
                let units = try slice(count * 2, at: start)
                let pairs = stride(from: units.startIndex, to: units.endIndex, by: 2)
                return .string(
                    String(decoding: pairs.map { UInt16(units[$0]) << 8 | UInt16(units[$0 + 1]) }, as: UTF16.self)
                )
            case 0x8: return .uid(try integer(at: start, size: low + 1, limit: tableStart))
            case 0xA, 0xB, 0xC:
                let count = try length(marker, &start)
                return .array(try references(count, at: start))
            default: throw Malformed()
            }
        }

        private mutating func integerNode(size: Int, at start: Int) throws(Malformed) -> Node {
            switch size {
            case 1, 2, 4: return .integer(Int64(try bits(size, start)))
            case 8: return .integer(Int64(bitPattern: try bits(8, start)))
            case 16:
                let (high, low) = (try bits(8, start), try bits(8, start + 8))
                guard high == 0 || high == .max else { throw Malformed() }
                if high == 0, low > Int64.max { return .large(low) }
                return .integer(Int64(bitPattern: low))
            default: throw Malformed()
            }
        }

        private func bits(_ size: Int, _ start: Int) throws(Malformed) -> UInt64 {
            guard start + size <= tableStart else { throw Malformed() }
            return bytes[start..<(start + size)].reduce(0) { $0 << 8 | UInt64($1) }
        }

        /// The length of a string, data or container, which is in the marker, or in an integer after it.
        private func length(_ marker: UInt8, _ start: inout Int) throws(Malformed) -> Int {
            let low = Int(marker & 0xF)
            guard low == 0xF else { return low }
            guard start < tableStart, bytes[start] >> 4 == 1, bytes[start] & 0xF <= 3 else { throw Malformed() }
            let size = 1 << Int(bytes[start] & 0xF)
            defer { start += 1 + size }
            return try integer(at: start + 1, size: size, limit: tableStart)
        }

        private mutating func slice(_ count: Int, at start: Int) throws(Malformed) -> ArraySlice<UInt8> {
            guard count <= budget, start <= tableStart, count <= tableStart - start else { throw Malformed() }
            budget -= count
            return bytes[start..<(start + count)]
        }

        private mutating func references(_ count: Int, at start: Int) throws(Malformed) -> [Int] {
            guard count <= bytes.count else { throw Malformed() }
            let slice = try slice(count * referenceSize, at: start)
            var found: [Int] = []
            found.reserveCapacity(count)
            for position in stride(from: slice.startIndex, to: slice.endIndex, by: referenceSize) {
                let index = try integer(at: position, size: referenceSize, limit: tableStart)
                guard index < self.count else { throw Malformed() }
                found.append(index)
            }
            return found
        }

        private func integer(at start: Int, size: Int, limit: Int) throws(Malformed) -> Int {
            try Self.integer(bytes, at: start, size: size, limit: limit)
        }

        /// A big-endian integer that is not too large for an `Int`.
        private static func integer(
            _ bytes: [UInt8],
            at start: Int,
            size: Int,
            limit: Int
        ) throws(Malformed) -> Int {
            guard start >= 0, size <= limit, start <= limit - size else { throw Malformed() }
            var value: UInt64 = 0
            for byte in bytes[start..<(start + size)] {
                guard value >> 55 == 0 else { throw Malformed() }
                value = value << 8 | UInt64(byte)
            }
            return Int(value)
        }
    }

    // MARK: - Writing

    /// Encodes the table as a binary property list.
    package func encoded() -> Data {
        // Keys become separate nodes, after all others.
        var keys = Set<String>()
        for case .dictionary(let entries) in nodes {
            keys.formUnion(entries.keys)
        }
        let sortedKeys = keys.sorted()
        let keyIndices = Dictionary(uniqueKeysWithValues: zip(sortedKeys, nodes.count...))
        let all = nodes + sortedKeys.map(Node.string)
        let referenceSize = Self.size(of: all.count)
        var bytes = [UInt8]("bplist00".utf8)
        var offsets: [Int] = []
        for node in all {
            offsets.append(bytes.count)
            Self.append(node, to: &bytes, referenceSize: referenceSize, keyIndices: keyIndices)
        }
        let tableStart = bytes.count
        let offsetSize = Self.size(of: tableStart)
        for offset in offsets {
            Self.append(UInt64(offset), size: offsetSize, to: &bytes)
        }
        bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
        for number in [all.count, root, tableStart] {
            Self.append(UInt64(number), size: 8, to: &bytes)
        }
        return Data(bytes)
    }

    private static func append(
        _ node: Node,
        to bytes: inout [UInt8],
        referenceSize: Int,
        keyIndices: [String: Int]
    ) {
        func appendMarker(_ kind: UInt8, _ length: Int) {
            if length < 0xF { return bytes.append(kind << 4 | UInt8(length)) }
            bytes.append(kind << 4 | 0xF)
            append(.integer(Int64(length)), to: &bytes, referenceSize: referenceSize, keyIndices: keyIndices)
        }
        func appendReferences(_ references: some Sequence<Int>) {
            for reference in references {
                append(UInt64(reference), size: referenceSize, to: &bytes)
            }
        }
        switch node {
        case .null: bytes.append(0)
        case .bool(let value): bytes.append(value ? 9 : 8)
        case .integer(let value):
            let size = value < 0 ? 8 : Self.size(of: Int(value))
            bytes.append(0x10 | UInt8(size.trailingZeroBitCount))
            append(UInt64(bitPattern: value), size: size, to: &bytes)
        case .large(let value):
            bytes.append(0x14)
            append(0, size: 8, to: &bytes)
            append(value, size: 8, to: &bytes)
        case .real(let value):
            bytes.append(0x23)
            append(value.bitPattern, size: 8, to: &bytes)
        case .date(let value):
            bytes.append(0x33)
            append(value.bitPattern, size: 8, to: &bytes)
        case .data(let value):
            appendMarker(4, value.count)
            bytes += value
        case .string(let value):
            if value.utf8.allSatisfy({ $0 < 0x80 }) {
                appendMarker(5, value.utf8.count)
                bytes += value.utf8
            } else {
                appendMarker(6, value.utf16.count)
                for unit in value.utf16 {
                    append(UInt64(unit), size: 2, to: &bytes)
                }
            }
        case .uid(let value):
            let size = Self.size(of: value)
            bytes.append(0x80 | UInt8(size - 1))
            append(UInt64(value), size: size, to: &bytes)
        case .array(let parts):
            appendMarker(0xA, parts.count)
            appendReferences(parts)
        case .dictionary(let entries):
            appendMarker(0xD, entries.count)
            let sorted = entries.sorted { $0.key < $1.key }
            appendReferences(sorted.compactMap { keyIndices[$0.key] })
            appendReferences(sorted.map(\.value))
        }
    }

    private static func append(_ value: UInt64, size: Int, to bytes: inout [UInt8]) {
        for shift in stride(from: (size - 1) * 8, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
        }
    }

    /// The number of bytes for a number: 1, 2, 4 or 8.
    private static func size(of number: Int) -> Int {
        number <= 0xFF ? 1 : number <= 0xFFFF ? 2 : number <= 0xFFFF_FFFF ? 4 : 8
    }
}
