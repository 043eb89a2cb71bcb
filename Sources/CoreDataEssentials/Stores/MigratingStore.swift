import Foundation
import StrataRows

/// A store whose engine migrates it in place to another version of the model.
///
/// SQLite stores also have other kinds of migration, so the migration knows them by name.
package protocol MigratingStore: NSPersistentStore {
    /// Migrates a store, which this coordinator does not have open, to another version of its model in one transaction.
    ///
    /// It also returns normally if another process has migrated it meanwhile.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - options: The options for opening it.
    ///   - migration: The changes of the schema, and the new contents of the metadata.
    /// - Throws: `migration` (134110) with the reason, and `persistentStoreTimeout` (134090) if others keep the store
    ///   locked; the store is then as it was before.
    static func migrateStore(at url: URL, options: [AnyHashable: Any], _ migration: InPlaceMigration) throws

    /// Finds out the effects of a migration in place, without making it.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - options: The options for opening it.
    ///   - migration: The changes of the schema.
    /// - Returns: The effects on the rows of the store.
    /// - Throws: `migration` (134110) if something other than rows prevents it, and errors of the store.
    static func forecast(at url: URL, options: [AnyHashable: Any], of migration: SchemaMigration) throws
        -> MigrationForecast

    /// Begins to make a store that shall replace another one; until then no other process can write to that store.
    ///
    /// - Parameters:
    ///   - url: The store to be replaced.
    ///   - options: The options for opening it.
    ///   - model: The model of that store.
    ///   - configuration: The configuration of `model` that it holds, or `nil` for all.
    /// - Returns: The replacement; `nil` if the store has another version of the model by now, because another process
    ///   was first.
    /// - Throws: `persistentStoreTimeout` (134090) if others keep the store locked, and errors of the store.
    static func replacement(
        of url: URL,
        options: [AnyHashable: Any],
        model: NSManagedObjectModel,
        configuration: String?
    ) throws -> (any StoreReplacement)?

    /// Reads the metadata of a store that is not open.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - options: The options for opening it, if they are known.
    /// - Returns: The metadata.
    /// - Throws: The errors of `metadataForPersistentStore(with:)`.
    static func databaseMetadata(at url: URL, _ options: [AnyHashable: Any]?) throws -> [String: Any]

    /// The copy of the model that a store keeps; `nil` if it has none.
    static func cachedModel(at url: URL) throws -> Data?
}

/// The input of an engine's migration of a store in place.
package struct InPlaceMigration {
    package let migration: SchemaMigration
    /// The labels of the new version of the model.
    package let versionIdentifiers: [String]
    /// The copy of the new model for the store; `nil` for none.
    package let modelCache: Data?
    /// Whether rows and values without a place in the new version may be dropped.
    package let mayDropValues: Bool
    /// A function that receives the finished part of the work, from 0 to 1; its error ends the migration.
    package let advance: (Double) throws -> Void
    /// A function that receives, as part of a sentence, what others have to wait for although a plan could spare them.
    package let note: (String) -> Void

    package init(
        migration: SchemaMigration,
        versionIdentifiers: [String],
        modelCache: Data?,
        mayDropValues: Bool,
        advance: @escaping (Double) throws -> Void,
        note: @escaping (String) -> Void
    ) {
        self.migration = migration
        self.versionIdentifiers = versionIdentifiers
        self.modelCache = modelCache
        self.mayDropValues = mayDropValues
        self.advance = advance
        self.note = note
    }
}

/// A store that is made beside another one, to replace it.
package protocol StoreReplacement: AnyObject {
    /// The place where it is made; there is no store yet.
    var url: URL { get }

    /// Options with which it is made, so that it has what the other store has beside its model.
    var options: [AnyHashable: Any] { get throws }

    /// Copies the rows of the other store.
    func copyRows() throws

    /// Replaces the other store by this one, which no code has open any more.
    ///
    /// - Parameters:
    ///   - model: The model of this store.
    ///   - configuration: The configuration of the model that it holds, or `nil` for all.
    /// - Throws: `persistentStoreTimeout` (134090) if others keep the other store locked, `migration` (134110) if the
    ///   rows are not valid. In these cases the other store is as it was before, and this one is removed.
    func finish(_ model: NSManagedObjectModel, configuration: String?) throws

    /// Removes it, and allows writes to the other store again.
    func abandon()
}

/// The option of a store that a migration reads and has locked.
///
/// The store does not follow changes, and its version may be held until the migration ends.
package let migrationSourceOption = "StrataMigrationSourceOption"
