import CoreData
import StrataRows

/// The model that most tests use: a guide to venues, with a relationship of every kind.
package enum GuideModel {
    /// A fresh, mutable model.
    package static func make() -> NSManagedObjectModel {
        let city = entity("City", City.self)
        let venue = entity("Venue", Venue.self)
        let bar = entity("Bar", Bar.self)
        let tag = entity("Tag", Tag.self)
        let photo = entity("Photo", Photo.self)
        let licence = entity("Licence", Licence.self)
        let user = entity("User", User.self)

        venue.properties = [
            attribute("name", .string), attribute("price", .integer16, default: 0), attribute("distance", .double),
            attribute("createdAt", .date), attribute("favorite", .boolean, default: false),
            attribute("rating", .decimal), attribute("code", .uuid), attribute("site", .uri),
            attribute("map", .binaryData), attribute("seats", .integer32), attribute("visits", .integer64),
            attribute("score", .float), attribute("colour", .transformable), transient("note", .string),
        ]
        bar.properties = [attribute("beers", .integer16, default: 3)]
        venue.subentities = [bar]
        city.properties = [
            attribute("name", .string, optional: false), attribute("population", .integer64, default: 0),
        ]
        tag.properties = [attribute("title", .string)]
        photo.properties = [attribute("title", .string)]
        licence.properties = [attribute("number", .string)]
        user.properties = [
            attribute("email", .string, optional: false), attribute("age", .integer16), attribute("name", .string),
        ]
        user.uniquenessConstraints = [["email"]]

        relate(venue, "city", .one(.nullifyDeleteRule), city, "venues", .many(.nullifyDeleteRule))
        relate(venue, "tags", .many(.nullifyDeleteRule), tag, "venues", .many(.nullifyDeleteRule))
        relate(venue, "photos", .ordered(.cascadeDeleteRule), photo, "venue", .one(.nullifyDeleteRule))
        relate(venue, "licence", .one(.cascadeDeleteRule), licence, "venue", .one(.nullifyDeleteRule))
        relate(user, "favourites", .ordered(.nullifyDeleteRule), venue, "fans", .many(.nullifyDeleteRule))
        relate(user, "boss", .one(.nullifyDeleteRule), user, "reports", .many(.denyDeleteRule))

        let model = NSManagedObjectModel()
        model.entities = [city, venue, bar, tag, photo, licence, user]
        return model
    }

    // MARK: - Building blocks

    /// An entity of a class of this module.
    package static func entity(_ name: String, _ type: AnyClass) -> NSEntityDescription {
        let entity = NSEntityDescription()
        entity.name = name
        entity.managedObjectClassName = NSStringFromClass(type)
        return entity
    }

    /// An attribute.
    package static func attribute(
        _ name: String,
        _ type: NSAttributeDescription.AttributeType,
        optional: Bool = true,
        default value: Any? = nil
    ) -> NSAttributeDescription {
        let attribute = NSAttributeDescription()
        attribute.name = name
        attribute.type = type
        attribute.isOptional = optional
        attribute.defaultValue = value
        return attribute
    }

    /// A transient attribute.
    package static func transient(_ name: String, _ type: NSAttributeDescription.AttributeType)
        -> NSAttributeDescription
    {
        let attribute = attribute(name, type)
        attribute.isTransient = true
        return attribute
    }

    /// The shape of one side of a relationship.
    package enum Side {
        case one(NSDeleteRule)
        case many(NSDeleteRule)
        case ordered(NSDeleteRule)
    }

    /// Adds a relationship and its inverse.
    package static func relate(
        _ first: NSEntityDescription,
        _ firstName: String,
        _ firstSide: Side,
        _ second: NSEntityDescription,
        _ secondName: String,
        _ secondSide: Side
    ) {
        let there = relationship(firstName, firstSide, second)
        let back = relationship(secondName, secondSide, first)
        there.inverseRelationship = back
        back.inverseRelationship = there
        first.properties.append(there)
        second.properties.append(back)
    }

    /// One side of a relationship.
    package static func relationship(_ name: String, _ side: Side, _ destination: NSEntityDescription)
        -> NSRelationshipDescription
    {
        let relationship = NSRelationshipDescription()
        relationship.name = name
        relationship.destinationEntity = destination
        switch side {
        case .one(let rule):
            relationship.maxCount = 1
            relationship.deleteRule = rule
        case .many(let rule):
            relationship.maxCount = 0
            relationship.deleteRule = rule
        case .ordered(let rule):
            relationship.maxCount = 0
            relationship.isOrdered = true
            relationship.deleteRule = rule
        }
        return relationship
    }
}

@ManagedObject
package final class City: NSManagedObject {
    @Managed package var name: String
    @Managed package var population: Int64
    @Managed package var venues: Set<Venue>
}

@ManagedObject
package class Venue: NSManagedObject {
    @Managed package var name: String?
    @Managed package var price: Int16
    @Managed package var distance: Double
    @Managed package var createdAt: Date?
    @Managed package var favorite: Bool
    @Managed package var rating: Decimal?
    @Managed package var code: UUID?
    @Managed package var site: URL?
    @Managed package var map: Data?
    @Managed package var seats: Int32
    @Managed package var visits: Int
    @Managed package var score: Float
    @Managed package var colour: NSArray?
    @Managed package var note: String?
    @Managed package var city: City?
    @Managed package var tags: Set<Tag>
    @Managed package var photos: [Photo]
    @Managed package var licence: Licence?
    @Managed package var fans: Set<User>
}

@ManagedObject
package final class Bar: Venue {
    @Managed package var beers: Int16
}

@ManagedObject
package final class Tag: NSManagedObject {
    @Managed package var title: String?
    @Managed package var venues: Set<Venue>
}

@ManagedObject
package final class Photo: NSManagedObject {
    @Managed package var title: String?
    @Managed package var venue: Venue?
}

@ManagedObject
package final class Licence: NSManagedObject {
    @Managed package var number: String?
    @Managed package var venue: Venue?
}

@ManagedObject
package final class User: NSManagedObject {
    @Managed package var email: String
    @Managed package var age: Int16
    @Managed package var name: String?
    @Managed package var favourites: [Venue]
    @Managed package var boss: User?
    @Managed package var reports: Set<User>
}

/// A class that only models name.
final class NamedByModels: NSManagedObject {}

/// A class whose name a class of the tests has too.
package final class Twin: NSManagedObject {
    @Managed package var name: String?
}

/// As above, for a single test.
package final class Lookalike: NSManagedObject {}
