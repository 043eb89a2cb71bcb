/// What a migration does with an entity.
///
/// The type tells people and tools; what is done follows from the policy and the property mappings. So copying and
/// transforming are carried out alike, as the compiler of Xcode writes "copy" for entities that differ too.
///
/// ```swift
/// let mappings = try NSMappingModel.inferredMappingModel(forSourceModel: old, destinationModel: new)
/// let added = mappings.entityMappings.filter { $0.mappingType == .addEntityMappingType }
/// ```
public enum NSEntityMappingType: UInt, Sendable {
    /// Not said.
    case undefinedEntityMappingType = 0
    /// A policy of one's own does the work.
    case customEntityMappingType = 1
    /// The entity is new; nothing is made for it.
    case addEntityMappingType = 2
    /// The entity is dropped, with its objects.
    case removeEntityMappingType = 3
    /// The entity is the same in both models.
    case copyEntityMappingType = 4
    /// The entity has changed.
    case transformEntityMappingType = 5
}
