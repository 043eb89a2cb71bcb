/// Divides a text into tokens, one at a time.
///
/// The time is proportional to the length of the text. Only the position is kept.
struct Lexer {
    private let text: [UInt8]
    private var position = 0

    init(_ text: [UInt8]) {
        self.text = text
    }

    /// The next token.
    ///
    /// At the end of the text, every call returns an end token.
    mutating func next() throws -> Token {
        while position < text.count, Self.isSpace(text[position]) { position += 1 }
        let start = position
        guard let byte = peek() else { return Token(kind: .end, position: start) }
        let kind: Token.Kind
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): kind = .string(try quoted(by: byte))
        case UInt8(ascii: "0")...UInt8(ascii: "9"): kind = try number()
        case UInt8(ascii: "$"): kind = .variable(try name(after: "$"))
        case UInt8(ascii: "#"): kind = .word(try name(after: "#"), isEscaped: true)
        case UInt8(ascii: "%") where peek(1) == byte:
            position += 2
            kind = .string("%")
        case UInt8(ascii: "%"): kind = .placeholder(try placeholder())
        case _ where Self.startsName(byte): kind = wordOrFunctionName()
        default: kind = .symbol(try symbol())
        }
        return Token(kind: kind, position: start)
    }

    // MARK: - Words

    /// Reads a name, in quotation marks if it is not a word: `#"first name"`.
    private mutating func name(after mark: String) throws -> String {
        let start = position
        position += 1
        if let quote = peek(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
            return try quoted(by: quote)
        }
        guard let byte = peek(), Self.startsName(byte) else {
            throw failure(at: start, expected: "a name after \(mark)", found: character(at: start + 1))
        }
        return word()
    }

    private mutating func word() -> String {
        let start = position
        while let byte = peek(), Self.continuesName(byte) { position += 1 }
        return String(decoding: text[start..<position], as: UTF8.self)
    }

    /// Reads a word, or a function's name if colons follow its parts directly.
    private mutating func wordOrFunctionName() -> Token.Kind {
        var name = word()
        guard peek() == UInt8(ascii: ":"), peek(1) != UInt8(ascii: "=") else { return .word(name, isEscaped: false) }
        while peek() == UInt8(ascii: ":") {
            position += 1
            name += ":"
            if let byte = peek(), Self.startsName(byte) { name += word() }
        }
        return .functionName(name)
    }

    private static func startsName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"),
            0x80...0xFF:
            true
        default: false
        }
    }

    static func continuesName(_ byte: UInt8) -> Bool {
        startsName(byte) || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
    }

    /// Whether a text is a single name, which can be printed without quotation marks.
    static func isName(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, startsName(first) else { return false }
        return text.utf8.allSatisfy(continuesName)
    }

    // MARK: - Strings

    private mutating func quoted(by quote: UInt8) throws -> String {
        let start = position
        var bytes: [UInt8] = []
        position += 1
        while let byte = peek() {
            position += 1
            if byte == quote { return String(decoding: bytes, as: UTF8.self) }
            if byte == UInt8(ascii: "\\") {
                try escape(into: &bytes)
            } else {
                bytes.append(byte)
            }
        }
        throw failure(at: start, expected: "a closing quotation mark", found: "the end of the text")
    }

    /// Reads the characters after a backslash.
    ///
    /// An unknown letter keeps its backslash, so that `'\d+'` is the regular expression that it seems to be.
    private mutating func escape(into bytes: inout [UInt8]) throws {
        let start = position - 1
        guard let byte = peek() else { return }
        position += 1
        switch byte {
        case UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "'"): bytes.append(byte)
        case UInt8(ascii: "n"): bytes.append(0x0A)
        case UInt8(ascii: "r"): bytes.append(0x0D)
        case UInt8(ascii: "t"): bytes.append(0x09)
        case UInt8(ascii: "x"): try appendScalar(digits: 2, start: start, into: &bytes)
        case UInt8(ascii: "u"): try appendScalar(digits: 4, start: start, into: &bytes)
        default: bytes += [UInt8(ascii: "\\"), byte]
        }
    }

    private mutating func appendScalar(digits: Int, start: Int, into bytes: inout [UInt8]) throws {
        var value = try hexadecimal(digits: digits, start: start)
        if 0xD800..<0xDC00 ~= value, peek() == UInt8(ascii: "\\"), peek(1) == UInt8(ascii: "u") {
            position += 2
            let low = try hexadecimal(digits: 4, start: start)
            guard 0xDC00..<0xE000 ~= low else {
                throw failure(
                    at: start,
                    expected: "the second half of a surrogate pair",
                    found: "another code point"
                )
            }
            value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(value) else {
            throw failure(at: start, expected: "a Unicode code point", found: "half of a surrogate pair")
        }
        bytes += Array(String(Character(scalar)).utf8)
    }

    private mutating func hexadecimal(digits: Int, start: Int) throws -> UInt32 {
        guard position + digits <= text.count,
            let value = UInt32(String(decoding: text[position..<(position + digits)], as: UTF8.self), radix: 16)
        else { throw failure(at: start, expected: "\(digits) hexadecimal digits", found: "something else") }
        position += digits
        return value
    }

    // MARK: - Numbers

    private mutating func number() throws -> Token.Kind {
        let start = position
        let kind = try prefixedInteger() ?? decimal()
        if let byte = peek(), Self.continuesName(byte) {
            throw failure(at: start, expected: "a number", found: "digits with letters behind them")
        }
        return kind
    }

    /// Reads a number with the prefix `0x`, `0o` or `0b`.
    private mutating func prefixedInteger() throws -> Token.Kind? {
        guard peek() == UInt8(ascii: "0"), let mark = peek(1) else { return nil }
        let radix: Int
        switch mark {
        case UInt8(ascii: "x"), UInt8(ascii: "X"): radix = 16
        case UInt8(ascii: "o"), UInt8(ascii: "O"): radix = 8
        case UInt8(ascii: "b"), UInt8(ascii: "B"): radix = 2
        default: return nil
        }
        let start = position
        position += 2
        let digits = position
        while let byte = peek(), Self.continuesName(byte) { position += 1 }
        guard let value = UInt64(String(decoding: text[digits..<position], as: UTF8.self), radix: radix) else {
            throw failure(
                at: start,
                expected: "a number of base \(radix) that fits 64 bits",
                found: "other digits, or too many"
            )
        }
        return .integer(value)
    }

    private mutating func decimal() throws -> Token.Kind {
        let start = position
        skipDigits()
        var isInteger = true
        if peek() == UInt8(ascii: "."), let next = peek(1), Self.isDigit(next) {
            isInteger = false
            position += 1
            skipDigits()
        }
        if peek() == UInt8(ascii: "e") || peek() == UInt8(ascii: "E") {
            let hasSign = peek(1) == UInt8(ascii: "+") || peek(1) == UInt8(ascii: "-")
            if let digit = peek(hasSign ? 2 : 1), Self.isDigit(digit) {
                isInteger = false
                position += hasSign ? 2 : 1
                skipDigits()
            }
        }
        let literal = String(decoding: text[start..<position], as: UTF8.self)
        if isInteger, let value = UInt64(literal) { return .integer(value) }
        guard let value = Double(literal) else {
            throw failure(at: start, expected: "a number", found: "other digits")
        }
        return .double(value)
    }

    private mutating func skipDigits() {
        while let byte = peek(), Self.isDigit(byte) { position += 1 }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    // MARK: - Placeholders and symbols

    private mutating func placeholder() throws -> Token.Placeholder {
        let start = position
        position += 1
        while let byte = peek(), "hlqzjtL".utf8.contains(byte) { position += 1 }
        let conversion = peek().map { Character(Unicode.Scalar($0)) }
        position += conversion == nil ? 0 : 1
        switch conversion {
        case "@": return .object
        case "K": return .keyPath
        case "d", "D", "i", "u", "U", "x", "X", "o", "O", "c", "C": return .integer
        case "e", "E", "f", "F", "g", "G", "a", "A": return .double
        case "s", "S": return .string
        default:
            throw failure(
                at: start,
                expected: "a placeholder such as %@, %K, %d or %f",
                found: "% before \(character(at: start + 1))"
            )
        }
    }

    private static let symbols = [
        "==", "!=", "<>", "<=", "=<", ">=", "=>", "&&", "||", "**", "<<", ">>", "=", "<", ">", "!", "(", ")", "{", "}",
        "[",
        "]", ",", ".", "@", "+", "-", "*", "/", "&", "|", "^", "~",
    ]
    private static let symbolBytes = symbols.map { ($0, Array($0.utf8)) }

    private mutating func symbol() throws -> String {
        for (symbol, bytes) in Self.symbolBytes where text[position...].starts(with: bytes) {
            position += bytes.count
            return symbol
        }
        throw failure(at: position, expected: "a predicate", found: character(at: position))
    }

    // MARK: - Text

    private func peek(_ offset: Int = 0) -> UInt8? {
        position + offset < text.count ? text[position + offset] : nil
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || (byte >= 0x09 && byte <= 0x0D)
    }

    /// The character at a place outside of literals, for an error message.
    private func character(at position: Int) -> String {
        guard position < text.count else { return "the end of the text" }
        let character = String(decoding: text[position...].prefix(16), as: UTF8.self).prefix(1)
        return "'\(character)'"
    }

    private func failure(at position: Int, expected: String, found: String) -> PredicateFormatError {
        PredicateFormatError(format: text, position: position, expected: expected, found: found)
    }
}
