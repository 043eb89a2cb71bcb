import Foundation

/// The parts of the URI of an object ID: `x-coredata://STORE/Entity/p1`, or `x-coredata:///Entity/tUUID`.
///
/// Programs such as servers make an ID of a URI for each request. So the text is read as bytes, and not as characters.
struct ObjectURI {
    /// The UUID of the store; empty for a temporary ID.
    let store: Substring
    let entityName: String
    let isTemporary: Bool
    /// The text that represents the key, after its mark.
    let key: Substring

    /// Takes a URI apart; `nil` if it is not the URI of an object.
    init?(_ uri: String) {
        let bytes = uri.utf8
        guard bytes.starts(with: Self.scheme.utf8) else { return nil }
        let start = bytes.index(bytes.startIndex, offsetBy: Self.scheme.utf8.count)
        let slash = UInt8(ascii: "/")
        guard let first = bytes[start...].firstIndex(of: slash) else { return nil }
        let name = bytes.index(after: first)
        guard let second = bytes[name...].firstIndex(of: slash) else { return nil }
        let mark = bytes.index(after: second)
        guard mark < bytes.endIndex, !bytes[mark...].contains(slash) else { return nil }
        switch bytes[mark] {
        case UInt8(ascii: "t"): isTemporary = true
        case UInt8(ascii: "p"): isTemporary = false
        default: return nil
        }
        store = uri[start..<first]
        let escaped = uri[name..<second]
        let isEscaped = escaped.utf8.contains(UInt8(ascii: "%"))
        entityName = (isEscaped ? escaped.removingPercentEncoding : nil) ?? String(escaped)
        key = uri[bytes.index(after: mark)...]
    }

    private static let scheme = "x-coredata://"
}
