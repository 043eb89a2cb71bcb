/// Option: an ``NSStagedMigrationManager``, which brings the store to the coordinator's model stage by stage when it is added.
///
/// Takes effect together with the options that migrate and infer.
public let NSPersistentStoreStagedMigrationManagerOptionKey = "NSPersistentStoreStagedMigrationManagerOptionKey"
