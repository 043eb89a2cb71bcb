import CStrataPostgreSQL
import Foundation

/// The rows that a statement has returned.
package final class QueryResult {
    let result: OpaquePointer

    init(_ result: OpaquePointer) { self.result = result }

    deinit { PQclear(result) }

    package var rowCount: Int { Int(PQntuples(result)) }
    package var columnCount: Int { Int(PQnfields(result)) }

    /// The memory that the rows take, in bytes.
    package var byteCount: Int { Int(PQresultMemorySize(result)) }

    /// The number of rows that a statement has changed.
    package var changeCount: Int { Int(String(cString: PQcmdTuples(result))) ?? 0 }

    /// The server's name for the command that it has executed, such as `COMMIT`.
    package var tag: String { String(cString: PQcmdStatus(result)) }

    @inline(__always)
    package subscript(row: Int) -> ResultRow {
        ResultRow(result: result, row: Int32(truncatingIfNeeded: row), owner: self)
    }

    /// The rows in their order.
    package var rows: some Sequence<ResultRow> { (0..<rowCount).lazy.map { self[$0] } }

    /// The first value of the first row; `nil` if there is none.
    package var firstInt64: Int64? { rowCount > 0 ? self[0].optionalInt64(0) : nil }
}

/// One row of a result.
package struct ResultRow {
    let result: OpaquePointer
    let row: Int32
    /// The owner of the result; `nil` if the code that hands out the row frees the result.
    let owner: QueryResult?

    @inline(__always)
    package func isNull(_ column: Int) -> Bool { PQgetisnull(result, row, Int32(truncatingIfNeeded: column)) != 0 }

    /// The bytes of a value, valid as long as the row; empty for null.
    @inline(__always)
    package func bytes(_ column: Int) -> UnsafeRawBufferPointer {
        let column = Int32(truncatingIfNeeded: column)
        return UnsafeRawBufferPointer(
            start: PQgetvalue(result, row, column),
            count: Int(PQgetlength(result, row, column))
        )
    }

    /// A whole number of any width, a truth value as 0 or 1; 0 for null.
    @inline(__always)
    package func int64(_ column: Int) -> Int64 { Self.int64(bytes(column)) }

    /// The whole number in the bytes of a value.
    @inline(__always)
    package static func int64(_ bytes: UnsafeRawBufferPointer) -> Int64 {
        switch bytes.count {
        case 8: Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        case 4: Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        case 2: Int64(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
        case 1: Int64(bytes[0])
        default: 0
        }
    }

    package func optionalInt64(_ column: Int) -> Int64? { isNull(column) ? nil : int64(column) }

    /// A floating-point number of either width; 0 for null.
    @inline(__always)
    package func double(_ column: Int) -> Double { Self.double(bytes(column)) }

    /// The floating-point number in the bytes of a value.
    @inline(__always)
    package static func double(_ bytes: UnsafeRawBufferPointer) -> Double {
        switch bytes.count {
        case 8: Double(bitPattern: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)))
        case 4: Double(Float(bitPattern: UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))))
        default: 0
        }
    }

    @inline(__always)
    package func string(_ column: Int) -> String { String(decoding: bytes(column), as: UTF8.self) }

    package func optionalString(_ column: Int) -> String? { isNull(column) ? nil : string(column) }

    package func data(_ column: Int) -> Data { Data(bytes(column)) }

    package func uuid(_ column: Int) -> UUID? {
        let bytes = bytes(column)
        guard bytes.count == 16 else { return nil }
        return UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
    }

    /// A decimal number; `nil` for null, and for numbers that a `Decimal` cannot hold.
    package func decimal(_ column: Int) -> Decimal? { NumericCoding.read(bytes(column)) }

    /// The numbers of an array of whole numbers, without nulls.
    package func int64s(_ column: Int) -> [Int64] {
        let bytes = bytes(column)
        guard bytes.count >= 20 else { return [] }
        let announced = Int(Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: 12, as: Int32.self)))
        // Each number takes at least the four bytes of its size.
        let count = min(max(announced, 0), (bytes.count - 20) / 4)
        var result: [Int64] = []
        result.reserveCapacity(count)
        var place = 20
        for _ in 0..<count where place + 4 <= bytes.count {
            let size = Int(Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: place, as: Int32.self)))
            place += 4
            guard size == 8, place + 8 <= bytes.count else { continue }
            result.append(Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: place, as: Int64.self)))
            place += 8
        }
        return result
    }
}
