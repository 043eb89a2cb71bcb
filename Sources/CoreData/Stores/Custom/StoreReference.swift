import Foundation

/// How a custom store names an object: the reference object, as it is compared and written into URIs.
enum StoreReference: Hashable, Sendable {
    case number(Int64)
    case text(String)

    /// Reads a reference object.
    ///
    /// - Returns: `nil` for anything but a text or a whole number, which no URI could bring back.
    init?(_ object: Any) {
        switch object {
        case let text as String: self = .text(text)
        case let text as NSString: self = .text(text as String)
        case let number as any BinaryInteger:
            guard let exact = Int64(exactly: number) else { return nil }
            self = .number(exact)
        case let number as NSNumber:
            guard let exact = Int64(exactly: number) else { return nil }
            self = .number(exact)
        default: return nil
        }
    }

    /// The last component of the URI, without its leading `p`.
    ///
    /// A text that reads as a number, or begins with an apostrophe, is marked by an apostrophe.
    var uriText: String {
        switch self {
        case .number(let number): return "\(number)"
        case .text(let text):
            let isAmbiguous = Int64(text) != nil || text.hasPrefix("'")
            let marked = isAmbiguous ? "'" + text : text
            return marked.addingPercentEncoding(withAllowedCharacters: Self.plain) ?? ""
        }
    }

    init?(uriText: Substring) {
        guard let text = uriText.removingPercentEncoding else { return nil }
        if let number = Int64(text) {
            self = .number(number)
        } else {
            self = .text(text.hasPrefix("'") ? String(text.dropFirst()) : text)
        }
    }

    /// The reference object for users, when they have not shown the one they use.
    var object: Any {
        switch self {
        case .number(let number): NSNumber(value: number)
        case .text(let text): text
        }
    }

    private static let plain = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~'"
    )
}
