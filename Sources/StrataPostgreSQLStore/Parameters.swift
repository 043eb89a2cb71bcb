import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLValue {
    /// A value that the compiler has bound.
    init(_ binding: SQLBinding) {
        self =
            switch binding {
            case .null: .null(.unknown)
            case .integer(let value): .int8(value)
            case .double(let value): .float8(value)
            case .text(let value): .text(value)
            case .blob(let value): .bytea(value)
            case .uuid(let value): .uuid(value)
            case .list(let values): .array(PostgreSQLArray(values.map { PostgreSQLValue($0) }))
            }
    }

    /// The value in a slot of a row, which must not be a reference.
    ///
    /// NaN becomes null, because the database would treat it as a value.
    init(_ row: Row, _ slot: Slot) {
        guard !row.isNull(slot.index) else {
            self = .null(slot.columnType)
            return
        }
        switch slot.kind {
        case .int: self = slot.type == .boolean ? .bool(row.int(slot.word) != 0) : .int8(row.int(slot.word))
        case .double:
            let value = row.double(slot.word)
            self = value.isNaN ? .null(.float8) : .float8(value)
        case .string: self = .text(row.string(slot.word))
        case .data: self = .bytea(row.data(slot.word))
        case .uuid: self = .uuid(row.uuid(slot.word))
        case .decimal:
            let value = row.decimal(slot.word)
            self = value.isNaN ? .null(.numeric) : .numeric(value)
        case .reference: self = .int8(row.int(slot.word))
        }
    }

    /// The value in the form in which the database compares values: texts by their bytes.
    var identity: PostgreSQLValue {
        if case .text(let text) = self { return .bytea(Data(text.utf8)) }
        return self
    }

    var isNull: Bool {
        if case .null = self { return true }
        return false
    }
}

extension PostgreSQLArray {
    /// Values of one type.
    fileprivate init(_ values: [PostgreSQLValue]) {
        self.init(values.lazy.map(\.type).first { $0 != .unknown } ?? .int8)
        for value in values { append(value) }
    }
}

extension Slot {
    /// The type in which values of the slot are sent.
    var columnType: PostgreSQLType {
        switch kind {
        case .int: type == .boolean ? .bool : .int8
        case .double: .float8
        case .string: .text
        case .data: .bytea
        case .uuid: .uuid
        case .decimal: .numeric
        case .reference: .int8
        }
    }
}
