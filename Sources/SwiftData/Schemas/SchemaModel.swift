import CoreData
import Foundation

/// Makes the managed object model of a schema, as SwiftData writes it into its stores.
struct SchemaModel {
    let entities: [Schema.Entity]
    let version: Schema.Version

    /// The reason why entities make no model.
    struct Invalid: Error, CustomStringConvertible {
        let description: String
    }

    /// - Throws: `Invalid` or `StoredForm.Unsupported`.
    func model() throws -> NSManagedObjectModel {
        let model = NSManagedObjectModel()
        let made = Dictionary(
            uniqueKeysWithValues: entities.map { described in
                let entity = NSEntityDescription()
                entity.name = described.name
                entity.renamingIdentifier = described.name
                return (described.name, entity)
            }
        )
        for described in entities {
            guard let entity = made[described.name] else { continue }
            entity.properties = try described.storedProperties.compactMap { try property($0, of: described, made) }
            entity.subentities = described.subentities.map(\.name).sorted().compactMap { made[$0] }
        }
        try connectInverses(made)
        for described in entities {
            guard let entity = made[described.name] else { continue }
            let unique = described.storedProperties.filter { $0.isUnique && $0.isAttribute }.map { [$0.name] }
            let others = described.uniquenessConstraints.filter { !unique.contains($0) }
            entity.uniquenessConstraints = try checked(unique + others, entity)
            entity.indexes = try checked(described.indices, entity).map { names in
                NSFetchIndexDescription(
                    name: "SwiftDataIndexOnBinary\(names.joined())",
                    elements: names.compactMap { entity.propertiesByName[$0] }.map {
                        NSFetchIndexElementDescription(property: $0, collationType: .binary)
                    }
                )
            }
        }
        model.entities = entities.sorted { $0.name < $1.name }.compactMap { made[$0.name] }
        model.versionIdentifiers = [version.description]
        return model
    }

    /// Groups of properties, all of which the entity has.
    private func checked(_ groups: [[String]], _ entity: NSEntityDescription) throws -> [[String]] {
        for name in groups.joined() where entity.propertiesByName[name] == nil {
            throw Invalid(
                description: "\(entity.name ?? "") has no property \(name), and it cannot be unique or indexed."
            )
        }
        return groups
    }

    // MARK: - Properties

    private func property(
        _ property: any SchemaProperty,
        of entity: Schema.Entity,
        _ entities: [String: NSEntityDescription]
    ) throws -> NSPropertyDescription? {
        switch property {
        case let attribute as Schema.Attribute:
            do {
                return try description(attribute)
            } catch {
                throw Invalid(description: "\(entity.name).\(attribute.name) cannot be stored: \(error)")
            }
        case let relationship as Schema.Relationship:
            guard let destination = entities[relationship.destination] else {
                throw Invalid(
                    description: "\(entity.name).\(relationship.name) leads to \(relationship.destination), "
                        + "which is no entity of the schema."
                )
            }
            return description(relationship, destination)
        default: return nil
        }
    }

    private func description(_ property: Schema.Attribute) throws -> NSAttributeDescription {
        let form = try property.storedForm
        let attribute = form.attribute(property.name, isOptional: property.isOptional)
        attribute.isOptional = property.isOptional
        attribute.renamingIdentifier = property.originalName
        attribute.versionHashModifier = property.hashModifier
        if let value = property.defaultValue, let stored = try? form.stored(value) {
            if let composite = attribute as? NSCompositeAttributeDescription {
                composite.defaultValue = [String: Any]()
                // A migration fills new columns with these.
                let parts = stored as? [String: Any] ?? [:]
                for element in composite.elements { element.defaultValue = parts[element.name] }
            } else {
                attribute.defaultValue = stored
            }
        }
        for option in property.options {
            switch option.kind {
            case .externalStorage: attribute.allowsExternalBinaryDataStorage = true
            case .ephemeral: attribute.isTransient = true
            case .preserveValueOnDeletion: attribute.preservesValueInHistoryOnDeletion = true
            case .unique, .spotlight, .allowsCloudEncryption, .transformable, .codable: break
            }
        }
        return attribute
    }

