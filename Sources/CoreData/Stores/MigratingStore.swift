import Foundation
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

    /// Begins to make a store that shall take the place of another one; until then nobody can write to that.
    ///
    /// - Parameters:
    ///   - url: The store to be replaced.
    ///   - options: As for opening it.
    ///   - model: The model that it has.
    ///   - configuration: The configuration of the model that it holds, or `nil` for all.
    /// - Returns: `nil` if it has another version of the model by now, since somebody else was first.
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
    ///   - options: As for opening it, if they are known.
    /// - Returns: The metadata.
    /// - Throws: As `metadataForPersistentStore(with:)`.
    static func databaseMetadata(at url: URL, _ options: [AnyHashable: Any]?) throws -> [String: Any]

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
    /// Whether rows and values may be dropped that have no place in the new version.
    package let mayDropValues: Bool
    /// Told how much of the work is done, from 0 to 1; what it throws ends the migration.
    package let advance: (Double) throws -> Void
}

/// A store that is made beside another one, to take its place.
package protocol StoreReplacement: AnyObject {
    /// Where it is made. There is nothing as yet.
    var url: URL { get }

    /// Makes it as a copy of the other one.
    func copyRows() throws

    /// Puts it, which nobody has open any more, in the other one's place.
    ///
    /// - Parameters:
    ///   - model: The model that it has.
    ///   - configuration: The configuration of the model that it holds, or `nil` for all.
    /// - Throws: `persistentStoreTimeout` (134090) if others keep the other store locked, `migration` (134110) if its rows do not do; then the
    ///   other one is as it was, and this one gone.
    func finish(_ model: NSManagedObjectModel, configuration: String?) throws

    /// Removes it, and lets others write to the other one again.
    func abandon()
}

/// The option of a store that a migration reads, which has locked it: nothing of it is followed, and its version may be held for as long as that
/// takes.
package let migrationSourceOption = "StrataMigrationSourceOption"
