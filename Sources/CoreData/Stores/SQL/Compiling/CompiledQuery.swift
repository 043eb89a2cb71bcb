import Foundation
import StrataPredicates
import StrataSQLite

/// What the predicate and the order of a fetch come to in SQL.
///
/// In all texts `t0` is the table of the entity that is fetched. Values are never in a text: each stands as `?`, and
/// `bindings` has them in the order in which they come up in joins, condition and order. So the text depends on the
/// shape of the fetch alone, and the prepared statement is found again by it.
struct CompiledQuery {
    /// ` LEFT JOIN … ON …`, with a blank in front.
    ///
    /// A join never brings a row more than once.
    var joins = ""
    /// What a row must fulfil; `nil` for all rows.
    ///
    /// May be NULL for a row that does not fulfil it.
    var condition: String?
    /// What comes after `ORDER BY`; `nil` for any order.
    var order: String?
    var bindings: [SQLBinding] = []
}

/// A value for a parameter of a statement.
enum SQLBinding: Sendable, Hashable {
    case null
    case integer(Int64)
    case double(Double)
    case text(String)
    case blob(Data)
    /// Any number of values, for the argument of ``ValueList/tableFunction``.
    case list(ValueList)

    /// The value as a column holds it.
    init(_ value: PredicateValue) {
        self =
            switch value {
            case .null, .collection, .reference, .entity: .null
            case .int(let value): .integer(value)
            case .double(let value): .double(value)
            case .date(let value): .double(value)
            case .string(let value): .text(value)
            case .uuid(let value): .blob(withUnsafeBytes(of: value.uuid) { Data($0) })
            case .data(let value): .blob(value)
            }
    }

    /// The value as a member of a list; `nil` for NULL, which is never equal to anything.
    var element: ValueList.Element? {
        switch self {
        case .integer(let value): .integer(value)
        case .double(let value): .double(value)
        case .text(let value): .text(value)
        case .blob(let value): .blob(value)
        case .null, .list: nil
        }
    }
}

extension Statement {
    /// Binds the values to the first parameters.
    func bind(_ bindings: [SQLBinding]) throws(SQLiteError) {
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
        case .list(let values): try bind(values, at: index)
        }
    }
}
