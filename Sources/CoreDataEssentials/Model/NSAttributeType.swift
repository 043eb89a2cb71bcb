import Foundation
import StrataPredicates
import StrataRows

/// The kind of an attribute's values.
///
/// The raw values take part in version hashes and are stored in cached models, so they are the same on all platforms.
/// ``NSAttributeDescription/AttributeType`` has the same kinds under shorter names.
///
/// ```swift
/// let price = NSAttributeDescription()
/// price.attributeType = .integer64AttributeType
/// ```
public enum NSAttributeType: UInt, Sendable, CaseIterable {
    /// No type yet. Only transient attributes may keep it.
    case undefinedAttributeType = 0

    /// A signed 16-bit integer, `Int16`.
    case integer16AttributeType = 100

    /// A signed 32-bit integer, `Int32`.
    case integer32AttributeType = 200

    /// A signed 64-bit integer, `Int64`.
    case integer64AttributeType = 300

    /// A decimal number, `NSDecimalNumber` (or `Decimal`).
    case decimalAttributeType = 400

    /// A 64-bit floating-point number, `Double`.
    case doubleAttributeType = 500

    /// A 32-bit floating-point number, `Float`.
    case floatAttributeType = 600

    /// Text, `String`.
    case stringAttributeType = 700

    /// A truth value, `Bool`.
    case booleanAttributeType = 800

    /// A point in time, `Date`.
    case dateAttributeType = 900

    /// Bytes, `Data`.
    case binaryDataAttributeType = 1000

    /// A universally unique identifier, `UUID`.
    case UUIDAttributeType = 1100

    /// A uniform resource identifier, `URL`.
    case URIAttributeType = 1200

    /// Any object that a ``ValueTransformer`` turns into `Data` and back.
    case transformableAttributeType = 1800

    /// The ID of a managed object; not for stored attributes.
    case objectIDAttributeType = 2000

    /// A dictionary of further attributes, described by an ``NSCompositeAttributeDescription``.
    case compositeAttributeType = 2100
}

extension NSAttributeDescription {
    /// The kind of an attribute's values.
    ///
    /// ```swift
    /// let openedAt = NSAttributeDescription()
    /// (openedAt.name, openedAt.type) = ("openedAt", .date)
    /// ```
    public struct AttributeType: RawRepresentable, Hashable, Sendable {
        /// The same kind in the older spelling.
        public var rawValue: NSAttributeType

        /// Wraps a kind in the older spelling.
        ///
        /// - Parameter rawValue: The kind of attribute.
        public init(rawValue: NSAttributeType) {
            self.rawValue = rawValue
        }

        /// No type yet.
        ///
        /// Only transient attributes may keep it.
        public static let undefined = AttributeType(rawValue: .undefinedAttributeType)

        /// A signed 16-bit integer, `Int16`.
        public static let integer16 = AttributeType(rawValue: .integer16AttributeType)

        /// A signed 32-bit integer, `Int32`.
        public static let integer32 = AttributeType(rawValue: .integer32AttributeType)

        /// A signed 64-bit integer, `Int64`.
        public static let integer64 = AttributeType(rawValue: .integer64AttributeType)

        /// A decimal number, `NSDecimalNumber` (or `Decimal`).
        public static let decimal = AttributeType(rawValue: .decimalAttributeType)

        /// A 64-bit floating-point number, `Double`.
        public static let double = AttributeType(rawValue: .doubleAttributeType)

        /// A 32-bit floating-point number, `Float`.
        public static let float = AttributeType(rawValue: .floatAttributeType)

        /// Text, `String`.
        public static let string = AttributeType(rawValue: .stringAttributeType)

        /// A truth value, `Bool`.
        public static let boolean = AttributeType(rawValue: .booleanAttributeType)

        /// A point in time, `Date`.
        public static let date = AttributeType(rawValue: .dateAttributeType)

        /// Bytes, `Data`.
        public static let binaryData = AttributeType(rawValue: .binaryDataAttributeType)

        /// A universally unique identifier, `UUID`.
        public static let uuid = AttributeType(rawValue: .UUIDAttributeType)

        /// A uniform resource identifier, `URL`.
        public static let uri = AttributeType(rawValue: .URIAttributeType)

        /// Any object that a ``ValueTransformer`` turns into `Data` and back.
        public static let transformable = AttributeType(rawValue: .transformableAttributeType)

        /// The ID of a managed object.
        ///
        /// Not for stored attributes.
        public static let objectID = AttributeType(rawValue: .objectIDAttributeType)

        /// A dictionary of further attributes, described by an ``NSCompositeAttributeDescription``.
        public static let composite = AttributeType(rawValue: .compositeAttributeType)
    }
}

extension NSAttributeDescription.AttributeType {
    /// The Objective-C name of the class of such values in Apple's framework, for `attributeValueClassName`.
    var valueClassName: String? {
        switch rawValue {
        case .undefinedAttributeType, .transformableAttributeType: nil
        case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType: "NSNumber"
        case .doubleAttributeType, .floatAttributeType, .booleanAttributeType: "NSNumber"
        case .decimalAttributeType: "NSDecimalNumber"
        case .stringAttributeType: "NSString"
        case .dateAttributeType: "NSDate"
        case .binaryDataAttributeType: "NSData"
        case .UUIDAttributeType: "NSUUID"
        case .URIAttributeType: "NSURL"
        case .objectIDAttributeType: "NSManagedObjectID"
        case .compositeAttributeType: "NSDictionary"
        }
    }
}

extension NSAttributeType {
    /// The name of the type in Xcode's model editor.
    package var described: String { AttributeType(self).described }

    /// The Swift type of the attribute type in handwritten accessors; `nil` if any type is possible.
    package var swiftType: Any.Type? {
        switch self {
        case .integer16AttributeType: Int16.self
        case .integer32AttributeType: Int32.self
        case .integer64AttributeType: Int64.self
        case .doubleAttributeType: Double.self
        case .floatAttributeType: Float.self
        case .booleanAttributeType: Bool.self
        case .stringAttributeType: String.self
        case .dateAttributeType: Date.self
        case .binaryDataAttributeType: Data.self
        case .UUIDAttributeType: UUID.self
        case .URIAttributeType: URL.self
        case .decimalAttributeType: Decimal.self
        case .undefinedAttributeType, .transformableAttributeType, .objectIDAttributeType, .compositeAttributeType: nil
        }
    }

    /// Whether an object has the class of the type's default values.
    package func isOfClass(_ value: Any) -> Bool {
        switch self {
        case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType, .doubleAttributeType,
            .floatAttributeType, .booleanAttributeType, .decimalAttributeType:
            value is NSNumber
        case .stringAttributeType: value is String
        case .dateAttributeType: value is Date
        case .binaryDataAttributeType: value is Data
        case .UUIDAttributeType: value is UUID
        case .URIAttributeType: value is URL
        case .undefinedAttributeType, .transformableAttributeType, .objectIDAttributeType, .compositeAttributeType: true
        }
    }
}
