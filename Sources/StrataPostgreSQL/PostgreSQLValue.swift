import Foundation

/// A type of the server, by its number.
package enum PostgreSQLType: UInt32, Sendable {
    case unknown = 0
    case bool = 16
    case bytea = 17
    case int8 = 20
    case text = 25
    case float8 = 701
    case numeric = 1700
    case uuid = 2950
    case boolArray = 1000
    case byteaArray = 1001
    case textArray = 1009
    case int8Array = 1016
    case float8Array = 1022
    case numericArray = 1231
    case uuidArray = 2951

    /// The type of arrays of such values.
    package var array: PostgreSQLType {
        switch self {
        case .bool: .boolArray
        case .bytea: .byteaArray
        case .int8: .int8Array
        case .text: .textArray
        case .float8: .float8Array
        case .numeric: .numericArray
        case .uuid: .uuidArray
        default: .unknown
        }
    }

    /// The type as CAST names it.
    package var name: String {
        switch self {
        case .unknown: "unknown"
        case .bool: "boolean"
        case .bytea: "bytea"
        case .int8: "bigint"
        case .text: "text"
        case .float8: "double precision"
        case .numeric: "numeric"
        case .uuid: "uuid"
        case .boolArray: "boolean[]"
        case .byteaArray: "bytea[]"
        case .textArray: "text[]"
        case .int8Array: "bigint[]"
        case .float8Array: "double precision[]"
        case .numericArray: "numeric[]"
        case .uuidArray: "uuid[]"
        }
    }
}

/// A value for a parameter of a statement, sent in the server's binary form.
package enum PostgreSQLValue: Sendable, Hashable {
    case null(PostgreSQLType)
    case bool(Bool)
    case int8(Int64)
    case float8(Double)
    case text(String)
    case bytea(Data)
    case uuid(UUID)
    case numeric(Decimal)
    case array(PostgreSQLArray)

    package var type: PostgreSQLType {
        switch self {
        case .null(let type): type
        case .bool: .bool
        case .int8: .int8
        case .float8: .float8
        case .text: .text
        case .bytea: .bytea
        case .uuid: .uuid
        case .numeric: .numeric
        case .array(let array): array.element.array
        }
    }

    /// About as many bytes as ``write(to:)`` appends.
    package var writtenCount: Int {
        switch self {
        case .null, .bool, .int8, .float8, .uuid, .numeric: 16
        case .text(let value): value.utf8.count
        case .bytea(let value): value.count
        case .array(let array): array.byteCount + 20
        }
    }

    /// Appends the bytes of the value; nothing for null.
    package func write(to bytes: inout [UInt8]) {
        switch self {
        case .null: break
        case .bool(let value): bytes.append(value ? 1 : 0)
        case .int8(let value): bytes.append(bigEndian: value)
        case .float8(let value): bytes.append(bigEndian: value.bitPattern)
        case .text(let value): bytes.append(contentsOf: value.utf8)
        case .bytea(let value): bytes.append(contentsOf: value)
        case .uuid(let value): withUnsafeBytes(of: value.uuid) { bytes.append(contentsOf: $0) }
        case .numeric(let value): NumericCoding.write(value, to: &bytes)
        case .array(let array): array.write(to: &bytes)
        }
    }
}

/// Values of one type for one parameter, in the server's binary form from the start.
package struct PostgreSQLArray: Sendable, Hashable {
    package let element: PostgreSQLType
    package private(set) var count = 0
    private var hasNulls = false
    private var bytes = GrowingBytes()

    package init(_ element: PostgreSQLType) { self.element = element }

    /// An empty array with room for as many bytes as another array holds.
    package init(_ element: PostgreSQLType, like other: PostgreSQLArray) {
        self.init(element)
        bytes.reserveCapacity(other.bytes.count + other.bytes.count / 8)
    }

    package init(_ keys: [Int64]) {
        self.init(.int8)
        bytes.reserveCapacity(keys.count * 12)
        for key in keys { append(key) }
    }

    /// The size of the values.
    package var byteCount: Int { bytes.count }

    /// The values, each after its size, while the array exists and does not change; `nil` if there are none.
    var values: UnsafeRawPointer? { bytes.withBytes { $0.baseAddress } }

    /// Makes room for a number of values, if there is no storage yet; values without a fixed size are assumed to be
    /// short.
    package mutating func reserve(_ count: Int) {
        let size =
            switch element {
            case .bool: 5
            case .int8, .float8: 12
            default: 24
            }
        bytes.reserveCapacity(count * size)
    }

    package mutating func append(_ value: PostgreSQLValue) {
        count += 1
        if case .null = value {
            hasNulls = true
            bytes.append(bigEndian: Int32(-1))
            return
        }
        var written: [UInt8] = []
        value.write(to: &written)
        written.withUnsafeBytes { appendSized($0) }
    }

    /// Appends the size of a value, and the value.
    private mutating func appendSized(_ value: UnsafeRawBufferPointer) {
        bytes.append(bigEndian: Int32(value.count))
        bytes.append(contentsOf: value)
    }

    package mutating func appendNull() {
        count += 1
        hasNulls = true
        bytes.append(bigEndian: Int32(-1))
    }

    package mutating func append(_ value: Int64) { appendWord(UInt64(bitPattern: value)) }

    package mutating func append(_ value: Double) { appendWord(value.bitPattern) }

    @inline(__always)
    private mutating func appendWord(_ word: UInt64) {
        count += 1
        // The size and the value are written at once.
        let place = bytes.grow(by: 12)
        place.storeBytes(of: UInt32(8).bigEndian, as: UInt32.self)
        place.storeBytes(of: word.bigEndian, toByteOffset: 4, as: UInt64.self)
    }

    package mutating func append(_ value: Bool) {
        count += 1
        let place = bytes.grow(by: 5)
        place.storeBytes(of: UInt32(1).bigEndian, as: UInt32.self)
        place.storeBytes(of: value ? 1 : 0, toByteOffset: 4, as: UInt8.self)
    }

    package mutating func append(_ text: String) {
        count += 1
        var text = text
        text.withUTF8 { appendSized(UnsafeRawBufferPointer($0)) }
    }

    package mutating func append(_ data: [UInt8]) {
        count += 1
        data.withUnsafeBytes { appendSized($0) }
    }

    package mutating func append(_ data: Data) {
        count += 1
        data.withUnsafeBytes { appendSized($0) }
    }

    fileprivate func write(to target: inout [UInt8]) {
        target.append(bigEndian: Int32(count == 0 ? 0 : 1))
        target.append(bigEndian: Int32(hasNulls ? 1 : 0))
        target.append(bigEndian: Int32(bitPattern: element.rawValue))
        guard count > 0 else { return }
        target.append(bigEndian: Int32(count))
        target.append(bigEndian: Int32(1))
        bytes.withBytes { target.append(contentsOf: $0) }
    }
}

