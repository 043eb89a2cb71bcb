import CoreData

/// Opens the store of the index.
enum PackageStore {
    /// The model that the program ships as a resource, as Xcode's editor wrote it.
    ///
    /// There is one for the process: a model stays in memory once a coordinator has used it.
    private static let model = Result { try NSManagedObjectModel(reading: try versions) }

    /// The folder with all versions of the model.
    static var versions: URL {
        get throws {
            guard let url = Bundle.module.url(forResource: "DebianIndex", withExtension: "xcdatamodeld") else {
                throw CocoaError(
                    .fileReadNoSuchFile,
                    userInfo: [NSLocalizedDescriptionKey: "The program's data model is missing."]
                )
            }
            return url
        }
    }

    /// Makes a container with the store at `url`.
    ///
    /// If there is no store, it is created.
    ///
    /// A store of an older version of the model is migrated in the stages of ``IndexStages``.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - progress: Receives the progress of the stages' code, from 0 to 1, if it has to run.
    /// - Returns: The container, with the store open.
    /// - Throws: Errors of opening or migrating the store.
    static func open(
        at url: URL,
        progress: @escaping @Sendable (Double) -> Void = { _ in }
    ) throws -> NSPersistentContainer {
        let container = NSPersistentContainer(name: "DebianIndex", managedObjectModel: try model.get())
        let description = NSPersistentStoreDescription(url: url)
        description.setOption(
            try IndexStages.manager(progress),
            forKey: NSPersistentStoreStagedMigrationManagerOptionKey
        )
        container.persistentStoreDescriptions = [description]
        // The description does not ask for asynchronous loading, so the handler has run before the call returns.
        var failure: (any Error)?
        container.loadPersistentStores { _, error in failure = error }
        if let failure { throw failure }
        return container
    }
}
