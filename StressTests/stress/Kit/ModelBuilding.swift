import CoreData

// The scenarios' models are made in code, out of entities with numbers, texts and relationships.

extension NSEntityDescription {
    /// An entity with integers, 0 by default, and texts.
    static func keeping(
        _ name: String,
        _ type: AnyClass,
        _ numbers: [String],
        texts: [String] = []
    ) -> NSEntityDescription {
        let entity = NSEntityDescription()
        entity.name = name
        entity.managedObjectClassName = NSStringFromClass(type)
        let all: [(String, NSAttributeDescription.AttributeType)] =
            numbers.map { ($0, .integer64) } + texts.map { ($0, .string) }
        entity.properties = all.map { name, type in
            let attribute = NSAttributeDescription()
            attribute.name = name
            attribute.type = type
            attribute.isOptional = true
            if type == .integer64 { attribute.defaultValue = 0 }
            return attribute
        }
        return entity
    }

    /// Adds a floating-point number, 0 by default.
    func keepFraction(_ name: String) {
        let attribute = NSAttributeDescription()
        (attribute.name, attribute.type, attribute.isOptional) = (name, .double, true)
        attribute.defaultValue = 0.0
        properties.append(attribute)
    }

    /// Adds data that is kept in files if it is large.
    func keepOutside(_ name: String) {
        let attribute = NSAttributeDescription()
        (attribute.name, attribute.type, attribute.isOptional) = (name, .binaryData, true)
        attribute.allowsExternalBinaryDataStorage = true
        properties.append(attribute)
    }

    /// Adds a relationship and its inverse.
    ///
    /// The deletion of an object of this entity does not delete its destinations.
    func relate(
        _ name: String,
        to destination: NSEntityDescription,
        _ inverseName: String,
        isMany: Bool = false,
        inverseIsMany: Bool = false,
        inverseRule: NSDeleteRule = .nullifyDeleteRule
    ) {
        let there = NSRelationshipDescription()
        let back = NSRelationshipDescription()
        (there.name, there.destinationEntity, there.maxCount) = (name, destination, isMany ? 0 : 1)
        (back.name, back.destinationEntity, back.maxCount) = (inverseName, self, inverseIsMany ? 0 : 1)
        (there.deleteRule, back.deleteRule) = (.nullifyDeleteRule, inverseRule)
        (there.inverseRelationship, back.inverseRelationship) = (back, there)
        properties.append(there)
        destination.properties.append(back)
    }
}