extension [UInt8] {
    @inline(__always)
    mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}

/// The server's binary form of decimal numbers: digits to the base of 10,000.
enum NumericCoding {
    /// Writes a number; NaN becomes the server's NaN.
    static func write(_ value: Decimal, to bytes: inout [UInt8]) {
        guard !value.isNaN else {
            for word in [UInt16(0), 0, 0xC000, 0] { bytes.append(bigEndian: word) }
            return
        }
        var value = value
        let text = NSDecimalString(&value, Locale(identifier: "en_US_POSIX"))
        let isNegative = text.hasPrefix("-")
        let parts = text.drop { $0 == "-" }.split(separator: ".", omittingEmptySubsequences: false)
        var whole = Array(parts[0].utf8)
        var fraction = parts.count > 1 ? Array(parts[1].utf8) : []
        let scale = fraction.count
        while whole.count % 4 != 0 { whole.insert(0x30, at: 0) }
        while fraction.count % 4 != 0 { fraction.append(0x30) }
        var digits = stride(from: 0, to: whole.count + fraction.count, by: 4).map { start -> UInt16 in
            (start..<(start + 4)).reduce(0) { number, index in
                let digit = index < whole.count ? whole[index] : fraction[index - whole.count]
                return number * 10 + UInt16(digit - 0x30)
            }
        }
        var weight = whole.count / 4 - 1
        while digits.first == 0 {
            digits.removeFirst()
            weight -= 1
        }
        while digits.last == 0 { digits.removeLast() }
        if digits.isEmpty { weight = 0 }
        bytes.append(bigEndian: UInt16(digits.count))
        bytes.append(bigEndian: Int16(weight))
        bytes.append(bigEndian: UInt16(isNegative && !digits.isEmpty ? 0x4000 : 0))
        bytes.append(bigEndian: UInt16(scale))
        for digit in digits { bytes.append(bigEndian: digit) }
    }

    /// Reads a number; `nil` for bytes that are no number, and for numbers that a `Decimal` cannot hold: NaN, an
    /// infinity, or more digits than 128 bits have.
    static func read(_ bytes: UnsafeRawBufferPointer) -> Decimal? {
        guard bytes.count >= 8 else { return nil }
        func word(_ index: Int) -> UInt16 {
            UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 2, as: UInt16.self))
        }
        let count = Int(word(0))
        let weight = Int(Int16(bitPattern: word(1)))
        let sign = word(2)
        guard sign == 0 || sign == 0x4000, bytes.count >= 8 + count * 2 else { return nil }
        var mantissa: UInt128 = 0
        func append(_ digits: UInt16, factor: UInt128) -> Bool {
            let product = mantissa.multipliedReportingOverflow(by: factor)
            let sum = product.partialValue.addingReportingOverflow(UInt128(digits))
            mantissa = sum.partialValue
            return !product.overflow && !sum.overflow
        }
        for index in 0..<max(count - 1, 0) {
            // No server sends larger digits, but data from outside must not stop the program.
            guard word(4 + index) < 10_000, append(word(4 + index), factor: 10_000) else { return nil }
        }
        // The last digits are read without the zeros at their end, because with these the mantissa may be too long.
        var exponent = (weight - count + 1) * 4
        if count > 0 {
            var (digits, factor) = (word(3 + count), UInt128(10_000))
            guard digits < 10_000 else { return nil }
            while factor > 1, digits % 10 == 0 {
                (digits, factor) = (digits / 10, factor / 10)
                exponent += 1
            }
            guard append(digits, factor: factor) else { return nil }
        }
        guard mantissa > 0 else { return 0 }
        while mantissa % 10 == 0 {
            mantissa /= 10
            exponent += 1
        }
        // `Decimal` has no room for a larger exponent, but the mantissa may have.
        while exponent > 127 {
            guard append(0, factor: 10) else { return nil }
            exponent -= 1
        }
        guard exponent >= -128 else { return nil }
        let minus = sign == 0 ? "" : "-"
        return Decimal(string: "\(minus)\(mantissa)e\(exponent)", locale: Locale(identifier: "en_US_POSIX"))
    }
}
