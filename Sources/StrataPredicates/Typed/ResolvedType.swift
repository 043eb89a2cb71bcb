/// The type of an expression in a resolved predicate.
package enum ResolvedType: String, Hashable, Sendable {
    /// The type of the nil constant, which is compatible with every other.
    case null
    case bool
    case integer
    case double
    case decimal
    case date
    case string
    case uri
    case uuid
    case data
    case transformable
    /// A composite attribute as a whole.
    ///
    /// It can be compared only with nil.
    case composite
    case reference
    case entity

    package init(_ type: PredicateAttributeType) {
        self =
            switch type {
            case .bool: .bool
            case .integer: .integer
            case .double: .double
            case .decimal: .decimal
            case .date: .date
            case .string: .string
            case .uri: .uri
            case .uuid: .uuid
            case .data: .data
            case .transformable: .transformable
            case .entity: .entity
            }
    }

    package init(of value: PredicateValue) {
        self =
            switch value {
            case .null, .collection: .null
            case .int: .integer
            case .double(let number): number.isNaN ? .null : .double
            case .string: .string
            case .date: .date
            case .uuid: .uuid
            case .data: .data
            case .reference: .reference
            case .entity: .entity
            }
    }

    package var isNumeric: Bool {
        switch self {
        case .bool, .integer, .double, .decimal: true
        default: false
        }
    }

    package var isText: Bool {
        self == .string || self == .uri
    }

    /// Whether values of the two types can be equal at all.
    ///
    /// Any two numbers are compatible, and URIs are text.
    package func isCompatible(with other: ResolvedType) -> Bool {
        if self == .null || other == .null { return true }
        if isNumeric { return other.isNumeric }
        if isText { return other.isText }
        return self == other && self != .composite
    }
}
