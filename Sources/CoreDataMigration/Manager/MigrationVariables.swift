import CoreDataEssentials

// The variables that the value expressions of a migration may use, without their dollar signs.

/// The variable `$manager`: the ``NSMigrationManager``.
public let NSMigrationManagerKey = "manager"
/// The variable `$source`: the source object.
public let NSMigrationSourceObjectKey = "source"
/// The variable `$destination`: the destination object; nil while the source objects are chosen.
public let NSMigrationDestinationObjectKey = "destination"
/// The variable `$entityMapping`: the ``NSEntityMapping`` that is carried out.
public let NSMigrationEntityMappingKey = "entityMapping"
/// The variable `$propertyMapping`: the ``NSPropertyMapping`` that is carried out.
public let NSMigrationPropertyMappingKey = "propertyMapping"
/// The variable `$entityPolicy`: the ``NSEntityMigrationPolicy`` of the entity mapping.
public let NSMigrationEntityPolicyKey = "entityPolicy"
