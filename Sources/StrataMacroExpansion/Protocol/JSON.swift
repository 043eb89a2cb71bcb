#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A JSON value.
///
/// Strings stay bytes until they are read as text: each message contains some ten kilobytes of build configuration that
/// no macro here reads.
enum JSON {
    case null
    case bool(Bool)
    case number(Double)
    case string(ArraySlice<UInt8>)
    case array([JSON])
    case object([(key: String, value: JSON)])

    /// The value of a member of an object; `nil` if this is not an object or has no such member.
    subscript(key: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.key == key }?.value
    }

    /// The text of a string; `nil` for every other value, and for a string with a broken escape.
    var string: String? {
        guard case .string(let raw) = self else { return nil }
        return JSON.unescape(raw)
    }

    /// The value of a number without a fraction.
    var integer: Int? {
        guard case .number(let number) = self else { return nil }
        return Int(exactly: number)
    }

    /// The elements of an array.
    var elements: [JSON]? {
        guard case .array(let elements) = self else { return nil }
        return elements
    }
}

// MARK: - Reading

extension JSON {
    /// The error of a text that is not JSON, with the byte at which it is wrong.
    struct Malformed: Error, Equatable {
        let offset: Int
    }

    /// The deepest nesting of arrays and objects.
    ///
    /// Deeper input is refused instead of exhausting the stack.
    static let depthLimit = 256

    /// Reads a whole text.
    init(parsing bytes: [UInt8]) throws(Malformed) {
        var parser = Parser(bytes: bytes)
        self = try parser.document()
    }

    private struct Parser {
        let bytes: [UInt8]
        var position = 0

        mutating func document() throws(Malformed) -> JSON {
            let value = try value(depth: 0)
            skipWhitespace()
            guard position == bytes.count else { throw malformed }
            return value
        }

        private var malformed: Malformed { Malformed(offset: position) }

        private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

        private mutating func skipWhitespace() {
            while let byte = current, byte == 0x20 || (0x09...0x0D).contains(byte) { position += 1 }
        }

        private mutating func take(_ character: Character) -> Bool {
            skipWhitespace()
            guard current == character.asciiValue else { return false }
            position += 1
            return true
        }

        private mutating func expect(_ character: Character) throws(Malformed) {
            guard take(character) else { throw malformed }
        }

        private mutating func value(depth: Int) throws(Malformed) -> JSON {
            skipWhitespace()
            guard depth < JSON.depthLimit, let byte = current else { throw malformed }
            switch byte {
            case UInt8(ascii: "{"): return try object(depth: depth)
            case UInt8(ascii: "["): return try array(depth: depth)
            case UInt8(ascii: "\""): return .string(try string())
            case UInt8(ascii: "t"): return try word("true", .bool(true))
            case UInt8(ascii: "f"): return try word("false", .bool(false))
            case UInt8(ascii: "n"): return try word("null", .null)
            default: return try number()
            }
        }

        private mutating func object(depth: Int) throws(Malformed) -> JSON {
            var members: [(key: String, value: JSON)] = []
            try expect("{")
            if take("}") { return .object(members) }
            repeat {
                skipWhitespace()
                guard current == UInt8(ascii: "\""), let key = JSON.unescape(try string()) else { throw malformed }
                try expect(":")
                members.append((key, try value(depth: depth + 1)))
            } while take(",")
            try expect("}")
            return .object(members)
        }

        private mutating func array(depth: Int) throws(Malformed) -> JSON {
            var elements: [JSON] = []
            try expect("[")
            if take("]") { return .array(elements) }
            repeat { elements.append(try value(depth: depth + 1)) } while take(",")
            try expect("]")
            return .array(elements)
        }

