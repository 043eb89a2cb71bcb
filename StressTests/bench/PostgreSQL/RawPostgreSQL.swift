#if canImport(CoreDataPostgreSQL)
import CStrataPostgreSQL
import Foundation

/// A plain connection of libpq, with binary parameters and results.
///
/// It is used by one thread at a time.
final class RawPostgreSQL {
    private let handle: OpaquePointer
    private var names: [String: String] = [:]

    /// Connects to a schema of a database.
    init(_ url: String, schema: String) throws {
        guard let handle = PQconnectdb(url), PQstatus(handle) == CONNECTION_OK else {
            throw BenchError("There is no server at the URL")
        }
        self.handle = handle
        try execute("SET client_min_messages = warning")
        try execute("CREATE SCHEMA IF NOT EXISTS \(schema)")
        try execute("SET search_path TO \(schema)")
    }

    deinit { PQfinish(handle) }

    func execute(_ sql: String) throws {
        _ = try check(PQexec(handle, sql))
    }

    /// Runs a statement, which is prepared the first time.
    func query(_ sql: String, _ parameters: [RawParameter] = []) throws -> RawRows {
        let name: String
        if let known = names[sql] {
            name = known
        } else {
            name = "raw\(names.count)"
            let types = parameters.map(\.type)
            _ = try check(PQprepare(handle, name, sql, Int32(types.count), types))
            names[sql] = name
        }
        let count = Int32(parameters.count)
        let lengths = parameters.map { Int32($0.bytes.count) }
        let formats = [Int32](repeating: 1, count: parameters.count)
        // Each parameter must stay at its address during the call.
        let copies = parameters.map { parameter in
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: max(1, parameter.bytes.count))
            parameter.bytes.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(start: copy, count: parameter.bytes.count).copyMemory(from: $0)
            }
            return copy
        }
        defer { for copy in copies { copy.deallocate() } }
        let pointers = copies.map { UnsafePointer<CChar>?($0) }
        return try check(PQexecPrepared(handle, name, count, pointers, lengths, formats, 1))
    }

    /// Sends rows to the server with `COPY`.
    func copy(_ sql: String, _ bytes: [UInt8]) throws {
        let begun = PQexec(handle, sql)
        guard PQresultStatus(begun) == PGRES_COPY_IN else {
            _ = try check(begun)
            return
        }
        PQclear(begun)
        try bytes.withUnsafeBytes { bytes in
            // The rows go in pieces, as libpq has its own buffer.
            for start in stride(from: 0, to: bytes.count, by: 65_536) {
                let piece = bytes[start..<min(start + 65_536, bytes.count)]
                let sent = piece.withUnsafeBytes { PQputCopyData(handle, $0.baseAddress, Int32($0.count)) }
                guard sent == 1 else { throw BenchError("libpq takes no rows") }
            }
        }
        guard PQputCopyEnd(handle, nil) == 1 else { throw BenchError("libpq takes no rows") }
        while let result = PQgetResult(handle) { _ = try check(result) }
    }

    private func check(_ result: OpaquePointer?) throws -> RawRows {
        let status = PQresultStatus(result)
        guard let result, status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK else {
            PQclear(result)
            throw BenchError("libpq: \(String(cString: PQerrorMessage(handle)))")
        }
        return RawRows(result)
    }
}

/// Rows in the binary form of `COPY`.
struct RawCopy {
    // A signature, flags, and the length of a header extension, which is empty.
    private var bytes: [UInt8] = Array("PGCOPY\n".utf8) + [0xFF, 0x0D, 0x0A, 0] + Array(repeating: 0, count: 8)

    private mutating func add<N: FixedWidthInteger>(_ number: N) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func beginRow(_ columns: Int16) { add(columns) }

    mutating func append<N: FixedWidthInteger>(_ number: N) {
        add(Int32(MemoryLayout<N>.size))
        add(number)
    }

    mutating func append(_ number: Double) { append(number.bitPattern) }

    mutating func append(_ value: Bool) { append(UInt8(value ? 1 : 0)) }

    mutating func append(_ text: String) {
        add(Int32(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    mutating func finish() -> [UInt8] {
        add(Int16(-1))
        return bytes
    }
}

/// A parameter in binary form.
struct RawParameter {
    let type: UInt32
    private(set) var bytes: [UInt8] = []

    init(_ number: Int64) {
        type = 20
        append(number)
    }

    init(_ number: Double) {
        type = 701
        append(number.bitPattern)
    }

    init(_ text: String) {
        type = 25
        bytes = Array(text.utf8)
    }

    private mutating func append<N: FixedWidthInteger>(_ number: N) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private init(array type: UInt32, of element: UInt32, _ count: Int) {
        self.type = type
        append(Int32(count == 0 ? 0 : 1))
        append(Int32(0))
        append(Int32(bitPattern: element))
        guard count > 0 else { return }
        append(Int32(count))
        append(Int32(1))
    }

    init(_ numbers: [Int64]) {
        self.init(array: 1016, of: 20, numbers.count)
        for number in numbers {
            append(Int32(8))
            append(number)
        }
    }

    init(_ numbers: [Double]) {
        self.init(array: 1022, of: 701, numbers.count)
        for number in numbers {
            append(Int32(8))
            append(number.bitPattern)
        }
    }

    init(_ values: [Bool]) {
        self.init(array: 1000, of: 16, values.count)
        for value in values {
            append(Int32(1))
            bytes.append(value ? 1 : 0)
        }
    }

    init(_ texts: [String]) {
        self.init(array: 1009, of: 25, texts.count)
        for text in texts {
            append(Int32(text.utf8.count))
            bytes.append(contentsOf: text.utf8)
        }
    }
}

/// The result of a statement.
final class RawRows {
    private let result: OpaquePointer

    init(_ result: OpaquePointer) { self.result = result }

    deinit { PQclear(result) }

    var count: Int { Int(PQntuples(result)) }
    var changes: Int { Int(String(cString: PQcmdTuples(result))) ?? 0 }

    private func value<N: FixedWidthInteger>(_ row: Int, _ column: Int32, _: N.Type) -> N {
        N(bigEndian: UnsafeRawPointer(PQgetvalue(result, Int32(row), column)).loadUnaligned(as: N.self))
    }

    func int64(_ row: Int, _ column: Int32) -> Int64 { value(row, column, Int64.self) }
    func int16(_ row: Int, _ column: Int32) -> Int16 { value(row, column, Int16.self) }
    func double(_ row: Int, _ column: Int32) -> Double { Double(bitPattern: value(row, column, UInt64.self)) }
    func bool(_ row: Int, _ column: Int32) -> Bool { value(row, column, UInt8.self) != 0 }
    func isNull(_ row: Int, _ column: Int32) -> Bool { PQgetisnull(result, Int32(row), column) != 0 }

    func text(_ row: Int, _ column: Int32) -> String {
        let length = Int(PQgetlength(result, Int32(row), column))
        return String(
            decoding: UnsafeRawBufferPointer(start: PQgetvalue(result, Int32(row), column), count: length),
            as: UTF8.self
        )
    }
}
#endif
