import CoreDataEssentials
import Foundation

/// A custom store's name for an object: the reference object, in a form that can be compared and written into URIs.
package enum StoreReference: Hashable, Sendable {
    case number(Int64)
    case text(String)

    /// Converts a reference object.
    ///
    /// Returns `nil` for any value except a text or an integer, because a URI could not restore other values.
    package init?(_ object: Any) {
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
    /// A text that looks like a number, or begins with an apostrophe, is marked with an apostrophe.
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

    /// The reference object for custom code, if that code has not passed its own object yet.
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
