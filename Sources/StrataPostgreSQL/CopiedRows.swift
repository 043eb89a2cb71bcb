/// Rows for COPY in its binary form, made from columns.
package struct CopiedRows {
    /// How whole numbers are stored in a column.
    package enum Width: Int, Sendable {
        /// As in the array; this also applies to all other values.
        case whole = 0
        case two = 2
        case four = 4
    }

    /// A signature, flags, and the length of what might follow them.
    static let header = Array("PGCOPY\n".utf8) + [0xFF, 0x0D, 0x0A, 0] + Array(repeating: 0, count: 8)
    static let trailer: [UInt8] = [0xFF, 0xFF]

    let bytes: GrowingBytes

    /// Makes rows from columns; `nil` if a number does not fit.
    ///
    /// - Parameters:
    ///   - first: A number of four bytes that each row begins with.
    ///   - columns: The columns after it, all of the same length.
    ///   - widths: The width of the numbers in each column.
    package init?(first: Int32, columns: [PostgreSQLArray], widths: [Width]) {
        let count = columns.first?.count ?? 0
        precondition(columns.allSatisfy { $0.count == count } && widths.count == columns.count)
        var bytes = GrowingBytes()
        bytes.reserveCapacity(columns.reduce(count * 10) { $0 + $1.byteCount })
        // If there is a row, each column has a value.
        var places = columns.compactMap(\.values)
        let fits = withExtendedLifetime(columns) {
            for _ in 0..<count {
                bytes.append(bigEndian: Int16(columns.count + 1))
                bytes.append(bigEndian: Int32(4))
                bytes.append(bigEndian: first)
                for column in places.indices {
                    guard let size = Self.copy(places[column], widths[column], to: &bytes) else { return false }
                    places[column] += size
                }
            }
            return true
        }
        guard fits else { return nil }
        self.bytes = bytes
    }

    /// Copies a value with its size.
    ///
    /// - Returns: The number of bytes that the value takes in its column; `nil` if it does not fit.
    @inline(__always)
    private static func copy(_ value: UnsafeRawPointer, _ width: Width, to bytes: inout GrowingBytes) -> Int? {
        let size = Int(Int32(bigEndian: value.loadUnaligned(as: Int32.self)))
        if size < 0 || width == .whole {
            let all = 4 + max(size, 0)
            bytes.grow(by: all).copyMemory(from: value, byteCount: all)
            return all
        }
        let number = Int64(bigEndian: value.loadUnaligned(fromByteOffset: 4, as: Int64.self))
        let place = bytes.grow(by: 4 + width.rawValue)
        place.storeBytes(of: Int32(width.rawValue).bigEndian, as: Int32.self)
        if width == .two {
            guard let short = Int16(exactly: number) else { return nil }
            place.storeBytes(of: short.bigEndian, toByteOffset: 4, as: Int16.self)
        } else {
            guard let short = Int32(exactly: number) else { return nil }
            place.storeBytes(of: short.bigEndian, toByteOffset: 4, as: Int32.self)
        }
        return 12
    }
}
