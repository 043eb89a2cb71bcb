import CoreData

/// The part of the model that batches work on: a unique value, a rule that cascades, and one that nullifies.
enum ParcelModel {
    static func make() -> [NSEntityDescription] {
        let parcel = entity("Parcel", Parcel.self, ["code", "value", "region"])
        let crate = entity("Crate", Crate.self, ["number"])
        parcel.uniquenessConstraints = [["code"]]
        relate(parcel, "crate", crate, "parcels", .cascadeDeleteRule)
        relate(parcel, "friend", parcel, "admirers", .nullifyDeleteRule)
        return [parcel, crate]
    }

    private static func entity(_ name: String, _ type: AnyClass, _ numbers: [String]) -> NSEntityDescription {
        let entity = NSEntityDescription()
        entity.name = name
        entity.managedObjectClassName = NSStringFromClass(type)
        entity.properties = numbers.map { name in
            let attribute = NSAttributeDescription()
            attribute.name = name
            attribute.type = .integer64
            attribute.isOptional = true
            attribute.defaultValue = 0
            return attribute
        }
        return entity
    }

    /// A to-one relationship, and the to-many one that is its inverse.
    private static func relate(
        _ source: NSEntityDescription,
        _ name: String,
        _ destination: NSEntityDescription,
        _ inverseName: String,
        _ rule: NSDeleteRule
    ) {
        let there = NSRelationshipDescription()
        let back = NSRelationshipDescription()
        (there.name, there.destinationEntity, there.maxCount) = (name, destination, 1)
        (back.name, back.destinationEntity, back.maxCount) = (inverseName, source, 0)
        (there.deleteRule, back.deleteRule) = (.nullifyDeleteRule, rule)
        (there.inverseRelationship, back.inverseRelationship) = (back, there)
        source.properties.append(there)
        destination.properties.append(back)
    }
}

/// What batches insert, change and delete.
@ManagedObject
final class Parcel: NSManagedObject {
    /// Unique.
    @Managed var code: Int64
    @Managed var value: Int64
    @Managed var region: Int64
    @Managed var crate: Crate?
    @Managed var friend: Parcel?
    @Managed var admirers: Set<Parcel>
}

/// What takes its parcels with it.
@ManagedObject
final class Crate: NSManagedObject {
    @Managed var number: Int64
    @Managed var parcels: Set<Parcel>
}
