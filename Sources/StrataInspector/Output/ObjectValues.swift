import CoreData

/// Turns a managed object into JSON: attributes by name, relationships as object URIs.
///
/// The members `@id` and `@entity` come first; no property can have such a name. Data is Base64, a date is ISO 8601 in
/// UTC with milliseconds, and a decimal number keeps its digits. A value that cannot be decoded is an object with the
/// member `@undecodable`, which is the number of its bytes.
enum ObjectValues {
    /// The object as one JSON object.
    ///
    /// Call it on the queue of the object's context.
    static func json(of object: NSManagedObject) -> JSON {
        let entity = object.entity
        var members: [JSON.Member] = [
            JSON.Member("@id", .string(uri(object.objectID))), JSON.Member("@entity", .string(entity.name ?? "")),
        ]
        for (name, attribute) in entity.attributesByName.sorted(by: { $0.key < $1.key }) {
            let value =
                object.undecodableArchive(forKey: name).map {
                    JSON.object([JSON.Member(undecodable, .integer(Int64($0.count)))])
                }
                ?? json(of: object.value(forKey: name), attribute)
            members.append(JSON.Member(name, value))
        }
        for (name, relationship) in entity.relationshipsByName.sorted(by: { $0.key < $1.key }) {
            members.append(JSON.Member(name, json(of: relationship, name: name, object)))
        }
        return .object(members)
    }

    /// The member of an object that replaces a value that cannot be decoded.
    static let undecodable = "@undecodable"

    private static func json(
        of relationship: NSRelationshipDescription,
        name: String,
        _ object: NSManagedObject
    ) -> JSON {
        guard relationship.isToMany else {
            return (object.value(forKey: name) as? NSManagedObject).map { .string(uri($0.objectID)) } ?? .null
        }
        let ids = object.objectIDs(forRelationshipNamed: name).map(uri)
        // An unordered set has no fixed order. Sorted, two runs print the same.
        return .array((relationship.isOrdered ? ids : ids.sorted(by: isBefore)).map { .string($0) })
    }

    /// The value of an attribute, by the type that the model gives it.
    static func json(of value: Any?, _ attribute: NSAttributeDescription) -> JSON {
        guard let value, !(value is NSNull) else { return .null }
        switch attribute.attributeType {
        case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType:
            return (value as? NSNumber).map { .integer($0.int64Value) } ?? description(of: value)
        case .booleanAttributeType:
            return (value as? NSNumber).map { .bool($0.boolValue) } ?? description(of: value)
        case .doubleAttributeType:
            return (value as? NSNumber).map { .double($0.doubleValue) } ?? description(of: value)
        case .floatAttributeType:
            // The conversion uses the digits: 0.1 as a Float is not the Double 0.1.
            return (value as? NSNumber).map { number($0.floatValue) } ?? description(of: value)
        case .decimalAttributeType:
            return decimal(value)
        case .dateAttributeType:
            return (value as? Date).map { .string($0.formatted(timestamp)) } ?? description(of: value)
        case .binaryDataAttributeType:
            return (value as? Data).map { .string($0.base64EncodedString()) } ?? description(of: value)
        case .compositeAttributeType:
            return composite(value, attribute)
        default:
            return untyped(value)
        }
    }

    private static let timestamp = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    private static func number(_ value: Float) -> JSON {
        value.isFinite ? .double(Double("\(value)") ?? Double(value)) : .null
    }

    private static func decimal(_ value: Any) -> JSON {
        let decimal = value as? Decimal ?? (value as? NSDecimalNumber)?.decimalValue
        guard let decimal else { return description(of: value) }
        return decimal.isNaN ? .null : .number("\(decimal)")
    }

    private static func composite(_ value: Any, _ attribute: NSAttributeDescription) -> JSON {
        guard let values = value as? [String: Any], let composite = attribute as? NSCompositeAttributeDescription else {
            return untyped(value)
        }
        return .object(
            composite.elements.sorted { $0.name < $1.name }.map { JSON.Member($0.name, json(of: values[$0.name], $0)) }
        )
    }

    /// The value of an attribute without a type in the model, such as a transformable one.
    private static func untyped(_ value: Any) -> JSON {
        switch value {
        case let text as String: .string(text)
        case let url as URL: .string(url.absoluteString)
        case let uuid as UUID: .string(uuid.uuidString)
        case let date as Date: .string(date.formatted(timestamp))
        case let data as Data: .string(data.base64EncodedString())
        case let values as [Any]: .array(values.map(untyped))
        case let values as [String: Any]:
            .object(values.sorted { $0.key < $1.key }.map { JSON.Member($0.key, untyped($0.value)) })
        case let number as NSNumber: .number(number.stringValue)
        default: description(of: value)
        }
    }

    private static func description(of value: Any) -> JSON {
        .string(String(describing: value))
    }

    private static func uri(_ id: NSManagedObjectID) -> String {
        id.uriRepresentation().absoluteString
    }

    /// Orders URIs that differ only in their last numbers by those: p9 comes before p10.
    private static func isBefore(_ first: String, _ second: String) -> Bool {
        (first.count, first) < (second.count, second)
    }
}
