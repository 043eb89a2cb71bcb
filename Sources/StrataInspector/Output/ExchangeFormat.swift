import CoreData

/// The format in which `export` writes an object and `import` reads it: nothing is lost, and each line is independent.
///
/// The members `@id` and `@entity` come first. An ID is the entity and the key, `Venue/p12`. A date is its seconds
/// since the beginning of 2001. Data and archives are Base64. Decimal numbers, and floating-point numbers that JSON
/// does not have, are texts. Attributes without a value are left out, and so are to-many relationships whose inverse is
/// a to-one relationship that has the same information.
enum ExchangeFormat {
    /// The members of a line that are not properties.
    static let heads: Set<String> = ["@id", "@entity"]

    /// The bytes of rows that are cached while a store is read or made.
    ///
    /// A few are enough: each object is needed once or twice within a short time.
    static let rowCacheBytes = 4 << 20

    /// The to-many relationships that a line lists: those without a to-one inverse, and ordered ones.
    static func listed(of entity: NSEntityDescription) -> [NSRelationshipDescription] {
        entity.relationshipsByName.values.filter { relationship in
            guard relationship.isToMany else { return false }
            guard let inverse = relationship.inverseRelationship else { return true }
            // One side of a many-to-many relationship is enough, unless both are ordered.
            if inverse.isToMany {
                return relationship.isOrdered || (!inverse.isOrdered && isFirst(relationship, inverse))
            }
            return relationship.isOrdered
        }.sorted { $0.name < $1.name }
    }

    private static func isFirst(_ relationship: NSRelationshipDescription, _ inverse: NSRelationshipDescription) -> Bool
    {
        let names = [relationship, inverse].map { "\($0.entity.name ?? "").\($0.name)" }
        return names[0] <= names[1]
    }

    // MARK: - Writing

    /// An object as one JSON object.
    static func json(of object: NSManagedObject) -> JSON {
        let entity = object.entity
        var members = [
            JSON.Member("@id", .string(text(of: object.objectID))), JSON.Member("@entity", .string(entity.name ?? "")),
        ]
        for (name, attribute) in entity.attributesByName.sorted(by: { $0.key < $1.key })
        where !attribute.isTransient && !(attribute is NSDerivedAttributeDescription) {
            if let value = json(of: object.value(forKey: name), attribute) { members.append(JSON.Member(name, value)) }
        }
        for (name, relationship) in entity.relationshipsByName.sorted(by: { $0.key < $1.key })
        where !relationship.isToMany && !relationship.isTransient {
            guard let other = object.value(forKey: name) as? NSManagedObject else { continue }
            members.append(JSON.Member(name, .string(text(of: other.objectID))))
        }
        for relationship in listed(of: entity) where !relationship.isTransient {
            let ids = object.objectIDs(forRelationshipNamed: relationship.name).map(text)
            if !ids.isEmpty { members.append(JSON.Member(relationship.name, .array(ids.map { .string($0) }))) }
        }
        return .object(members)
    }

    /// The text of an ID, such as `Venue/p12`.
    private static func text(of id: NSManagedObjectID) -> String {
        "\(id.entity.name ?? "")/\(id.uriRepresentation().lastPathComponent)"
    }

    private static func json(of value: Any?, _ attribute: NSAttributeDescription) -> JSON? {
        if let composite = attribute as? NSCompositeAttributeDescription {
            guard let values = value as? [String: Any] else { return nil }
            let members = composite.elements.sorted { $0.name < $1.name }.compactMap { element in
                json(of: values[element.name], element).map { JSON.Member(element.name, $0) }
            }
            return members.isEmpty ? nil : .object(members)
        }
        switch value {
        case nil, is NSNull: return nil
        case let text as String: return .string(text)
        case let date as Date: return number(date.timeIntervalSinceReferenceDate)
        case let data as Data: return .string(data.base64EncodedString())
        case let uuid as UUID: return .string(uuid.uuidString)
        case let url as URL: return .string(url.absoluteString)
        case let decimal as NSDecimalNumber: return .string("\(decimal.decimalValue)")
        case let decimal as Decimal: return .string("\(decimal)")
        case let number as NSNumber:
            switch attribute.attributeType {
            case .booleanAttributeType: return .bool(number.boolValue)
            case .doubleAttributeType: return self.number(number.doubleValue)
            case .floatAttributeType: return self.number(Double(number.floatValue))
            default: return .integer(number.int64Value)
            }
        default: return nil
        }
    }

