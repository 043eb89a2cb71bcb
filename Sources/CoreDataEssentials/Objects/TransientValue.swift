import Foundation
import StrataRows

extension NSAttributeType {
    /// A value for a transient attribute as key-value coding shows it: numbers as `NSNumber`, as stored attributes do.
    ///
    /// - Throws: ``ValueTypeMismatch`` for a value that a stored attribute of the type would not take.
    package func transientValue(_ value: Any) throws -> Any {
        let type = AttributeType(self)
        switch type {
        case .undefined, .transformable, .composite: return value
        case .objectID: return try required(value as? NSManagedObjectID)
        // The URL is kept as it is, with its base, and not as the text that a row stores.
        case .uri: return try required(value as? URL ?? (value as? NSURL).map { $0 as URL })
        default: break
        }
        switch type.slotKind {
        case .int: return type.object(try type.integer(value))
        case .double: return type.object(try type.double(value))
        case .string: return try required(type.object(try type.text(value)))
        case .data: return try required(value as? Data ?? (value as? NSData).map { $0 as Data })
        case .uuid: return try required(value as? UUID ?? (value as? NSUUID).map { $0 as UUID })
        case .decimal: return NSDecimalNumber(decimal: try required(Row.decimal(value)))
        case .reference: return value
        }
    }

    private func required<T>(_ value: T?) throws -> T {
        guard let value else { throw ValueTypeMismatch() }
        return value
    }
}
