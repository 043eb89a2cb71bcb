// `sqlite3_value` is part of the interface of the inlinable members below.
import CStrataSQLite
import Foundation
import StrataLocks

/// One SQL value in SQLite's own memory: a column of the current row, or an argument of a function.
///
/// It is a view without ownership: valid until the statement is stepped or reset, or until the function returns.
/// Reading the type and then the content of the value is markedly cheaper than the `sqlite3_column_*` functions, each
/// of which looks the column up again. It is legal because a connection is used by one thread at a time.
///
/// It is public, like all types that are used for each row, because the compiler inlines nothing across modules that is
/// only `package` (measured with Swift 6.3). The module is no product, so this is no API of the package.
public struct Value {
    @usableFromInline let raw: OpaquePointer?

    @inlinable
    init(raw: OpaquePointer?) {
        self.raw = raw
    }

    /// The five types of SQLite, with its numbers.
    public enum Kind: Int32, Sendable {
        case integer = 1
        case real = 2
        case text = 3
        case blob = 4
        case null = 5
    }

    /// The type of the value as it is stored.
    @inlinable
    public var kind: Kind {
        Kind(rawValue: sqlite3_value_type(raw)) ?? .null
    }

    /// Whether the value is NULL.
    @inlinable
    public var isNull: Bool {
        sqlite3_value_type(raw) == SQLITE_NULL
    }

    /// The value as an integer, converted by SQLite's rules; 0 for NULL.
    @inlinable
    public var int64: Int64 {
        sqlite3_value_int64(raw)
    }

    /// The value as a floating-point number, converted by SQLite's rules; 0 for NULL.
    ///
    /// Columns of NUMERIC affinity (dates, decimals) hold a whole number as an integer; this reads both.
    @inlinable
    public var double: Double {
        sqlite3_value_double(raw)
    }

    /// The text, with invalid UTF-8 repaired; empty for NULL.
    @inlinable
    public var string: String {
        String(ofUTF8: utf8)
    }

    /// The UTF-8 bytes of the text, unchecked and in place; numbers are converted to text first.
    @inlinable
    public var utf8: UnsafeBufferPointer<UInt8> {
        // The order matters: the length is known only after the conversion to text.
        let start = sqlite3_value_text(raw)
        return UnsafeBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(raw)))
    }

    /// The bytes of a blob (or of a text), in place.
    @inlinable
    public var bytes: UnsafeRawBufferPointer {
        let start = sqlite3_value_blob(raw)
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(raw)))
    }

    /// A copy of the bytes of a blob (or of a text).
    @inlinable
    public var data: Data {
        let bytes = bytes
        guard let start = bytes.baseAddress else { return Data() }
        return Data(bytes: start, count: bytes.count)
    }

    /// The UUID in a blob of 16 bytes; `nil` for anything else.
    @inlinable
    public var uuid: UUID? {
        let bytes = bytes
        guard bytes.count == 16 else { return nil }
        return UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
    }

    /// The integer, or `nil` for NULL.
    @inlinable
    public var optionalInt64: Int64? {
        isNull ? nil : int64
    }

    /// The floating-point number, or `nil` for NULL.
    @inlinable
    public var optionalDouble: Double? {
        isNull ? nil : double
    }

    /// The text, or `nil` for NULL.
    @inlinable
    public var optionalString: String? {
        // The order matters: the length is known only after the conversion to text.
        guard let start = sqlite3_value_text(raw) else { return nil }
        return String(ofUTF8: UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(raw))))
    }

    /// The bytes, or `nil` for NULL.
    @inlinable
    public var optionalData: Data? {
        isNull ? nil : data
    }
}
