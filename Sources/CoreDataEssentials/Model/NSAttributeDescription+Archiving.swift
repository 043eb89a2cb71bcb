import CoreDataTransformers
import Foundation
import StrataArchives

extension NSAttributeDescription {
    /// The data that a store keeps for a value of a transformable attribute.
    ///
    /// - Returns: The data; `nil` if the transformer refuses the value, or there is no transformer with the name, or
    ///   there is no name and the value cannot be archived.
    package func archived(_ value: Any) -> Data? {
        guard let name = valueTransformerName else {
            return NSSecureUnarchiveFromDataTransformer.attributeDefault.data(for: value)
        }
        guard let transformer = ValueTransformer(forName: NSValueTransformerName(name)) else { return nil }
        return
            (transformer.turnsDataIntoObjects
            ? transformer.reverseTransformedValue(value) : transformer.transformedValue(value)) as? Data
    }

    /// The value of a transformable attribute from the data in a store.
    ///
    /// - Returns: The value; `nil` if the data is damaged, or has classes that are unknown or not allowed, or if there
    ///   is no transformer with the name, or it refuses the data.
    package func unarchived(_ data: Data) -> Any? {
        guard let name = valueTransformerName else {
            return NSSecureUnarchiveFromDataTransformer.attributeDefault.object(in: data)
        }
        guard let transformer = ValueTransformer(forName: NSValueTransformerName(name)) else { return nil }
        return transformer.turnsDataIntoObjects
            ? transformer.transformedValue(data) : transformer.reverseTransformedValue(data)
    }
}
