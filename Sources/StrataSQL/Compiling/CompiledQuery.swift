import Foundation
import StrataPredicates

/// The predicate and the order of a fetch as SQL.
///
/// In all texts `t0` is the table of the entity that is fetched. Values are never in a text: each is written as `?`,
/// and `bindings` has them in the order in which they occur in joins, condition and order. So the text depends only on
/// the shape of the fetch, and the prepared statement is found again by it.
package struct CompiledQuery {
    /// ` LEFT JOIN … ON …`, with a blank in front.
    ///
    /// A join never returns a row more than once.
    package var joins = ""
    /// The condition that a row must fulfil; `nil` for all rows.
    ///
    /// It may be NULL for a row that does not fulfil it.
    package var condition: String?
    /// The text after `ORDER BY`; `nil` for any order.
    package var order: String?
    package var bindings: [SQLBinding] = []

    package init(joins: String = "", condition: String? = nil, order: String? = nil, bindings: [SQLBinding] = []) {
        self.joins = joins
        self.condition = condition
        self.order = order
        self.bindings = bindings
    }
}

/// A value for a parameter of a statement.
package enum SQLBinding: Sendable, Hashable {
    case null
    case integer(Int64)
    case double(Double)
    case text(String)
    case blob(Data)
    /// A UUID.
    ///
    /// If the database has no type for UUIDs, they are bytes.
    case uuid(UUID)
    /// Any number of values for one parameter; see ``Dialect/members``.
    case list([SQLBinding])

    /// The value in the form that a column holds.
    package init(_ value: PredicateValue) {
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
}
