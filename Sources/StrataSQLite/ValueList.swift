import CStrataSQLite
import Foundation

/// Any number of values for one parameter of a statement: the rows of the table-valued function ``tableFunction``.
///
///     SELECT … WHERE ZNAME IN (SELECT value FROM strata_values(?))
///
/// The text of the statement is the same for two values and for fifty thousand, and no limit on parameters applies.
/// Each value arrives unchanged: no digit of a number and no byte of a blob is lost in a conversion to text.
package final class ValueList: Sendable, Hashable {
    package enum Element: Hashable, Sendable {
        case integer(Int64)
        case double(Double)
        case text(String)
        case blob(Data)
    }

    /// The function's name; its rows have the one column `value`.
    package static let tableFunction = "strata_values"

    package let elements: [Element]

    package init(_ elements: [Element]) {
        self.elements = elements
    }

    package static func == (left: ValueList, right: ValueList) -> Bool {
        left === right || left.elements == right.elements
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(elements)
    }
}

extension Statement {
    /// Binds a list as the argument of ``ValueList/tableFunction``; for any other use it is NULL.
    package func bind(_ list: ValueList, at index: Int) throws(SQLiteError) {
        // SQLite calls the destructor even if it refuses the pointer.
        try check(
            sqlite3_bind_pointer(
                handle,
                Int32(truncatingIfNeeded: index),
                Unmanaged.passRetained(list).toOpaque(),
                ValueTable.pointerType,
                { Unmanaged<ValueList>.fromOpaque($0!).release() }  // SQLite hands back the pointer that it was given
            )
        )
    }
}

/// The virtual table behind ``ValueList/tableFunction``.
enum ValueTable {
    /// SQLite compares it as a text; it must stay in memory for good.
    // nonisolated(unsafe): it is written once, before any code reads it.
    nonisolated(unsafe) fileprivate static let pointerType: UnsafePointer<CChar> = {
        let name: [CChar] = "strata.values".utf8CString.map { $0 }
        let memory = UnsafeMutablePointer<CChar>.allocate(capacity: name.count)
        memory.initialize(from: name, count: name.count)
        return UnsafePointer(memory)
    }()

    static func register(on handle: OpaquePointer) -> Int32 {
        sqlite3_create_module_v2(handle, ValueList.tableFunction, module, nil, nil)
    }

    private struct Cursor {
        // SQLite uses a pointer to the cursor as this, so it comes first.
        var base = sqlite3_vtab_cursor()
        var list: Unmanaged<ValueList>?
        var position = 0
    }

    private static func cursor(_ pointer: UnsafeMutablePointer<sqlite3_vtab_cursor>?) -> UnsafeMutablePointer<Cursor> {
        // Every cursor was made by `xOpen` below.
        UnsafeMutableRawPointer(pointer!).assumingMemoryBound(to: Cursor.self)
    }

    private static func drop(_ cursor: UnsafeMutablePointer<Cursor>) {
        cursor.pointee.list?.release()
        cursor.pointee.list = nil
    }

    // The columns are `value` (0) and the hidden column through which SQL passes the argument (1).
    // nonisolated(unsafe): it is written once, before any code reads it.
    nonisolated(unsafe) private static let module: UnsafePointer<sqlite3_module> = {
        var module = sqlite3_module()
        // Without xCreate the table exists in every connection and cannot be made a second time.
        module.xConnect = { handle, _, _, _, table, _ in
            let code = sqlite3_declare_vtab(handle, "CREATE TABLE x(value, list HIDDEN)")
            guard code == SQLITE_OK else { return code }
            let made = UnsafeMutablePointer<sqlite3_vtab>.allocate(capacity: 1)
            made.initialize(to: sqlite3_vtab())
            table?.pointee = made
            return SQLITE_OK
        }
        module.xDisconnect = { table in
            table?.deallocate()
            return SQLITE_OK
        }
        module.xBestIndex = { _, info in
            guard let info else { return SQLITE_ERROR }
            info.pointee.estimatedRows = 100
            info.pointee.estimatedCost = 100
            for index in 0..<Int(info.pointee.nConstraint) {
                guard let constraint = info.pointee.aConstraint?[index], constraint.iColumn == 1,
                    constraint.op == UInt8(SQLITE_INDEX_CONSTRAINT_EQ)
                else { continue }
                // The planner must find an order of tables in which the argument is known.
                guard constraint.usable != 0 else { return SQLITE_CONSTRAINT }
                info.pointee.aConstraintUsage[index].argvIndex = 1
                info.pointee.aConstraintUsage[index].omit = 1
            }
            return SQLITE_OK
        }
        module.xOpen = { _, cursor in
            let made = UnsafeMutablePointer<Cursor>.allocate(capacity: 1)
            made.initialize(to: Cursor())
            cursor?.pointee = UnsafeMutableRawPointer(made).assumingMemoryBound(to: sqlite3_vtab_cursor.self)
            return SQLITE_OK
        }
        module.xClose = { pointer in
            let cursor = ValueTable.cursor(pointer)
            drop(cursor)
            cursor.deallocate()
            return SQLITE_OK
        }
        module.xFilter = { pointer, _, _, count, arguments in
            let cursor = ValueTable.cursor(pointer)
            drop(cursor)
            cursor.pointee.position = 0
            if count == 1, let list = sqlite3_value_pointer(arguments?[0], pointerType) {
                cursor.pointee.list = Unmanaged<ValueList>.fromOpaque(list).retain()
            }
            return SQLITE_OK
        }
        module.xNext = { pointer in
            ValueTable.cursor(pointer).pointee.position += 1
            return SQLITE_OK
        }
        module.xEof = { pointer in
            let cursor = ValueTable.cursor(pointer)
            let count = cursor.pointee.list?._withUnsafeGuaranteedRef { $0.elements.count } ?? 0
            return cursor.pointee.position < count ? 0 : 1
        }
        module.xRowid = { pointer, key in
            key?.pointee = Int64(ValueTable.cursor(pointer).pointee.position)
            return SQLITE_OK
        }
        module.xColumn = { pointer, context, column in
            let cursor = ValueTable.cursor(pointer)
            let position = cursor.pointee.position
            guard column == 0, let context, let list = cursor.pointee.list else { return SQLITE_OK }
            let call = FunctionCall(context: context, count: 0, arguments: nil)
            switch list._withUnsafeGuaranteedRef({ $0.elements[position] }) {
            case .integer(let value): call.return(value)
            case .double(let value): call.return(value)
            case .text(let value): call.return(value)
            case .blob(let value): value.withUnsafeBytes { call.return(blob: $0) }
            }
            return SQLITE_OK
        }
        let memory = UnsafeMutablePointer<sqlite3_module>.allocate(capacity: 1)
        memory.initialize(to: module)
        return UnsafePointer(memory)
    }()
}
