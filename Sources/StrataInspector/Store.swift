import CoreData

/// A store opened for looking only.
struct Store {
    let url: URL
    let metadata: [String: Any]
    let model: NSManagedObjectModel
    let context: NSManagedObjectContext

    /// Opens the store that `arguments` name, with the model that they name or the one cached in the store.
    init(_ arguments: Arguments) throws {
        url = try Self.url(arguments)
        metadata = try Self.metadata(at: url)
        model = try Self.model(arguments, storeURL: url)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        _ = try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: model.configuration(ofStoreMetadata: metadata),
            at: url,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
        context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = coordinator
    }

    static func url(_ arguments: Arguments) throws -> URL {
        let url = URL(fileURLWithPath: try arguments.required("--store"))
        guard FileManager.default.fileExists(atPath: url.path) else {
            throw CocoaError(
                .fileReadNoSuchFile,
                userInfo: [NSLocalizedDescriptionKey: "There is no store at \(url.path)."]
            )
        }
        return url
    }

    static func metadata(at url: URL) throws -> [String: Any] {
        try NSPersistentStoreCoordinator.metadataForPersistentStore(
            type: .sqlite,
            at: url,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
    }

    /// The model that `--model` names, or else the one cached in the store.
    ///
    /// - Parameters:
    ///   - arguments: The command line.
    ///   - storeURL: The store.
    ///   - option: The option that names a model.
    /// - Returns: The model, with plain objects.
    /// - Throws: `migrationMissingSourceModel` (134130), which says what to name, and errors of reading either file.
    static func model(
        _ arguments: Arguments,
        storeURL: URL,
        option: String = "--model"
    ) throws -> NSManagedObjectModel {
        if let path = arguments[option] { return try model(at: path) }
        let cached: NSManagedObjectModel
        do {
            cached = try NSPersistentStoreCoordinator.cachedModelForPersistentStore(
                at: storeURL,
                options: [NSReadOnlyPersistentStoreOption: true]
            )
        } catch let error as CocoaError where error.code == .migrationMissingSourceModel {
            throw CocoaError(
                error.code,
                userInfo: [
                    NSLocalizedDescriptionKey: "\(error.localizedDescription) Name one with \(option).",
                    NSUnderlyingErrorKey: error,
                ]
            )
        }
        return withoutClasses(cached)
    }

    /// The model at `path`: a package of versions, one version, or the XML of one.
    static func model(at path: String) throws -> NSManagedObjectModel {
        withoutClasses(try NSManagedObjectModel(reading: URL(fileURLWithPath: path)))
    }

    /// Makes all objects plain managed objects: the classes of whoever made the model are not here.
    private static func withoutClasses(_ model: NSManagedObjectModel) -> NSManagedObjectModel {
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        return model
    }
}
