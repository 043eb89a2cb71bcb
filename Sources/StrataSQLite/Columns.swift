import CStrataSQLite

/// The columns of a statement's current row, for code that reads many of them.
///
/// SQLite keeps the values of a row side by side: the registers of the instruction `ResultRow` follow each other. So one
/// call finds the first value, and the others lie at a constant distance, without a call for each. The distance is taken
/// from the first row of each prepared statement, with the places of all of its columns. Should a library place them in
/// another way, then each column is asked for.
///
/// It is valid until the statement is stepped or reset. It is public for the sake of inlining; see ``Value``.
public struct Columns {
    @usableFromInline let handle: OpaquePointer
    @usableFromInline let first: OpaquePointer?
    /// The distance between two values in bytes; negative if it is not constant.
    @usableFromInline let stride: Int

    @inlinable
    @inline(__always)
    init(handle: OpaquePointer, stride: Int) {
        self.handle = handle
        self.stride = stride
        first = sqlite3_column_value(handle, 0)
    }

    /// Column `index`, from 0.
    @inlinable
    public subscript(index: Int) -> Value {
        @inline(__always) get {
            guard stride >= 0, let first else {
                return Value(raw: sqlite3_column_value(handle, Int32(truncatingIfNeeded: index)))
            }
            return Value(raw: OpaquePointer(UnsafeRawPointer(first) + index &* stride))
        }
    }
}

extension Statement {
    /// The columns of the current row.
    ///
    /// The caller asks only for columns that the statement has.
    @inlinable
    public var columns: Columns {
        @inline(__always) get {
            let stride = prepared.columnStride
            return Columns(handle: handle, stride: stride == 0 ? prepared.findColumnStride() : stride)
        }
    }
}

extension PreparedStatement {
    /// Finds the distance between the values of the current row.
    ///
    /// - Returns: The distance in bytes; -1 if it is not constant.
    @usableFromInline
    @inline(never)
    func findColumnStride() -> Int {
        func place(_ column: Int32) -> Int { Int(bitPattern: sqlite3_column_value(handle, column)) }
        let count = sqlite3_column_count(handle)
        // The only column lies at its own place.
        let distance = count > 1 ? place(1) - place(0) : 1
        let isConstant = (0..<count).allSatisfy { place($0) == place(0) + Int($0) * distance }
        columnStride = isConstant && distance > 0 ? distance : -1
        return columnStride
    }
}
