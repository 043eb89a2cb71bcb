import Foundation
import StrataRows

extension NSAttributeType {
    /// A value for a transient attribute as key-value coding shows it: numbers as `NSNumber`, as stored attributes do.
    ///
    /// - Throws: ``ValueTypeMismatch`` for a value that a stored attribute of the type would not take.
    func transientValue(_ value: Any) throws -> Any {
        switch self {
        case .integer16AttributeType:
            return NSNumber(value: Int16(truncatingIfNeeded: try Row.integer(value, AttributeType(self))))
        case .integer32AttributeType:
            return NSNumber(value: Int32(truncatingIfNeeded: try Row.integer(value, AttributeType(self))))
        case .integer64AttributeType: return NSNumber(value: try Row.integer(value, AttributeType(self)))
        case .booleanAttributeType: return NSNumber(value: try Row.integer(value, AttributeType(self)) != 0)
        case .doubleAttributeType: return NSNumber(value: try required(Row.floating(value)))
        case .floatAttributeType: return NSNumber(value: Float(try required(Row.floating(value))))
        case .decimalAttributeType: return NSDecimalNumber(decimal: try required(Row.decimal(value)))
        case .stringAttributeType: return try required(value as? String ?? (value as? NSString).map { $0 as String })
        case .dateAttributeType: return try required(value as? Date ?? (value as? NSDate).map { $0 as Date })
        case .binaryDataAttributeType: return try required(value as? Data ?? (value as? NSData).map { $0 as Data })
        case .UUIDAttributeType: return try required(value as? UUID ?? (value as? NSUUID).map { $0 as UUID })
        case .URIAttributeType: return try required(value as? URL ?? (value as? NSURL).map { $0 as URL })
        case .objectIDAttributeType: return try required(value as? NSManagedObjectID)
        case .undefinedAttributeType, .transformableAttributeType, .compositeAttributeType: return value
        }
    }

    private func required<T>(_ value: T?) throws -> T {
        guard let value else { throw ValueTypeMismatch() }
        return value
    }
}
