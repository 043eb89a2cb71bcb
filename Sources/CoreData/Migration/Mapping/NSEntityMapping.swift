import StrataPredicates

/// What becomes of the objects of one entity in a migration.
///
/// A source entity may have several mappings, to be split, and several may lead into one destination entity. An entity
/// without a mapping is not carried over. Sub-entities have mappings of their own.
///
/// Not thread-safe; changes made while a migration uses the mapping have no effect on it.
///
/// ```swift
/// let mapping = NSEntityMapping()
/// mapping.name = "VenueToVenue"
/// (mapping.sourceEntityName, mapping.destinationEntityName) = ("Venue", "Venue")
/// mapping.mappingType = .transformEntityMappingType
/// mapping.entityMigrationPolicyClassName = "UpperCase"
/// ```
open class NSEntityMapping: NSObject {
    /// The name by which associations are asked for.
    ///
    /// Default nil. A migration takes `SourceToDestination` then, or the name of the one entity there is.
    open var name: String!

    /// The kind of the mapping; for people and tools.
    ///
    /// Default ``NSEntityMappingType/undefinedEntityMappingType``.
    open var mappingType: NSEntityMappingType = .undefinedEntityMappingType

    /// The entity that objects are taken from; `nil`, the default, for a new entity.
    open var sourceEntityName: String?

    /// The version hash that the source entity must have; `nil`, the default, to match any.
    open var sourceEntityVersionHash: Data?

    /// The entity that objects are made of; `nil`, the default, for one that is dropped.
    open var destinationEntityName: String?

    /// The version hash that the destination entity must have; `nil`, the default, to match any.
    open var destinationEntityVersionHash: Data?

    /// How attributes get their values, in the first pass.
    open var attributeMappings: [NSPropertyMapping]?

    /// How relationships get their members, in the second pass.
    open var relationshipMappings: [NSPropertyMapping]?

    /// The expression that gives the source objects: an `NSFetchRequestExpression`, or anything with an array as its
    /// value.
    ///
    /// Default nil: all objects of exactly the source entity, without those of sub-entities. A fetch is carried out
    /// batch by batch, so it needs memory for keys only; the objects of an array are held.
    open var sourceExpression: NSExpression?

    /// The class that carries the mapping out, as `Module.Class` or `Class`; `nil`, the default, for
    /// ``NSEntityMigrationPolicy`` itself.
    ///
    /// See ``NSEntityMigrationPolicy/register(_:as:)`` for names that cannot be looked up.
    open var entityMigrationPolicyClassName: String?

    /// Anything of yours; `nil` by default.
    open var userInfo: [AnyHashable: Any]?

    /// An empty mapping.
    public override init() { super.init() }

    /// The name, the type and the entities.
    open override var description: String {
        "<NSEntityMapping \(effectiveName): \(sourceEntityName ?? "nothing") to \(destinationEntityName ?? "nothing"), type \(mappingType.rawValue)>"
    }

    /// Whether `object` is a mapping of the same name that says the same of the same entities.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSEntityMapping else { return false }
        return other === self || MappingEquality.areEqual(self, other)
    }

    /// A hash that agrees with ``isEqual(_:)``; it follows from the name, which should not change while a set has the mapping.
    open override var hash: Int { (name as String?).hashValue }

    /// The name, or the one that follows from the entities.
    package final var effectiveName: String {
        name ?? Self.defaultName(source: sourceEntityName, destination: destinationEntityName)
    }

    /// The name that a mapping has which nobody has named.
    static func defaultName(source: String?, destination: String?) -> String {
        switch (source, destination) {
        case (let source?, let destination?): "\(source)To\(destination)"
        case (let name?, nil), (nil, let name?): name
        case (nil, nil): ""
        }
    }
}

extension NSEntityMapping: KeyValueCoding {
    /// The properties as value expressions see them, such as `$entityMapping.userInfo.sourceVersion`.
    ///
    /// - Parameter key: The name of a property of this class, such as `sourceEntityName`.
    /// - Returns: The value; `nil` for no value and for any other name.
    public func value(forKey key: String) -> Any? {
        switch key {
        case "name": effectiveName
        case "mappingType": mappingType.rawValue
        case "sourceEntityName": sourceEntityName
        case "sourceEntityVersionHash": sourceEntityVersionHash
        case "destinationEntityName": destinationEntityName
        case "destinationEntityVersionHash": destinationEntityVersionHash
        case "attributeMappings": attributeMappings
        case "relationshipMappings": relationshipMappings
        case "sourceExpression": sourceExpression
        case "entityMigrationPolicyClassName": entityMigrationPolicyClassName
        case "userInfo": userInfo
        default: nil
        }
    }
}
