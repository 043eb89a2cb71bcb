import CoreData

/// Opens the store that holds the index.
enum PackageStore {
    /// The model that the program ships as a resource, as Xcode's editor wrote it.
    ///
    /// One for the process: a model stays in memory once a coordinator has used it.
    private static let model = Result {
        guard let url = Bundle.module.url(forResource: "DebianIndex", withExtension: "xcdatamodeld") else {
            throw CocoaError(
                .fileReadNoSuchFile,
                userInfo: [NSLocalizedDescriptionKey: "The program's data model is missing."]
            )
        }
        return try NSManagedObjectModel(reading: url)
    }

    /// A container with the store at `url`, which is created when it is not there.
    static func open(at url: URL) throws -> NSPersistentContainer {
        let container = NSPersistentContainer(name: "DebianIndex", managedObjectModel: try model.get())
        container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
        // The description does not ask for asynchronous loading, so the handler has run when the call returns.
        var failure: (any Error)?
        container.loadPersistentStores { _, error in failure = error }
        if let failure { throw failure }
        return container
    }
}
