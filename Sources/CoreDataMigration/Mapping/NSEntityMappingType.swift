import CoreDataEssentials

/// The kind of change of an entity in a migration.
///
/// The type informs people and tools; the policy and the property mappings determine the work. So copying and
/// transforming are carried out in the same way, because Xcode's compiler writes "copy" also for entities that differ.
///
/// ```swift
/// let mappings = try NSMappingModel.inferredMappingModel(forSourceModel: old, destinationModel: new)
/// let added = mappings.entityMappings.filter { $0.mappingType == .addEntityMappingType }
/// ```
public enum NSEntityMappingType: UInt, Sendable {
    /// The type is not specified.
    case undefinedEntityMappingType = 0
    /// A custom policy does the work.
    case customEntityMappingType = 1
    /// The entity is new; no objects are made for it.
    case addEntityMappingType = 2
    /// The entity is dropped, with its objects.
    case removeEntityMappingType = 3
    /// The entity is the same in both models.
    case copyEntityMappingType = 4
    /// The entity has changed.
    case transformEntityMappingType = 5
}