    private func description(
        _ property: Schema.Relationship,
        _ destination: NSEntityDescription
    ) -> NSRelationshipDescription {
        let relationship = NSRelationshipDescription()
        let isToOne = property.isToOneRelationship
        relationship.name = property.name
        relationship.destinationEntity = destination
        relationship.isOptional = property.isOptional
        relationship.minCount = isToOne ? 0 : property.minimumModelCount ?? 0
        relationship.maxCount = isToOne ? 1 : property.maximumModelCount ?? 0
        relationship.deleteRule = property.deleteRule.rule
        relationship.renamingIdentifier = property.originalName
        relationship.versionHashModifier = property.hashModifier
        return relationship
    }

    private func connectInverses(_ made: [String: NSEntityDescription]) throws {
        for described in entities {
            for relationship in described.relationships {
                guard let name = relationship.inverseName else { continue }
                guard let here = made[described.name]?.relationshipsByName[relationship.name],
                    let there = made[relationship.destination]?.relationshipsByName[name]
                else {
                    throw Invalid(
                        description: "the inverse \(name) of \(described.name).\(relationship.name) is no relationship."
                    )
                }
                here.inverseRelationship = there
                there.inverseRelationship = here
            }
        }
    }
}

extension StoredForm {
    /// The description of an attribute of this form.
    fileprivate func attribute(_ name: String, isOptional: Bool) -> NSAttributeDescription {
        let attribute: NSAttributeDescription
        switch self {
        case .rawValue(_, let element, let form):
            let composite = NSCompositeAttributeDescription()
            let part = form.attribute(element, isOptional: true)
            part.isOptional = true
            composite.elements = [part]
            composite.userInfo = ["EnumType": true]
            attribute = composite
        case .cases(_, let names):
            let composite = NSCompositeAttributeDescription()
            composite.elements = names.map { name in
                let part = NSAttributeDescription()
                part.name = name
                part.attributeType = .stringAttributeType
                part.isOptional = true
                return part
            }
            composite.userInfo = ["EnumType": true, "enum": names]
            attribute = composite
        case .structure(_, let elements):
            let composite = NSCompositeAttributeDescription()
            composite.elements = elements.map { element in
                let part = element.form.elementAttribute(element.name)
                part.isOptional = element.isOptional || isOptional
                return part
            }
            attribute = composite
        default:
            attribute = NSAttributeDescription()
            attribute.attributeType = type
            if case .transformable(let name, let type) = self {
                attribute.valueTransformerName = name
                attribute.attributeValueClassName = String(describing: type)
            }
            if case .json(let type) = self {
                attribute.valueTransformerName = "NSSecureUnarchiveFromData"
                attribute.attributeValueClassName = String(describing: type)
            }
        }
        attribute.name = name
        return attribute
    }

    /// Elements in JSON are plain binary data, while properties in JSON are archived.
    private func elementAttribute(_ name: String) -> NSAttributeDescription {
        guard case .json = self else { return attribute(name, isOptional: false) }
        let part = NSAttributeDescription()
        part.name = name
        part.attributeType = .binaryDataAttributeType
        return part
    }

    private var type: NSAttributeType {
        switch self {
        case .integer(_, let bits):
            bits == 16 ? .integer16AttributeType : bits == 32 ? .integer32AttributeType : .integer64AttributeType
        case .double: .doubleAttributeType
        case .float: .floatAttributeType
        case .boolean: .booleanAttributeType
        case .string: .stringAttributeType
        case .date: .dateAttributeType
        case .data: .binaryDataAttributeType
        case .uuid: .UUIDAttributeType
        case .decimal: .decimalAttributeType
        case .url: .URIAttributeType
        case .json, .transformable: .transformableAttributeType
        case .rawValue, .cases, .structure: .compositeAttributeType
        }
    }
}
