import Foundation
import StrataPredicates

/// The kind of value that an attribute holds, and everything that rows and engines know about it.
///
/// The raw values are those of `NSAttributeType`, which has the same kinds for users of the framework. If you add a
/// type, you find each question about it in this file. The switches that list all types have no default, so that the
/// compiler finds them.
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

    /// The words of a value in a row.
    public var slotKind: SlotKind {
        switch self {
        case .integer16, .integer32, .integer64, .boolean: .int
        case .double, .float, .date: .double
        case .string, .uri: .string
        case .uuid: .uuid
        case .decimal: .decimal
        case .data, .transformable, .undefined, .objectID, .composite: .data
        }
    }

    // MARK: - Names

    /// The name of the type in Xcode's model editor and in model files.
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

    private static let byName = Dictionary(uniqueKeysWithValues: allCases.map { ($0.described, $0) })
        // Models contain these names as well.
        .merging(["Binary": .data, "ObjectID": .objectID]) { known, _ in known }

    /// Finds the type with the name that Xcode writes; `nil` if there is none.
    package init?(described name: String) {
        guard let type = Self.byName[name] else { return nil }
        self = type
    }

    // MARK: - Predicates

    /// The type in the form that predicates know.
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

    /// Whether a value of an expression can be given as one of an attribute of this type.
    package func canHold(_ type: ResolvedType) -> Bool {
        if type == .null { return true }
        switch self {
        case .undefined: return true
        case .integer16, .integer32, .integer64, .decimal, .double, .float, .boolean, .date:
            return type.isNumeric || type == .date
        case .string: return type.isText || type.isNumeric
        case .uri: return type.isText
        case .data: return type == .data || type == .transformable
        case .transformable: return type == .transformable
        case .uuid: return type == .uuid
        case .objectID: return type == .reference
        case .composite: return false
        }
    }
}

// MARK: - Values of types that share words

// A type that uses its slot kind alone, such as a UUID, needs nothing here.

extension AttributeType {
    /// The object that key-value coding returns for an integer in a row.
    package func object(_ value: Int64) -> NSNumber {
        switch self {
        case .boolean: NSNumber(value: value != 0)
        case .integer16: NSNumber(value: Int16(truncatingIfNeeded: value))
        case .integer32: NSNumber(value: Int32(truncatingIfNeeded: value))
        default: NSNumber(value: value)
        }
    }

    /// The object that key-value coding returns for a floating-point number in a row.
    package func object(_ value: Double) -> Any {
        switch self {
        case .date: Date(timeIntervalSinceReferenceDate: value)
        case .float: NSNumber(value: Float(value))
        default: NSNumber(value: value)
        }
    }

    /// The object that key-value coding returns for a text in a row.
    package func object(_ text: String) -> Any? {
        self == .uri ? URL(string: text) : text
    }

    /// Whether an integer fits into an attribute of the type.
    package func hasRoom(for value: Int64) -> Bool {
        switch self {
        case .integer16: Int16(exactly: value) != nil
        case .integer32: Int32(exactly: value) != nil
        default: true
        }
    }

    /// The integer that a row keeps for a value of the user; fractions are cut off.
    ///
    /// - Throws: ``ValueTypeMismatch`` for a value that is not a number, or does not fit.
    package func integer(_ value: Any) throws -> Int64 {
        let wide: Int64
        switch value {
        case let bool as Bool: wide = bool ? 1 : 0
        case let integer as any BinaryInteger:
            guard let exact = Int64(exactly: integer) else { throw ValueTypeMismatch() }
            wide = exact
        case let number as NSNumber:
            guard let exact = Int64(exactly: number) ?? Int64(exactly: number.doubleValue.rounded(.towardZero)) else {
                throw ValueTypeMismatch()
            }
            wide = exact
        default: throw ValueTypeMismatch()
        }
        guard hasRoom(for: wide) else { throw ValueTypeMismatch() }
        return self == .boolean ? (wide == 0 ? 0 : 1) : wide
    }

    /// The floating-point number that a row keeps for a value of the user.
    ///
    /// - Throws: ``ValueTypeMismatch`` for a value of another type.
    package func double(_ value: Any) throws -> Double {
        if self == .date {
            guard let date = value as? Date ?? (value as? NSDate).map({ $0 as Date }) else { throw ValueTypeMismatch() }
            return date.timeIntervalSinceReferenceDate
        }
        guard let number = Row.floating(value) else { throw ValueTypeMismatch() }
        return self == .float ? Double(Float(number)) : number
    }

    /// The text that a row keeps for a value of the user.
    ///
    /// - Throws: ``ValueTypeMismatch`` for a value of another type.
    package func text(_ value: Any) throws -> String {
        if self == .uri {
            guard let url = value as? URL ?? (value as? NSURL).map({ $0 as URL }) else { throw ValueTypeMismatch() }
            return url.absoluteString
        }
        guard let text = value as? String ?? (value as? NSString).map({ $0 as String }) else {
            throw ValueTypeMismatch()
        }
        return text
    }
}
