import CoreData

#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
#endif

/// Where a store is that the command line names: a file of SQLite, or a schema of a PostgreSQL database by its URL.
struct StorePlace {
    let url: URL
    let type: NSPersistentStore.StoreType

    /// Takes what stands behind `--store`.
    ///
    /// - Throws: `fileReadNoSuchFile` (260) for a file that is not there, a ``UsageError`` for a URL where libpq is not.
    init(_ text: String) throws {
        guard text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") else {
            type = .sqlite
            url = URL(fileURLWithPath: text)
            guard FileManager.default.fileExists(atPath: url.path) else {
                throw CocoaError(
                    .fileReadNoSuchFile,
                    userInfo: [NSLocalizedDescriptionKey: "There is no store at \(url.path)."]
                )
            }
            return
        }
        #if canImport(CoreDataPostgreSQL)
        guard let found = URL(string: text) else { throw UsageError("what stands behind --store is no URL") }
        (url, type) = (found, .postgreSQL)
        #else
        throw UsageError("this strata was built without libpq, and knows files only")
        #endif
    }

    var isFile: Bool { type == .sqlite }

    /// What lines call the store.
    var name: String { isFile ? url.path : Self.shown(url) }

    /// A URL as it may be printed, without users and options.
    private static func shown(_ url: URL) -> String {
        let parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        let schema = parts?.queryItems?.last { $0.name == "schema" }?.value ?? "strata"
        return "postgresql://\(parts?.host ?? "")\(parts?.path ?? "")?schema=\(schema)"
    }

    /// The model that the store keeps a copy of.
    ///
    /// - Throws: `migrationMissingSourceModel` (134130) for a store without one.
    func cachedModel() throws -> NSManagedObjectModel {
        #if canImport(CoreDataPostgreSQL)
        if !isFile {
            if let data = try PostgreSQLStore.cachedModel(at: url) {
                return try NSManagedObjectModel(cachedModelData: data)
            }
            throw CocoaError(
                .migrationMissingSourceModel,
                userInfo: [NSLocalizedDescriptionKey: "The store \(name) keeps no copy of its model."]
            )
        }
        #endif
        return try NSPersistentStoreCoordinator.cachedModelForPersistentStore(
            at: url,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
    }

    /// What is wrong with a store of PostgreSQL, a sentence each.
    func problems(_ model: NSManagedObjectModel, configuration: String?) throws -> [String] {
        #if canImport(CoreDataPostgreSQL)
        try PostgreSQLStore.problems(at: url, model, configuration: configuration)
        #else
        []
        #endif
    }

    /// The statements that create a store of PostgreSQL for a model.
    static func postgreSQLStatements(for model: NSManagedObjectModel) throws -> [String] {
        #if canImport(CoreDataPostgreSQL)
        try PostgreSQLStore.statements(for: model)
        #else
        throw UsageError("this strata was built without libpq")
        #endif
    }
}
