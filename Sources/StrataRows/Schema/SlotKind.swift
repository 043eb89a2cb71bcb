/// The form of a slot's value in a row.
public enum SlotKind: UInt8, Sendable {
    /// `Int16`, `Int32`, `Int64` and `Bool`: one word.
    case int
    /// `Double`, `Float`, and `Date` as seconds since the reference date: one word.
    case double
    /// A `String`, or a `URL` as its absolute text: two words, counted.
    case string
    /// `Data`, or a transformable's archive: two words, counted.
    case data
    /// Sixteen raw bytes: two words.
    case uuid
    /// A `Decimal`: three words.
    case decimal
    /// A to-one relationship: the key of the destination, then the number of its concrete entity.
    case reference

    /// The number of 64-bit words the value takes.
    @inlinable
    public var wordCount: Int {
        switch self {
        case .int, .double: 1
        case .string, .data, .uuid, .reference: 2
        case .decimal: 3
        }
    }

    /// Whether the words hold a counted reference, which the row must retain and release.
    @inlinable
    public var isCounted: Bool { self == .string || self == .data }
}
