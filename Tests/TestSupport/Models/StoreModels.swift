import CoreData
import StrataRows

/// Models for tests of stores, each a fresh one.
package enum StoreModels {
    package static func entity(_ name: String, _ properties: [NSPropertyDescription] = []) -> NSEntityDescription {
        let entity = NSEntityDescription()
        entity.name = name
        entity.properties = properties
        return entity
    }

    package static func attribute(
        _ name: String,
        _ type: NSAttributeDescription.AttributeType,
        isExternal: Bool = false
    ) -> NSAttributeDescription {
        let attribute = NSAttributeDescription()
        attribute.name = name
        attribute.type = type
        attribute.allowsExternalBinaryDataStorage = isExternal
        return attribute
    }

    package static func derived(
        _ name: String,
        _ type: NSAttributeDescription.AttributeType,
        _ expression: NSExpression
    ) -> NSDerivedAttributeDescription {
        let attribute = NSDerivedAttributeDescription()
        attribute.name = name
        attribute.type = type
        attribute.derivationExpression = expression
        return attribute
    }

    package static func toOne(_ name: String, _ destination: NSEntityDescription) -> NSRelationshipDescription {
        let relationship = NSRelationshipDescription()
        relationship.name = name
        relationship.destinationEntity = destination
        relationship.maxCount = 1
        return relationship
    }

    package static func toMany(
        _ name: String,
        _ destination: NSEntityDescription,
        isOrdered: Bool = false
    ) -> NSRelationshipDescription {
        let relationship = toOne(name, destination)
        relationship.maxCount = 0
        relationship.isOrdered = isOrdered
        return relationship
    }

    package static func connect(_ one: NSRelationshipDescription, _ other: NSRelationshipDescription) {
        one.inverseRelationship = other
        other.inverseRelationship = one
    }

    package static func model(_ entities: NSEntityDescription...) -> NSManagedObjectModel {
        let model = NSManagedObjectModel()
        model.entities = entities
        return model
    }

    /// Animals (dogs, cats) of people, in order; people in clubs, and with a favourite animal.
    package static func pets() -> NSManagedObjectModel {
        let animal = entity("Animal")
        let dog = entity("Dog", [attribute("barks", .boolean)])
        let cat = entity("Cat", [attribute("lives", .integer16)])
        let person = entity("Person")
        let club = entity("Club")
        let owner = toOne("owner", person)
        let pets = toMany("pets", animal, isOrdered: true)
        let clubs = toMany("clubs", club)
        let members = toMany("members", person)
        connect(owner, pets)
        connect(clubs, members)
        animal.isAbstract = true
        animal.properties = [attribute("name", .string), owner]
        animal.subentities = [dog, cat]
        person.properties = [
            attribute("id", .uuid), attribute("born", .date), pets, clubs, toOne("favourite", animal),
        ]
        person.uniquenessConstraints = [["id"]]
        club.properties = [attribute("title", .string), members]
        return model(animal, dog, cat, person, club)
    }
}
