import Foundation
import StrataSQL
import StrataSQLite

extension Statement {
    /// Binds the values to the first parameters.
    package func bind(_ bindings: [SQLBinding]) throws(SQLiteError) {
        var index = 1
        for binding in bindings {
            try bind(binding, at: index)
            index += 1
        }
    }

    /// Binds one value of any type.
    func bind(_ binding: SQLBinding, at index: Int) throws(SQLiteError) {
        switch binding {
        case .null: try bindNull(at: index)
        case .integer(let value): try bind(value, at: index)
        case .double(let value): try bind(value, at: index)
        case .text(let value): try bind(value, at: index)
        case .blob(let value): try bind(value, at: index)
        case .uuid(let value): try bind(value, at: index)
        case .list(let values): try bind(ValueList(values.compactMap(\.element)), at: index)
        }
    }
}

extension SQLBinding {
    /// The value as a member of a list; `nil` for NULL, which is never equal to anything.
    fileprivate var element: ValueList.Element? {
        switch self {
        case .integer(let value): .integer(value)
        case .double(let value): .double(value)
        case .text(let value): .text(value)
        case .blob(let value): .blob(value)
        case .uuid(let value): .blob(withUnsafeBytes(of: value.uuid) { Data($0) })
        case .null, .list: nil
        }
    }
}
