import CStrataSQLite
import Foundation

/// A prepared statement, borrowed from its connection for one scope.
///
/// It comes from ``Connection/statement(_:)``. At the end of the scope it is reset, its bindings are dropped, and it
/// returns to the cache of the connection. So no statement stays open by accident, and the same text can be in use
/// twice.
///
///     let statement = try connection.statement("SELECT ZNAME FROM ZCITY WHERE Z_PK = ?")
///     try statement.bind(key, at: 1)
///     while try statement.step() { names.append(statement[0].string) }
///
/// It is public for the sake of inlining; see ``Value``.
///
/// It is confined like its connection, and must not outlive the lease of the connection (the pool traps if it does).
public struct Statement: ~Copyable {
    @usableFromInline let handle: OpaquePointer
    @usableFromInline let prepared: PreparedStatement
    let connection: Connection

    init(prepared: PreparedStatement, connection: Connection) {
        self.handle = prepared.handle
        self.prepared = prepared
        self.connection = connection
    }

    deinit {
        connection.takeBack(prepared)
    }

    // MARK: - Rows

    /// Moves to the next row.
    ///
    /// - Returns: Whether there is a row; `false` at the end.
    @inlinable
    public func step() throws(SQLiteError) -> Bool {
        let code = sqlite3_step(handle)
        if code == SQLITE_ROW { return true }
        if code == SQLITE_DONE { return false }
        throw failure(code, .step)
    }

    /// Column `index` (from 0) of the current row, valid until the next step or reset.
    @inlinable
    public subscript(index: Int) -> Value {
        Value(raw: sqlite3_column_value(handle, Int32(truncatingIfNeeded: index)))
    }

    /// Column `index` as ``Value/int64``, in one call of SQLite instead of two.
    @inlinable
    public func int64(_ index: Int) -> Int64 {
        sqlite3_column_int64(handle, Int32(truncatingIfNeeded: index))
    }

    /// Column `index` as ``Value/double``, in one call.
    @inlinable
    public func double(_ index: Int) -> Double {
        sqlite3_column_double(handle, Int32(truncatingIfNeeded: index))
    }

    /// Runs a statement to the end, ignores its rows, and resets it for the next bindings.
    @inlinable
    public func run() throws(SQLiteError) {
        while try step() {}
        reset()
    }

    /// Goes back before the first row and drops the bindings.
    ///
    /// Bindings are always dropped, because they may point into memory that is about to be reused.
    @inlinable
    public func reset() {
        // The code only repeats the result of the last step.
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        prepared.scratchUsed = 0
    }

    package var columnCount: Int {
        Int(sqlite3_column_count(handle))
    }

    package func columnName(_ index: Int) -> String {
        sqlite3_column_name(handle, Int32(index)).map { String(cString: $0) } ?? ""
    }

    package var sql: String {
        prepared.sql.text
    }

    // MARK: - Parameters, numbered from 1

    /// Binds an integer.
    @inlinable
    public func bind(_ value: Int64, at index: Int) throws(SQLiteError) {
        try check(sqlite3_bind_int64(handle, Int32(truncatingIfNeeded: index), value))
    }

    /// Binds an integer.
    @inlinable
    public func bind(_ value: Int, at index: Int) throws(SQLiteError) {
        try bind(Int64(value), at: index)
    }

    /// Binds a number.
    ///
    /// SQLite has no NaN: it stores NULL.
    @inlinable
    public func bind(_ value: Double, at index: Int) throws(SQLiteError) {
        try check(sqlite3_bind_double(handle, Int32(truncatingIfNeeded: index), value))
    }

    /// Binds NULL.
    @inlinable
    public func bindNull(at index: Int) throws(SQLiteError) {
        try check(sqlite3_bind_null(handle, Int32(truncatingIfNeeded: index)))
    }

    /// Binds a text.
    ///
    /// Short texts are copied to scratch memory of the statement, without an allocation.
    public func bind(_ value: String, at index: Int) throws(SQLiteError) {
        var value = value
        let code = value.withUTF8 { prepared.bind(UnsafeRawBufferPointer($0), isText: true, at: Int32(index)) }
        try check(code)
    }

    /// Binds a blob, copying it.
    public func bind(_ value: Data, at index: Int) throws(SQLiteError) {
        try check(value.withUnsafeBytes { prepared.bind($0, isText: false, at: Int32(index)) })
    }

    /// Binds the 16 bytes of a UUID as a blob.
    public func bind(_ value: UUID, at index: Int) throws(SQLiteError) {
        let code = withUnsafeBytes(of: value.uuid) { prepared.bind($0, isText: false, at: Int32(index)) }
        try check(code)
    }

    /// Binds UTF-8 bytes in place, without a copy.
    ///
    /// The caller keeps them unchanged until the statement is reset.
    @inlinable
    public func bindUncopied(utf8 bytes: UnsafeRawBufferPointer, at index: Int) throws(SQLiteError) {
        let start = bytes.baseAddress ?? PreparedStatement.nowhere
        try check(
            strata_sqlite3_bind_text_static(handle, Int32(truncatingIfNeeded: index), start, UInt64(bytes.count))
        )
    }

    /// Binds bytes as a blob in place, without a copy.
    ///
    /// The caller keeps them unchanged until the statement is reset.
    @inlinable
    public func bindUncopied(blob bytes: UnsafeRawBufferPointer, at index: Int) throws(SQLiteError) {
        let start = bytes.baseAddress ?? PreparedStatement.nowhere
        try check(
            strata_sqlite3_bind_blob_static(handle, Int32(truncatingIfNeeded: index), start, UInt64(bytes.count))
        )
    }

    // MARK: - Errors

    @inlinable
    func check(_ code: Int32) throws(SQLiteError) {
        guard code == SQLITE_OK else { throw failure(code, .bind) }
    }

    @usableFromInline
    func failure(_ code: Int32, _ operation: SQLiteError.Operation) -> SQLiteError {
        connection.failure(code, operation, sql: prepared.sql.text)
    }
}
