import CStrataPostgreSQL
import Expectations
import Foundation
import Testing

@testable import StrataPostgreSQL

@Suite("Values in the binary form of PostgreSQL")
struct PostgreSQLValueTests {
    private static func bytes(_ value: PostgreSQLValue) -> [UInt8] {
        var bytes: [UInt8] = []
        value.write(to: &bytes)
        return bytes
    }

    /// A row with these values, as libpq has it after a query; `nil` stands for null.
    private static func row(_ values: [[UInt8]?]) throws -> ResultRow {
        let result = try require(PQmakeEmptyPGresult(nil, PGRES_TUPLES_OK))
        let owner = QueryResult(result)
        var name = Array("column".utf8CString)
        name.withUnsafeMutableBufferPointer { name in
            let column = PGresAttDesc(
                name: name.baseAddress,
                tableid: 0,
                columnid: 0,
                format: 1,
                typid: 0,
                typlen: -1,
                atttypmod: -1
            )
            var columns = Array(repeating: column, count: values.count)
            expectEqual(PQsetResultAttrs(result, Int32(values.count), &columns), 1)
        }
        for (index, value) in values.enumerated() {
            var bytes = (value ?? []).map { CChar(bitPattern: $0) }
            expectEqual(PQsetvalue(result, 0, Int32(index), &bytes, Int32(value.map(\.count) ?? -1)), 1)
        }
        return owner[0]
    }

    @Test func `values have the server's bytes, and come back from them`() throws {
        let uuid = UUID()
        let row = try Self.row([
            Self.bytes(.int8(.min)), Self.bytes(.float8(-0.1)), Self.bytes(.text("naïve 😀")),
            Self.bytes(.bytea(Data([0, 255]))),
            Self.bytes(.uuid(uuid)), Self.bytes(.bool(true)), nil, [0xFF, 0xFE], [0xFF, 0xFF, 0xFF, 0xFE],
            [0x3F, 0x80, 0, 0], [1, 2, 3],
        ])
        expectEqual(Self.bytes(.int8(258)), [0, 0, 0, 0, 0, 0, 1, 2])
        expect(row.int64(0) == .min && row.double(1) == -0.1 && row.string(2) == "naïve 😀")
        expect(row.data(3) == Data([0, 255]) && row.uuid(4) == uuid && row.int64(5) == 1)
        expect(row.isNull(6) && row.optionalInt64(6) == nil && row.optionalString(6) == nil && row.decimal(6) == nil)
        expect(row.int64(7) == -2 && row.int64(8) == -2 && row.double(9) == 1)
        expect(row.int64(10) == 0 && row.double(10) == 0 && row.uuid(10) == nil && row.decimal(10) == nil)
    }

    @Test(arguments: [
        "0", "1", "-1", "10000", "-9999", "0.1", "-0.0001", "0.00001", "123456789012345678901234567890.12345678",
        "1e-20",
        "1.5e100", "-7e-100", "12300000000", "99999999999999999999999999999999999999",
        // More than 38 digits, and exponents at the ends.
        "-233333333333333333333333333333333333331e-38", "340282366920938463463374607431768211455e127",
        "340282366920938463463374607431768211455e-128", "1000e127", "1e127", "1e-128", "100000000000000000000e-20",
    ])
    func `a decimal comes back from its digits`(_ text: String) throws {
        let number = try require(Decimal(string: text))
        let bytes = Self.bytes(.numeric(number))
        try expectEqual(Self.row([bytes]).decimal(0), number)
        expectEqual(bytes.count, 8 + 2 * Int(bytes[1]))
    }

    @Test func `decimals have the server's digits`() throws {
        // Count, weight, sign and scale; then digits to the base of 10,000.
        expectEqual(Self.bytes(.numeric(0)), [0, 0, 0, 0, 0, 0, 0, 0])
        try expectEqual(
            Self.bytes(.numeric(require(Decimal(string: "-12345.6")))),
            [0, 3, 0, 1, 0x40, 0, 0, 1, 0, 1, 0x09, 0x29, 0x17, 0x70]
        )
        expectEqual(Self.bytes(.numeric(.nan)), [0, 0, 0, 0, 0xC0, 0, 0, 0])
    }

