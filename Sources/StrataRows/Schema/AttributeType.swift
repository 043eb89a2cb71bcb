import StrataPredicates

/// The kind of value that an attribute holds.
///
/// The raw values are those of `NSAttributeType`, which has the same kinds for users of the framework.
public enum AttributeType: UInt, Sendable, CaseIterable {
    case undefined = 0
    case integer16 = 100
    case integer32 = 200
    case integer64 = 300
    case decimal = 400
    case double = 500
    case float = 600
    case string = 700
    case boolean = 800
    case date = 900
    case data = 1000
    case uuid = 1100
    case uri = 1200
    case transformable = 1800
    case objectID = 2000
    case composite = 2100

    /// What Xcode's model editor calls the type.
    package var described: String {
        switch self {
        case .undefined: "Undefined"
        case .integer16: "Integer 16"
        case .integer32: "Integer 32"
        case .integer64: "Integer 64"
        case .decimal: "Decimal"
        case .double: "Double"
        case .float: "Float"
        case .string: "String"
        case .boolean: "Boolean"
        case .date: "Date"
        case .data: "Binary Data"
        case .uuid: "UUID"
        case .uri: "URI"
        case .transformable: "Transformable"
        case .objectID: "Object ID"
        case .composite: "Composite"
        }
    }

    /// What predicates see of the type.
    package var predicateType: PredicateAttributeType {
        switch self {
        case .boolean: .bool
        case .integer16, .integer32, .integer64: .integer
        case .double, .float: .double
        case .decimal: .decimal
        case .date: .date
        case .string: .string
        case .uri: .uri
        case .uuid: .uuid
        case .data: .data
        case .undefined, .transformable, .objectID, .composite: .transformable
        }
    }
}
