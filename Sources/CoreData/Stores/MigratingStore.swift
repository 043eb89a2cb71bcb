import StrataRows

/// A store whose engine brings it to another version of the model by itself, where it is.
///
/// Stores of SQLite are migrated by more ways than this one, and are known to the migration by name.
package protocol MigratingStore: NSPersistentStore {
    /// Brings a store that nobody of this coordinator has open to another version of its model, in one transaction.
    ///
    /// Returns too if somebody else has migrated it meanwhile.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - options: As for opening it.
    ///   - migration: What becomes what, and what the metadata shall say afterwards.
    /// - Throws: `migration` (134110) with the reason, and `persistentStoreTimeout` (134090) if others keep the store locked; it is as it was
    ///   then.
    static func migrateStore(at url: URL, options: [AnyHashable: Any], _ migration: InPlaceMigration) throws

    /// The copy of its model that a store keeps; `nil` if it has none.
    static func cachedModel(at url: URL) throws -> Data?
}

/// What an engine needs to migrate a store in place.
package struct InPlaceMigration {
    package let migration: SchemaMigration
    /// The labels of the new version of the model.
    package let versionIdentifiers: [String]
    /// The copy of the new model for the store; `nil` for none.
    package let modelCache: Data?
    /// Told how much of the work is done, from 0 to 1; what it throws ends the migration.
    package let advance: (Double) throws -> Void
}
