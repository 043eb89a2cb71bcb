import CoreData
import Foundation
import StrataPostgreSQLStore
import StrataRows

/// The operations of `strata` on stores that it need not have open.
extension PostgreSQLStore {
    /// The faults of a store, one sentence each; see ``PostgreSQLVerifier``.
    package static func problems(
        at url: URL,
        _ model: NSManagedObjectModel,
        configuration: String? = nil
    ) throws -> [String] {
        try model.tryFreeze()
        return try PostgreSQLVerifier.problems(
            at: database(url),
            model.frozen.schema,
            configuration: named(configuration)
        )
    }

    /// The statements that create a store for a model, in an empty schema.
    package static func statements(for model: NSManagedObjectModel) throws -> [String] {
        try model.tryFreeze()
        return try PostgreSQLEngine.statements(for: model.frozen.schema)
    }

    /// The statements that show each session only the rows of one tenant; see ``RowSecurity``.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    ///   - attribute: The name of the attribute with the tenant.
    ///   - url: The store; `nil` if the statements are for the schema that the session looks in.
    /// - Returns: The statements and comments, a line each.
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) if the model has no such attribute.
    package static func rowSecurity(
        for model: NSManagedObjectModel,
        configuration: String?,
        attribute: String,
        at url: URL?
    ) throws -> [String] {
        try model.tryFreeze()
        return try PostgreSQLEngine.rowSecurity(
            for: model.frozen.schema,
            configuration: named(configuration),
            attribute: attribute,
            at: url.map(database)
        )
    }

    /// Vacuums the tables of a store; see ``PostgreSQLEngine/vacuum(_:_:configuration:timeout:)``.
    package static func vacuum(
        _ url: URL,
        _ model: NSManagedObjectModel,
        configuration: String?
    ) throws -> (tables: Int, before: Int64, after: Int64) {
        try model.tryFreeze()
        return try PostgreSQLEngine.vacuum(
            database(url),
            model.frozen.schema,
            configuration: named(configuration),
            timeout: StoreOption.timeout([:])
        )
    }

    /// Copies a store to a file that ``restore(_:to:_:configuration:)`` reads.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - model: Its model.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    ///   - file: The place of the copy; no file may be there.
    /// - Returns: The number of objects, and that of transactions of the history.
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) if the store has another version of the model, and the
    ///   errors of the engine.
    package static func backUp(
        _ url: URL,
        _ model: NSManagedObjectModel,
        configuration: String?,
        to file: URL
    ) throws -> (objects: Int64, transactions: Int64) {
        try model.tryFreeze()
        let figures = try PostgreSQLEngine.backUp(
            database(url),
            model.frozen.schema,
            configuration: named(configuration),
            requireVersion: {
                try model.requireVersion(ofStoreMetadata: $0, configuration: configuration, at: url.placeName)
            },
            to: file,
            timeout: StoreOption.timeout([:])
        )
        return (figures.objects, figures.transactions)
    }

    /// The metadata and the copy of the model in a backup.
    package static func headOfBackup(at file: URL) throws -> (metadata: [String: Any], model: Data?) {
        let head = try PostgreSQLEngine.headOfBackup(at: file)
        return (try head.metadataDictionary(), head.model)
    }

    /// Makes a store of a backup.
    ///
    /// - Parameters:
    ///   - file: The backup.
    ///   - url: The place of the store, which must not exist yet.
    ///   - model: The model of the store.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    /// - Returns: The number of objects, and that of transactions of the history.
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) if the backup is of another version of the model, and
    ///   the errors of the engine.
    package static func restore(
        _ file: URL,
        to url: URL,
        _ model: NSManagedObjectModel,
        configuration: String?
    ) throws -> (objects: Int64, transactions: Int64) {
        try model.requireVersion(
            ofStoreMetadata: headOfBackup(at: file).metadata,
            configuration: configuration,
            at: file.path
        )
        try model.tryFreeze()
        let figures = try PostgreSQLEngine.restore(
            file,
            to: database(url),
            model.frozen.schema,
            configuration: named(configuration),
            timeout: StoreOption.timeout([:])
        )
        return (figures.objects, figures.transactions)
    }

    /// The place beside a store where a copy of it is migrated on trial.
    package static func trialURL(of url: URL) throws -> URL { try PostgreSQLReplacement.trialURL(of: database(url)) }

    /// The name of a configuration; `nil` for the one with all entities.
    private static func named(_ configuration: String?) -> String? {
        configuration == defaultConfigurationName ? nil : configuration
    }
}