        /// The bytes between the quotes.
        ///
        /// `memchr` finds the end fast even without optimisation. Plugins are built without it.
        private mutating func string() throws(Malformed) -> ArraySlice<UInt8> {
            let start = position + 1
            let end = bytes.withUnsafeBytes { buffer -> Int? in
                // A quote was read, so the buffer is not empty.
                let base = buffer.baseAddress!
                var search = start
                while search < buffer.count,
                    let found = memchr(base + search, Int32(UInt8(ascii: "\"")), buffer.count - search)
                {
                    let quote = UnsafeRawPointer(found) - base
                    var content = quote
                    while content > start, base.load(fromByteOffset: content - 1, as: UInt8.self) == 0x5C {
                        content -= 1
                    }
                    // An odd number of backslashes before the quote escapes it.
                    if (quote - content) & 1 == 0 { return quote }
                    search = quote + 1
                }
                return nil
            }
            guard let end else { throw malformed }
            position = end + 1
            return bytes[start..<end]
        }

        private mutating func word(_ text: String, _ value: JSON) throws(Malformed) -> JSON {
            guard bytes[position...].starts(with: text.utf8) else { throw malformed }
            position += text.utf8.count
            return value
        }

        private mutating func number() throws(Malformed) -> JSON {
            let start = position
            while let byte = current,
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.eE".utf8.contains(byte)
            { position += 1 }
            guard let number = Double(String(decoding: bytes[start..<position], as: UTF8.self)) else {
                throw Malformed(offset: start)
            }
            return .number(number)
        }
    }

    private static func unescape(_ raw: ArraySlice<UInt8>) -> String? {
        guard raw.contains(UInt8(ascii: "\\")) else { return String(decoding: raw, as: UTF8.self) }
        var units: [UInt8] = []
        units.reserveCapacity(raw.count)
        var index = raw.startIndex

        func hexadecimal() -> UInt32? {
            guard index + 4 <= raw.endIndex else { return nil }
            let digits = raw[index..<index + 4]
            index += 4
            guard digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "-") else { return nil }
            return UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
        }

        while index < raw.endIndex {
            let byte = raw[index]
            index += 1
            guard byte == UInt8(ascii: "\\") else {
                units.append(byte)
                continue
            }
            guard index < raw.endIndex else { return nil }
            let escape = raw[index]
            index += 1
            switch escape {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): units.append(escape)
            case UInt8(ascii: "b"): units.append(0x08)
            case UInt8(ascii: "f"): units.append(0x0C)
            case UInt8(ascii: "n"): units.append(0x0A)
            case UInt8(ascii: "r"): units.append(0x0D)
            case UInt8(ascii: "t"): units.append(0x09)
            case UInt8(ascii: "u"):
                guard var code = hexadecimal() else { return nil }
                if (0xD800..<0xDC00).contains(code) {
                    guard raw[index...].starts(with: "\\u".utf8) else { return nil }
                    index += 2
                    guard let low = hexadecimal(), (0xDC00..<0xE000).contains(low) else { return nil }
                    code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
                }
                guard let scalar = Unicode.Scalar(code) else { return nil }
                units.append(contentsOf: String(scalar).utf8)
            default: return nil
            }
        }
        return String(decoding: units, as: UTF8.self)
    }
}

// MARK: - Writing

extension JSON {
    /// `text` as a JSON string, with its quotes.
    static func quoted(_ text: String) -> String {
        var units: [UInt8] = [UInt8(ascii: "\"")]
        units.reserveCapacity(text.utf8.count + 2)
        for unit in text.utf8 {
            switch unit {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                units.append(UInt8(ascii: "\\"))
                units.append(unit)
            case 0x0A: units.append(contentsOf: "\\n".utf8)
            case 0..<0x20:
                units.append(contentsOf: (unit < 0x10 ? "\\u000" : "\\u00").utf8)
                units.append(contentsOf: String(unit, radix: 16).utf8)
            default: units.append(unit)
            }
        }
        units.append(UInt8(ascii: "\""))
        return String(decoding: units, as: UTF8.self)
    }
}
