import CoreData
import Foundation

/// A place in a city: the object that most workloads handle.
@ManagedObject
class Venue: NSManagedObject {
    @Managed var name: String
    @Managed var price: Int16
    @Managed var distance: Double
    @Managed var createdAt: Date
    @Managed var favorite: Bool
    @Managed var city: City?

    /// Sets the properties of wider venues, which narrow ones do not have.
    func fillExtras(_ number: Int) {}

    /// A sum over them.
    var extraChecksum: Int { 0 }
}

extension Venue {
    /// Sets the attributes that venues of each width have.
    @inline(__always)
    func set(from sample: VenueSample) {
        name = sample.name
        price = sample.price
        distance = sample.distance
        createdAt = Date(timeIntervalSinceReferenceDate: sample.createdAt)
        favorite = sample.isFavorite
    }
}

/// A city with its venues.
@ManagedObject
final class City: NSManagedObject {
    @Managed var name: String
    @Managed var venues: Set<Venue>
}

/// The model, in code: a benchmark has no resources to find.
enum BenchModel {
    static func make(_ width: RowWidth = .narrow) -> NSManagedObjectModel {
        let venue = entity("Venue", width.venueClass)
        let city = entity("City", City.self)
        let toCity = relationship("city", to: city, maxCount: 1)
        let toVenues = relationship("venues", to: venue, maxCount: 0)
        toCity.inverseRelationship = toVenues
        toVenues.inverseRelationship = toCity

        let price = attribute("price", .integer16)
        let distance = attribute("distance", .double)
        venue.properties = [
            attribute("name", .string), price, distance, attribute("createdAt", .date), attribute("favorite", .boolean),
            toCity,
        ]
        for group in 0..<width.groups {
            let extras: [(String, NSAttributeDescription.AttributeType)] = [
                ("note", .string), ("code", .string), ("count", .integer64), ("stock", .integer32),
                ("amount", .double), ("rate", .double), ("time", .date), ("flag", .boolean),
            ]
            venue.properties += extras.map { attribute("\($0.0)\(group)", $0.1) }
        }
        city.properties = [attribute("name", .string), toVenues]
        venue.indexes = [
            NSFetchIndexDescription(
                name: "byPriceAndDistance",
                elements: [
                    NSFetchIndexElementDescription(property: price, collationType: .binary),
                    NSFetchIndexElementDescription(property: distance, collationType: .binary),
                ]
            )
        ]
        let model = NSManagedObjectModel()
        model.entities = [venue, city]
        return model
    }

    private static func entity(_ name: String, _ type: NSManagedObject.Type) -> NSEntityDescription {
        let entity = NSEntityDescription()
        entity.name = name
        entity.managedObjectClassName = NSStringFromClass(type)
        return entity
    }

    private static func attribute(_ name: String, _ type: NSAttributeDescription.AttributeType)
        -> NSAttributeDescription
    {
        let attribute = NSAttributeDescription()
        attribute.name = name
        attribute.type = type
        attribute.isOptional = false
        return attribute
    }

    private static func relationship(
        _ name: String,
        to destination: NSEntityDescription,
        maxCount: Int
    ) -> NSRelationshipDescription {
        let relationship = NSRelationshipDescription()
        relationship.name = name
        relationship.destinationEntity = destination
        relationship.maxCount = maxCount
        relationship.deleteRule = .nullifyDeleteRule
        return relationship
    }
}
