// These are the keys of a store's metadata, and the texts of the store types.

/// Metadata: the type of the store.
public let NSStoreTypeKey = "NSStoreType"
/// Metadata: the store's UUID text.
public let NSStoreUUIDKey = "NSStoreUUID"
/// Metadata: the 32-byte version hashes of the model's entities, by name.
public let NSStoreModelVersionHashesKey = "NSStoreModelVersionHashes"
/// Metadata: the version identifiers of the model.
public let NSStoreModelVersionIdentifiersKey = "NSStoreModelVersionIdentifiers"
/// Option: a Boolean.
///
/// If it is true, a migration defers work that only tidies up, so that the store opens sooner.
///
/// Metadata: the same key is true as long as there is deferred work; see
/// `NSPersistentStoreCoordinator.finishDeferredLightweightMigration()`. Only columns that are no longer needed are
/// deferred, and only in SQLite stores. All other work is done at once.
public let NSPersistentStoreDeferredLightweightMigrationOptionKey =
    "NSPersistentStoreDeferredLightweightMigrationOptionKey"
/// Metadata: a checksum over the version hashes.
public let NSPersistentStoreModelVersionChecksumKey = "NSStoreModelVersionChecksumKey"

/// The text of the store type `.sqlite`.
public let NSSQLiteStoreType = "SQLite"
/// The text of the store type `.inMemory`.
public let NSInMemoryStoreType = "InMemory"
/// The text of the store type `.binary`.
public let NSBinaryStoreType = "Binary"
/// The text of the store type `.xml`.
public let NSXMLStoreType = "XML"
