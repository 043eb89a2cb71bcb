/// A word, literal or sign of Swift source.
package struct Token: Equatable {
    package enum Kind: Equatable {
        /// A word, with its back-ticks if it has them; keywords are words like any other.
        case word
        case number
        case string
        case regex
        /// One character, or the arrow `->`.
        case sign
        /// A literal that does not end.
        case broken
    }

    package let kind: Kind
    package let range: Range<Int>
    package let text: String
    /// Whether white space or a comment comes before it.
    package let isSpaced: Bool
    /// Whether it is the first of its line.
    package let startsLine: Bool
}

/// Splits Swift source into tokens and drops white space and comments.
///
/// It knows where literals and comments end. That is enough to find a declaration's parts and to match its brackets. It
/// does not know operators, which become single signs.
package struct Tokenizer {
    private let bytes: [UInt8]
    private var position = 0
    private var previous: Token?

    private init(_ source: String) {
        bytes = Array(source.utf8)
        // Some editors begin a file with a byte order mark, which is not part of a word.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    package static func tokens(of source: String) -> [Token] {
        var tokenizer = Tokenizer(source)
        var tokens: [Token] = []
        while let token = tokenizer.next() { tokens.append(token) }
        return tokens
    }

    private mutating func next() -> Token? {
        let gap = skipTrivia()
        guard position < bytes.count else { return nil }
        let start = position
        let kind = scan()
        let token = Token(
            kind: kind,
            range: start..<position,
            text: String(decoding: bytes[start..<position], as: UTF8.self),
            isSpaced: gap.isSpaced,
            startsLine: gap.hasNewline || previous == nil
        )
        previous = token
        return token
    }

    private func byte(_ offset: Int = 0) -> UInt8? {
        position + offset < bytes.count ? bytes[position + offset] : nil
    }

    private func matches(_ text: StaticString, at offset: Int = 0) -> Bool {
        text.withUTF8Buffer { bytes[min(position + offset, bytes.count)...].starts(with: $0) }
    }

    // MARK: - White space and comments

    private mutating func skipTrivia() -> (isSpaced: Bool, hasNewline: Bool) {
        let start = position
        var hasNewline = false
        while let byte = byte() {
            if byte == 0x0A || byte == 0x0D {
                hasNewline = true
                position += 1
            } else if byte == 0x20 || byte == 0x09 || byte == 0x0B || byte == 0x0C || byte == 0 {
                position += 1
            } else if matches("//") {
                while let byte = self.byte(), byte != 0x0A, byte != 0x0D { position += 1 }
            } else if matches("/*") {
                skipBlockComment()
            } else {
                break
            }
        }
        return (position > start, hasNewline)
    }

    private mutating func skipBlockComment() {
        var depth = 0
        repeat {
            if matches("/*") {
                depth += 1
                position += 2
            } else if matches("*/") {
                depth -= 1
                position += 2
            } else {
                position += 1
            }
        } while depth > 0 && position < bytes.count
    }

    // MARK: - Tokens

    private mutating func scan() -> Token.Kind {
        let first = bytes[position]
        if Self.isWordByte(first) {
            let isNumber = Self.isDigit(first)
            while let byte = byte() {
                let isFraction = isNumber && byte == UInt8(ascii: ".") && self.byte(1).map(Self.isDigit) == true
                guard Self.isWordByte(byte) || isFraction else { break }
                position += 1
            }
            return isNumber ? .number : .word
        }
        switch first {
        case UInt8(ascii: "`"): return scanQuotedWord()
        case UInt8(ascii: "\""): return scanString(hashes: 0)
        case UInt8(ascii: "#"):
            var hashes = 1
            while byte(hashes) == UInt8(ascii: "#") { hashes += 1 }
            if byte(hashes) == UInt8(ascii: "\"") {
                position += hashes
                return scanString(hashes: hashes)
            }
            if byte(hashes) == UInt8(ascii: "/") {
                position += hashes + 1
                return scanExtendedRegex(hashes: hashes)
            }
        case UInt8(ascii: "/"):
            if let end = endOfRegex() {
                position = end
                return .regex
            }
        case UInt8(ascii: "-") where byte(1) == UInt8(ascii: ">"):
            position += 1
        default: break
        }
        position += 1
        return .sign
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...: true
        default: false
        }
    }

    private mutating func scanQuotedWord() -> Token.Kind {
        position += 1
        while let byte = byte(), byte != 0x0A {
            position += 1
            if byte == UInt8(ascii: "`") { return .word }
        }
        return .broken
    }

    // MARK: - Strings

    /// Skips a string literal whose opening quote is the current byte, and its interpolations.
    private mutating func scanString(hashes: Int) -> Token.Kind {
        let isMultiline = matches("\"\"\"") && !endsOnLine(hashes: hashes)
        let quotes = isMultiline ? 3 : 1
        position += quotes
        while let byte = byte() {
            if byte == UInt8(ascii: "\\"), isHashes(hashes, at: 1) {
                position += 1 + hashes
                if self.byte() == UInt8(ascii: "(") {
                    skipInterpolation()
                } else {
                    position += 1
                }
            } else if byte == UInt8(ascii: "\""), !isMultiline || matches("\"\"\""), isHashes(hashes, at: quotes) {
                position += quotes + hashes
                return .string
            } else if byte == 0x0A, !isMultiline {
                return .broken
            } else {
                position += 1
            }
        }
        position = bytes.count
        return .broken
    }

    /// Whether a raw string that seems to begin with three quotes ends on its line, as in `#"""#`, a single quote.
    private func endsOnLine(hashes: Int) -> Bool {
        guard hashes > 0 else { return false }
        var offset = 1
        while let byte = byte(offset), byte != 0x0A, byte != 0x0D {
            offset += 1
            if byte == UInt8(ascii: "\""), isHashes(hashes, at: offset) { return true }
        }
        return false
    }

    private func isHashes(_ count: Int, at offset: Int) -> Bool {
        (0..<count).allSatisfy { byte(offset + $0) == UInt8(ascii: "#") }
    }

    private mutating func skipInterpolation() {
        let outer = previous
        var depth = 0
        repeat {
            guard let token = next() else { break }
            if token.text == "(" { depth += 1 }
            if token.text == ")" { depth -= 1 }
        } while depth > 0
        previous = outer
    }

    // MARK: - Regular expressions

    private mutating func scanExtendedRegex(hashes: Int) -> Token.Kind {
        while let byte = byte() {
            if byte == UInt8(ascii: "/"), isHashes(hashes, at: 1) {
                position += 1 + hashes
                return .regex
            }
            position += byte == UInt8(ascii: "\\") ? 2 : 1
        }
        position = bytes.count
        return .broken
    }

    /// The end of a bare regular expression that begins here; `nil` if the slash is an operator.
    ///
    /// The rule is the compiler's: an expression may begin here, no space follows the slash, and the line closes it.
    private func endOfRegex() -> Int? {
        if let previous {
            switch previous.kind {
            case .word:
                let openers = [
                    "return", "in", "case", "try", "await", "throw", "where", "if", "while", "switch", "else",
                ]
                guard openers.contains(previous.text) else { return nil }
            case .sign:
                guard ![")", "]", "}", ">", "?", "!"].contains(previous.text) else { return nil }
            case .number, .string, .regex, .broken: return nil
            }
        }
        var end = position + 1
        guard end < bytes.count, bytes[end] != 0x20, bytes[end] != 0x09 else { return nil }
        while end < bytes.count, bytes[end] != 0x0A {
            if bytes[end] == UInt8(ascii: "/") { return end + 1 }
            end += bytes[end] == UInt8(ascii: "\\") ? 2 : 1
        }
        return nil
    }
}
