import CoreData

#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
#endif

// What a store in PostgreSQL is asked to do; files have other ways.
extension StorePlace {
    #if canImport(CoreDataPostgreSQL)
    /// The problems of the store, a sentence each.
    func problems(_ model: NSManagedObjectModel, configuration: String?) throws -> [String] {
        try PostgreSQLStore.problems(at: url, model, configuration: configuration)
    }

    /// Copies the store to a file.
    ///
    /// - Returns: The number of objects, and that of transactions of the history.
    func backUp(
        _ model: NSManagedObjectModel,
        configuration: String?,
        to file: URL
    ) throws -> (objects: Int64, transactions: Int64) {
        try PostgreSQLStore.backUp(url, model, configuration: configuration, to: file)
    }

    /// The metadata and the copy of the model in a backup.
    static func headOfBackup(_ file: URL) throws -> (metadata: [String: Any], model: Data?) {
        try PostgreSQLStore.headOfBackup(at: file)
    }

    /// Makes the store of a backup.
    ///
    /// - Returns: The number of objects, and that of transactions of the history.
    func restore(
        _ file: URL,
        _ model: NSManagedObjectModel,
        configuration: String?
    ) throws -> (objects: Int64, transactions: Int64) {
        try PostgreSQLStore.restore(file, to: url, model, configuration: configuration)
    }

    /// Vacuums the tables of the store.
    func vacuum(
        _ model: NSManagedObjectModel,
        configuration: String?
    ) throws -> (tables: Int, before: Int64, after: Int64) {
        try PostgreSQLStore.vacuum(url, model, configuration: configuration)
    }

    /// The place beside the store for a copy that is migrated on trial.
    func trial() throws -> StorePlace { StorePlace(url: try PostgreSQLStore.trialURL(of: url), type: type) }

    /// The statements that create a PostgreSQL store for a model.
    static func postgreSQLStatements(for model: NSManagedObjectModel) throws -> [String] {
        try PostgreSQLStore.statements(for: model)
    }

    /// The statements and comments for row-level security.
    static func rowSecurity(
        for model: NSManagedObjectModel,
        configuration: String?,
        attribute: String,
        at url: URL?
    ) throws -> [String] {
        try PostgreSQLStore.rowSecurity(for: model, configuration: configuration, attribute: attribute, at: url)
    }
    #else
    private static var refusal: UsageError { UsageError("this strata was built without libpq") }

    func problems(_ model: NSManagedObjectModel, configuration: String?) throws -> [String] { throw Self.refusal }

    func backUp(
        _ model: NSManagedObjectModel,
        configuration: String?,
        to file: URL
    ) throws -> (objects: Int64, transactions: Int64) { throw Self.refusal }

    static func headOfBackup(_ file: URL) throws -> (metadata: [String: Any], model: Data?) { throw refusal }

    func restore(
        _ file: URL,
        _ model: NSManagedObjectModel,
        configuration: String?
    ) throws -> (objects: Int64, transactions: Int64) { throw Self.refusal }

    func vacuum(
        _ model: NSManagedObjectModel,
        configuration: String?
    ) throws -> (tables: Int, before: Int64, after: Int64) { throw Self.refusal }

    func trial() throws -> StorePlace { throw Self.refusal }

    static func postgreSQLStatements(for model: NSManagedObjectModel) throws -> [String] { throw refusal }

    static func rowSecurity(
        for model: NSManagedObjectModel,
        configuration: String?,
        attribute: String,
        at url: URL?
    ) throws -> [String] { throw refusal }
    #endif
}
