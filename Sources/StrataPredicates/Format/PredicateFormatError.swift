/// Why a text is not a predicate or an expression, where the problem is, and what was expected there.
///
/// As an `NSError` it has the domain `NSCocoaErrorDomain` and the code of `CocoaError.formatting`.
///
/// ```swift
/// do { _ = try NSPredicate(validating: "price <") } catch let error as PredicateFormatError {
///     print(error.position, error.expected)
/// }
/// ```
public struct PredicateFormatError: LocalizedError, CustomNSError, CustomStringConvertible, Hashable, Sendable {
    /// The text that was parsed, cut off after 200 characters.
    public let format: String
    /// The position of the problem, as an offset in UTF-8 bytes from the start of the text.
    public let position: Int
    /// What the parser was looking for, or the rule that the text breaks.
    public let expected: String
    /// What stood there instead, cut off after 40 characters.
    public let found: String
    /// The part of the text around the problem, which messages quote.
    public let place: String

    init(format: [UInt8], position: Int, expected: String, found: String) {
        self.format = String(decoding: format.prefix(200), as: UTF8.self)
        self.position = position
        self.expected = expected
        self.found = String(found.prefix(40))
        place = Self.excerpt(format, around: position)
    }

    /// The text within some bytes of a position, which cuts no character apart.
    private static func excerpt(_ text: [UInt8], around position: Int) -> String {
        let reach = 40
        func isInside(_ index: Int) -> Bool { index > 0 && index < text.count && text[index] & 0xC0 == 0x80 }
        var start = max(0, min(position, text.count) - reach)
        var end = min(text.count, max(position, 0) + reach)
        while isInside(start) { start -= 1 }
        while isInside(end) { end += 1 }
        let part = String(decoding: text[min(start, end)..<end], as: UTF8.self)
        return (start > 0 ? "…" : "") + part + (end < text.count ? "…" : "")
    }

    /// The whole story in one line, with the place in the text, not the whole of it.
    public var description: String {
        "Unable to parse the format string \"\(place)\": at position \(position) expected \(expected), found \(found)."
    }

    /// The whole story in one line.
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

    /// The description, under `NSLocalizedDescriptionKey`.
    public var errorUserInfo: [String: Any] {
        [NSLocalizedDescriptionKey: description]
    }
}