    /// Not a number, an infinity, digits without end, digits that are none, and fewer than are announced.
    @Test func `what no decimal can hold, and what no server sends, is no number`() throws {
        let long: [UInt8] = [0, 10, 0, 9, 0, 0, 0, 0] + (0..<10).flatMap { _ in [0x27, 0x0F] as [UInt8] }
        let hostile: [[UInt8]] = [
            [0, 0, 0, 0, 0xC0, 0, 0, 0], [0, 0, 0, 0, 0xD0, 0, 0, 0], long,
            [0, 1, 0x7F, 0xFF, 0, 0, 0, 0, 0, 1], [0, 1, 0x80, 0, 0, 0, 0, 0, 0, 1],
            [0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x10],
            [0, 1, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], [0, 2, 0, 0, 0, 0, 0, 0, 0, 1], [0xFF, 0xFF, 0, 0, 0, 0, 0, 0],
            [0, 0, 0],
        ]
        for bytes in hostile { try expect(Self.row([bytes]).decimal(0) == nil, "\(bytes)") }
    }

    @Test func `arrays keep nulls and empty values apart, and share their bytes until one of them grows`() throws {
        var texts = PostgreSQLArray(.text)
        texts.append(.text(""))
        texts.append(.null(.text))
        let before = texts
        texts.append("a")
        expect(before.count == 2 && texts.count == 3 && before != texts && before.byteCount == 8)
        expectEqual(
            Self.bytes(.array(texts)),
            [
                0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 25, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 1,
                97,
            ]
        )
        expectEqual(Self.bytes(.array(PostgreSQLArray(.int8))), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20])
        expectEqual(PostgreSQLValue.array(texts).type, .textArray)
        expectEqual(PostgreSQLArray(.text, like: texts), PostgreSQLArray(.text))
    }

    @Test func `each way to append gives the same bytes`() {
        let uuid = UUID()
        let values: [PostgreSQLValue] = [
            .int8(-7), .float8(0.5), .bool(true), .text("é"), .bytea(Data([9])), .null(.int8), .uuid(uuid),
        ]
        var (one, other) = (PostgreSQLArray(.int8), PostgreSQLArray(.int8))
        for value in values { one.append(value) }
        other.append(-7 as Int64)
        other.append(0.5)
        other.append(true)
        other.append("é")
        other.append([9] as [UInt8])
        other.appendNull()
        other.append(withUnsafeBytes(of: uuid.uuid) { Data($0) })
        expectEqual(one, other)
    }

    @Test func `arrays of numbers come back without nulls, and damaged ones as far as they go`() throws {
        var numbers = PostgreSQLArray([.max, -1])
        numbers.appendNull()
        numbers.append(5 as Int64)
        let bytes = Self.bytes(.array(numbers))
        try expectEqual(Self.row([bytes]).int64s(0), [.max, -1, 5])
        try expectEqual(Self.row([Self.bytes(.array(PostgreSQLArray(.int8)))]).int64s(0), [])
        try expectEqual(Self.row([Array(bytes.dropLast(1))]).int64s(0), [.max, -1])
        for count: [UInt8] in [[0xFF, 0xFF, 0xFF, 0xFF], [0x7F, 0xFF, 0xFF, 0xFF]] {
            var damaged = bytes
            damaged.replaceSubrange(12..<16, with: count)
            try expectEqual(Self.row([damaged]).int64s(0), count[0] == 0xFF ? [] : [.max, -1, 5])
        }
    }

    @Test func `each type has its arrays and a name`() {
        let types: [PostgreSQLType] = [.bool, .bytea, .int8, .text, .float8, .numeric, .uuid]
        expectEqual(Set(types.map(\.array.rawValue)).count, types.count)
        expect(types.allSatisfy { !$0.name.isEmpty && $0.array.name == $0.name + "[]" && $0.array.array == .unknown })
    }

    @Test func `bytes grow beyond any room, and a copy keeps what it had`() {
        var bytes = GrowingBytes()
        expect(bytes.isEmpty && bytes == GrowingBytes())
        var copies: [GrowingBytes] = []
        for number in 0..<200 {
            if number % 50 == 0 { copies.append(bytes) }
            bytes.append(bigEndian: Int32(number))
        }
        [UInt8]([1, 2, 3]).withUnsafeBytes { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: UnsafeRawBufferPointer(start: nil, count: 0))
        expectEqual(bytes.count, 803)
        expectEqual(copies.map(\.count), [0, 200, 400, 600])
        for copy in copies {
            copy.withBytes { copy in bytes.withBytes { expect($0.prefix(copy.count).elementsEqual(copy)) } }
        }
        expectEqual(bytes.withBytes { Array($0.suffix(5)) }, [0, 199, 1, 2, 3])
        var reserved = GrowingBytes()
        reserved.reserveCapacity(1000)
        reserved.append(bigEndian: UInt8(7))
        expect(reserved.count == 1 && reserved.hashValue != bytes.hashValue)
    }
}
