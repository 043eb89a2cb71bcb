import CStrataSQLite
import Foundation

/// One SQLite connection, with as little as possible around the C API.
///
/// The framework is measured against this. So nothing here may cost more than in a program that calls the C API with
/// care: statements are prepared once, values are bound by position, results are checked.
final class RawDatabase {
    private let handle: OpaquePointer

    init(path: String, for use: RawUse = .writing, settings: RawSettings = RawSide.settings) throws {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        guard sqlite3_open_v2(path, &handle, flags, nil) == SQLITE_OK, let handle else {
            sqlite3_close_v2(handle)
            throw BenchError("Cannot open \(path)")
        }
        self.handle = handle
        // Even opening may have to wait, because another connection recovers the log, or is the last one and removes
        // it.
        try execute("PRAGMA busy_timeout = 10000")
        try execute(settings.whenMade)
        try execute("PRAGMA journal_mode = WAL")
        try execute("PRAGMA synchronous = NORMAL")
        try execute(settings.whenOpened(for: use))
    }

    deinit {
        sqlite3_close_v2(handle)
    }

    func execute(_ sql: String) throws {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure(sql) }
    }

    func prepare(_ sql: String) throws -> RawStatement {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK,
            let statement
        else { throw failure(sql) }
        return RawStatement(statement, of: self)
    }

    /// The number of rows that the last statement changed.
    var changes: Int { Int(sqlite3_changes(handle)) }

    func failure(_ what: String) -> BenchError {
        BenchError("\(what): \(String(cString: sqlite3_errmsg(handle)))")
    }
}

/// A prepared statement.
final class RawStatement {
    private let handle: OpaquePointer
    private let database: RawDatabase
    /// Makes SQLite copy a text at once: the bytes belong to a Swift string, and are valid during the call only.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    init(_ handle: OpaquePointer, of database: RawDatabase) {
        self.handle = handle
        self.database = database
    }

    deinit {
        sqlite3_finalize(handle)
    }

    @inline(__always)
    func bind(_ value: Int64, at index: Int32) {
        sqlite3_bind_int64(handle, index, value)
    }

    @inline(__always)
    func bind(_ value: Double, at index: Int32) {
        sqlite3_bind_double(handle, index, value)
    }

    @inline(__always)
    func bind(_ value: String, at index: Int32) {
        var value = value
        value.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                _ = sqlite3_bind_text(handle, index, $0.baseAddress, Int32($0.count), Self.transient)
            }
        }
    }

    func bindNull(at index: Int32) {
        sqlite3_bind_null(handle, index)
    }

    /// Goes to the next row; `false` at the end.
    @inline(__always)
    func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw database.failure("step")
        }
    }

    /// Runs a statement that returns no rows, and resets it.
    @inline(__always)
    func run() throws {
        guard sqlite3_step(handle) == SQLITE_DONE else { throw database.failure("step") }
        sqlite3_reset(handle)
    }

    func reset() {
        sqlite3_reset(handle)
    }

    @inline(__always)
    func integer(_ column: Int32) -> Int64 {
        sqlite3_column_int64(handle, column)
    }

    @inline(__always)
    func double(_ column: Int32) -> Double {
        sqlite3_column_double(handle, column)
    }

    @inline(__always)
    func text(_ column: Int32) -> String { optionalText(column) ?? "" }

    @inline(__always)
    func optionalText(_ column: Int32) -> String? {
        guard let bytes = sqlite3_column_text(handle, column) else { return nil }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }
}
