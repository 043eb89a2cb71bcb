import CoreDataEssentials
import StrataPredicates

/// The migration of the objects of one entity.
///
/// A source entity may have several mappings, which split it, and several mappings may have the same destination
/// entity. If an entity has no mapping, then its objects are not migrated. Sub-entities have separate mappings.
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
    /// The name that associations refer to.
    ///
    /// Default nil. A migration then uses `SourceToDestination`, or the name of the only entity.
    open var name: String!

    /// The kind of the mapping; for people and tools.
    ///
    /// Default ``NSEntityMappingType/undefinedEntityMappingType``.
    open var mappingType: NSEntityMappingType = .undefinedEntityMappingType

    /// The entity of the source objects; `nil`, the default, for a new entity.
    open var sourceEntityName: String?

    /// The version hash that the source entity must have; `nil`, the default, allows any.
    open var sourceEntityVersionHash: Data?

    /// The entity of the destination objects; `nil`, the default, if the source entity is dropped.
    open var destinationEntityName: String?

    /// The version hash that the destination entity must have; `nil`, the default, allows any.
    open var destinationEntityVersionHash: Data?

    /// The mappings that give attributes their values, in the first pass.
    open var attributeMappings: [NSPropertyMapping]?

    /// The mappings that give relationships their members, in the second pass.
    open var relationshipMappings: [NSPropertyMapping]?

    /// The expression for the source objects.
    ///
    /// It is an `NSFetchRequestExpression`, or any expression with an array as its value. Default nil: all objects of
    /// exactly the source entity, without those of sub-entities. A fetch is carried out batch by batch, so it needs
    /// memory for keys only; an array holds its objects.
    open var sourceExpression: NSExpression?

    /// The class of the mapping's policy, as `Module.Class` or `Class`; `nil` by default.
    ///
    /// `nil` stands for ``NSEntityMigrationPolicy`` itself.
    ///
    /// See ``NSEntityMigrationPolicy/register(_:as:)`` for names that cannot be looked up.
    open var entityMigrationPolicyClassName: String?

    /// A dictionary of the program; `nil` by default.
    open var userInfo: [AnyHashable: Any]?

    /// Makes an empty mapping.
    public override init() { super.init() }

    /// The name, the type and the entities.
    open override var description: String {
        "<NSEntityMapping \(effectiveName): \(sourceEntityName ?? "nothing") to \(destinationEntityName ?? "nothing"), type \(mappingType.rawValue)>"
    }

    /// Whether `object` is a mapping with the same name, entities and contents.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSEntityMapping else { return false }
        return other === self || MappingEquality.areEqual(self, other)
    }

    /// A hash that agrees with ``isEqual(_:)``.
    ///
    /// It is computed from the name, which should not change while a set contains the mapping.
    open override var hash: Int { (name as String?).hashValue }

    /// The name, or else the default name made from the entities.
    package final var effectiveName: String {
        name ?? Self.defaultName(source: sourceEntityName, destination: destinationEntityName)
    }

    /// The name of a mapping without a set name.
    static func defaultName(source: String?, destination: String?) -> String {
        switch (source, destination) {
        case (let source?, let destination?): "\(source)To\(destination)"
        case (let name?, nil), (nil, let name?): name
        case (nil, nil): ""
        }
    }
}

extension NSEntityMapping: KeyValueCoding {
    /// The properties for value expressions, such as `$entityMapping.userInfo.sourceVersion`.
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
