/// The error of a text that is not a predicate or an expression, with the position and what was expected there.
///
/// As an `NSError` it has the domain `NSCocoaErrorDomain` and the code of `CocoaError.formatting`.
///
/// ```swift
/// do { _ = try NSPredicate(validating: "price <") } catch let error as PredicateFormatError {
///     print(error.position, error.expected)
/// }
/// ```
public struct PredicateFormatError: LocalizedError, CustomNSError, CustomStringConvertible, Hashable, Sendable {
    /// The text that was parsed, without the contents of its literals, cut off after 200 characters.
    public let format: String
    /// The position of the problem, as an offset in UTF-8 bytes from the start of the text.
    public let position: Int
    /// The parts that the parser would accept there, or the rule that the text breaks.
    public let expected: String
    /// The token at the position; for a value only its kind, never the value itself.
    public let found: String
    /// A few characters around the problem for messages, without the contents of literals.
    public let place: String

    init(format: [UInt8], position: Int, expected: String, found: String) {
        let shown = QuotableText(format, position: position)
        self.format = shown.beginning(200)
        self.position = position
        self.expected = expected
        self.found = String(found.prefix(60))
        place = shown.excerpt
    }

    /// The whole message in one line, with the part of the text around the problem.
    public var description: String {
        "Unable to parse the format string \"\(place)\": at position \(position) expected \(expected), found \(found)."
    }

    /// The whole message in one line.
    public var errorDescription: String? {
        description
    }

    /// `NSCocoaErrorDomain`.
    public static var errorDomain: String {
        NSCocoaErrorDomain
    }

    /// The code of `CocoaError.formatting`.
    public var errorCode: Int {
        CocoaError.Code.formatting.rawValue
    }

    /// The description, under `NSLocalizedDescriptionKey` and `NSLocalizedFailureReasonErrorKey`.
    public var errorUserInfo: [String: Any] {
        [NSLocalizedDescriptionKey: description, NSLocalizedFailureReasonErrorKey: description]
    }
}

/// A text in the format language in a form that messages may quote.
///
/// A literal may be a secret. So the contents of quotation marks, and numbers of many digits, are left out.
package struct QuotableText {
    private var bytes: [UInt8] = []
    /// The position of the problem in the remaining text.
    private var position: Int?

    package init(_ text: String) { self.init(Array(text.utf8), position: 0) }

    init(_ text: [UInt8], position: Int) {
        var index = 0
        while index < text.count {
            if self.position == nil, index >= position { self.position = bytes.count }
            let start = index
            let byte = text[start]
            index += 1
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                while index < text.count, text[index] != byte { index += text[index] == UInt8(ascii: "\\") ? 2 : 1 }
                bytes.append(byte)
                if index > start + 1 { bytes += Self.gap }
                if index < text.count { bytes.append(byte) }
                index += 1
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                while index < text.count, Lexer.continuesName(text[index]) || text[index] == UInt8(ascii: ".") {
                    index += 1
                }
                bytes += index - start > Self.longestNumber ? Self.gap : Array(text[start..<index])
            default:
                if Lexer.continuesName(byte) {
                    while index < text.count, Lexer.continuesName(text[index]) { index += 1 }
                }
                bytes += Array(text[start..<index])
            }
        }
    }

    private static let gap = Array("…".utf8)
    private static let longestNumber = 4

    /// The number of bytes that are quoted before and behind the problem.
    private static let reach = 20

    /// The text within a few bytes of the problem.
    ///
    /// It does not split characters.
    var excerpt: String {
        let position = position ?? bytes.count
        func isInside(_ index: Int) -> Bool { index > 0 && index < bytes.count && bytes[index] & 0xC0 == 0x80 }
        var start = max(0, position - Self.reach)
        var end = min(bytes.count, position + Self.reach)
        while isInside(start) { start -= 1 }
        while isInside(end) { end += 1 }
        let part = String(decoding: bytes[start..<end], as: UTF8.self)
        return (start > 0 ? "…" : "") + part + (end < bytes.count ? "…" : "")
    }

    /// The first characters.
    package func beginning(_ count: Int) -> String { String(String(decoding: bytes, as: UTF8.self).prefix(count)) }
}
