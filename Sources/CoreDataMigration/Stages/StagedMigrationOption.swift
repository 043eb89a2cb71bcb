import CoreDataEssentials

/// Option: an ``NSStagedMigrationManager``, which migrates the store to the coordinator's model when it is added.
///
/// It has an effect only together with the options that migrate and infer.
public let NSPersistentStoreStagedMigrationManagerOptionKey = "NSPersistentStoreStagedMigrationManagerOptionKey"