    private static func number(_ value: Double) -> JSON { value.isFinite ? .double(value) : .string("\(value)") }

    // MARK: - Reading

    /// One line in the form in which it was read.
    struct Line {
        let entity: String
        let key: Int64
        let members: [String: Any]

        /// Reads a line.
        ///
        /// - Parameters:
        ///   - text: The JSON.
        ///   - number: The number of the line, for errors.
        /// - Throws: An error that says what is wrong with the line.
        init(_ text: some StringProtocol, number: Int) throws {
            guard let members = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] else {
                throw ExchangeFormat.failure("line \(number) is no JSON object", number)
            }
            guard let id = members["@id"] as? String, let name = members["@entity"] as? String,
                let reference = ExchangeFormat.reference(id)
            else {
                throw ExchangeFormat.failure("line \(number) has no @id such as \"Venue/p12\", or no @entity", number)
            }
            (entity, key, self.members) = (name, reference.key, members)
        }
    }

    /// The entity and the key of an ID's text.
    static func reference(_ text: String) -> (entity: String, key: Int64)? {
        let parts = text.split(separator: "/p")
        guard parts.count == 2, let key = Int64(parts[1]) else { return nil }
        return (String(parts[0]), key)
    }

    /// The value of an attribute in a line.
    ///
    /// - Throws: An error that names the attribute if the value is of another kind.
    static func value(_ json: Any, _ attribute: NSAttributeDescription, line: Int) throws -> Any {
        if let composite = attribute as? NSCompositeAttributeDescription, let members = json as? [String: Any] {
            var values: [String: Any] = [:]
            let names = Set(composite.elements.map(\.name))
            if let unknown = members.keys.filter({ !names.contains($0) }).min() {
                throw failure("line \(line): \(composite.name) has no element \(unknown)", line)
            }
            for element in composite.elements {
                if let member = members[element.name] { values[element.name] = try value(member, element, line: line) }
            }
            return values
        }
        let text = json as? String
        let found: Any? =
            switch attribute.attributeType {
            case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType, .booleanAttributeType:
                json as? NSNumber
            case .doubleAttributeType, .floatAttributeType:
                (json as? NSNumber) ?? text.flatMap { Double($0) }.map { NSNumber(value: $0) }
            case .decimalAttributeType: text.flatMap { Decimal(string: $0) }.map { NSDecimalNumber(decimal: $0) }
            case .dateAttributeType:
                ((json as? NSNumber)?.doubleValue ?? text.flatMap { Double($0) })
                    .map { Date(timeIntervalSinceReferenceDate: $0) }
            case .binaryDataAttributeType: text.flatMap { Data(base64Encoded: $0) }
            case .UUIDAttributeType: text.flatMap { UUID(uuidString: $0) }
            case .URIAttributeType: text.flatMap { URL(string: $0) }
            default: text
            }
        guard let found else { throw failure("line \(line): \(attribute.name) has a value of another type", line) }
        let isNumber =
            switch found {
            case let number as NSNumber: !number.doubleValue.isNaN
            case let date as Date: !date.timeIntervalSinceReferenceDate.isNaN
            default: true
            }
        guard isNumber else {
            throw failure("line \(line): \(attribute.name) is not a number, which no store keeps", line)
        }
        return found
    }

    /// The error for a line that cannot be imported.
    static func failure(_ text: String, _ line: Int) -> CocoaError {
        CocoaError.described(
            .fileReadCorruptFile,
            userInfo: [NSLocalizedDescriptionKey: "Nothing was imported: \(text)."]
        )
    }
}
