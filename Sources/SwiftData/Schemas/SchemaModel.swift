import CoreData
import Foundation

/// Makes the managed object model of a schema, as SwiftData writes it into its stores.
struct SchemaModel {
    let records: [String: ModelRecord]
    let version: Schema.Version

    func model() -> NSManagedObjectModel {
        let model = NSManagedObjectModel()
        var entities: [String: NSEntityDescription] = [:]
        for name in records.keys {
            let entity = NSEntityDescription()
            entity.name = name
            entity.renamingIdentifier = name
            entities[name] = entity
        }
        let sorted = records.values.sorted { $0.entityName < $1.entityName }
        for record in sorted {
            guard let entity = entities[record.entityName] else { continue }
            entity.properties = record.properties.map { property(of: $0, entities) }
        }
        connectInverses(sorted, entities)
        for record in sorted {
            guard let entity = entities[record.entityName] else { continue }
            entity.uniquenessConstraints = uniqueAttributes(record).map { [$0] } + record.constraints
            entity.indexes = record.indices.map { names in
                NSFetchIndexDescription(
                    name: "SwiftDataIndexOnBinary\(names.joined())",
                    elements: names.compactMap { entity.propertiesByName[$0] }.map {
                        NSFetchIndexElementDescription(property: $0, collationType: .binary)
                    }
                )
            }
        }
        model.entities = sorted.compactMap { entities[$0.entityName] }
        model.versionIdentifiers = [version.description]
        return model
    }

    private func uniqueAttributes(_ record: ModelRecord) -> [String] {
        record.properties.filter { property in
            (property.metadata as? Schema.Attribute)?.options.contains(.unique) == true
        }.map(\.name)
    }

    // MARK: - Properties

    private func property(of property: ModelProperty, _ entities: [String: NSEntityDescription])
        -> NSPropertyDescription
    {
        switch property.kind {
        case .attribute(let form): attribute(property, form)
        case .toOne(let type): relationship(property, to: type, isToMany: false, entities)
        case .toMany(let type): relationship(property, to: type, isToMany: true, entities)
        }
    }

    private func attribute(_ property: ModelProperty, _ form: StoredForm) -> NSAttributeDescription {
        let attribute = form.attribute(property.name, isOptional: property.isOptional)
        attribute.isOptional = property.isOptional
        attribute.renamingIdentifier = property.name
        if let value = property.defaultValue, let stored = try? form.stored(value) {
            attribute.defaultValue = attribute is NSCompositeAttributeDescription ? [String: Any]() : stored
        }
        guard let metadata = property.metadata as? Schema.Attribute else { return attribute }
        attribute.renamingIdentifier = metadata.originalName ?? property.name
        attribute.versionHashModifier = metadata.hashModifier
        for option in metadata.options {
            switch option.kind {
            case .externalStorage: attribute.allowsExternalBinaryDataStorage = true
            case .ephemeral: attribute.isTransient = true
            case .preserveValueOnDeletion: attribute.preservesValueInHistoryOnDeletion = true
            case .unique, .spotlight, .allowsCloudEncryption, .transformable: break
            }
        }
        return attribute
    }

    private func relationship(
        _ property: ModelProperty,
        to type: any PersistentModel.Type,
        isToMany: Bool,
        _ entities: [String: NSEntityDescription]
    ) -> NSRelationshipDescription {
        let relationship = NSRelationshipDescription()
        let metadata = property.metadata as? Schema.Relationship
        relationship.name = property.name
        relationship.destinationEntity = entities[ModelRecord.of(type).entityName]
        relationship.isOptional = property.isOptional
        relationship.minCount = isToMany ? metadata?.minimumModelCount ?? 0 : 0
        relationship.maxCount = isToMany ? metadata?.maximumModelCount ?? 0 : 1
        relationship.deleteRule = (metadata?.deleteRule ?? .nullify).rule
        relationship.renamingIdentifier = metadata?.originalName ?? property.name
        relationship.versionHashModifier = metadata?.hashModifier
        return relationship
    }

    // MARK: - Inverses

    /// Sets the inverses that are named, and those of plain pairs.
    private func connectInverses(_ sorted: [ModelRecord], _ entities: [String: NSEntityDescription]) {
        func relationship(_ record: ModelRecord, _ name: String) -> NSRelationshipDescription? {
            entities[record.entityName]?.relationshipsByName[name]
        }
        for record in sorted {
            for property in record.properties {
                guard let keyPath = (property.metadata as? Schema.Relationship)?.inverseKeyPath else { continue }
                guard let type = Swift.type(of: keyPath).rootType as? any PersistentModel.Type,
                    let other = ModelRecord.of(type).propertyIfStored(keyPath),
                    let here = relationship(record, property.name),
                    let there = relationship(ModelRecord.of(type), other.name)
                else {
                    fatalError(
                        "SwiftData: the inverse \(keyPath) of \(record.type).\(property.name) is no relationship."
                    )
                }
                here.inverseRelationship = there
                there.inverseRelationship = here
            }
        }
        for record in sorted {
            for property in record.properties where property.metadata == nil {
                guard let here = relationship(record, property.name), here.inverseRelationship == nil,
                    let other = plainPartner(of: property, in: record),
                    let there = relationship(other.record, other.name), there.inverseRelationship == nil
                else { continue }
                here.inverseRelationship = there
                there.inverseRelationship = here
            }
        }
    }

    /// The only relationship that leads back, if both sides are plain and there is one each way.
    ///
    /// A to-one side has to be optional. If a side has options, then its inverse is named or there is none: stores
    /// that SwiftData has made show that.
    private func plainPartner(
        of property: ModelProperty,
        in record: ModelRecord
    ) -> (record: ModelRecord, name: String)? {
        func target(_ property: ModelProperty) -> ModelRecord? {
            switch property.kind {
            case .toOne(let type): property.isOptional ? ModelRecord.of(type) : nil
            case .toMany(let type): ModelRecord.of(type)
            case .attribute: nil
            }
        }
        func pairs(_ from: ModelRecord, _ to: ModelRecord) -> [ModelProperty] {
            from.properties.filter { property in
                switch property.kind {
                case .toOne(let type), .toMany(let type): ModelRecord.of(type) === to
                case .attribute: false
                }
            }
        }
        guard let other = target(property), other !== record else { return nil }
        let back = pairs(other, record)
        guard pairs(record, other).count == 1, back.count == 1, let only = back.first, only.metadata == nil,
            target(only) != nil
        else { return nil }
        return (other, only.name)
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
