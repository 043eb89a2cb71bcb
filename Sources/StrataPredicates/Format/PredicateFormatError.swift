/// Why a text is not a predicate or an expression, where the problem is, and what was expected there.
///
/// As an `NSError` it has the domain `NSCocoaErrorDomain` and the code of `CocoaError.formatting`.
public struct PredicateFormatError: LocalizedError, CustomNSError, CustomStringConvertible, Hashable, Sendable {
    /// The text that was parsed, cut off after 200 characters.
    public let format: String
    /// The position of the problem, as an offset in UTF-8 bytes from the start of the text.
    public let position: Int
    /// What the parser was looking for, or the rule that the text breaks.
    public let expected: String
    /// What stood there instead, cut off after 40 characters.
    public let found: String

    init(format: [UInt8], position: Int, expected: String, found: String) {
        self.format = String(decoding: format.prefix(200), as: UTF8.self)
        self.position = position
        self.expected = expected
        self.found = String(found.prefix(40))
    }

    /// The whole story in one line.
    public var description: String {
        "Unable to parse the format string \"\(format)\": at position \(position) expected \(expected), found \(found)."
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
