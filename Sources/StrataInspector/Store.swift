import CoreData
import CoreDataJobs
import StrataRows
import StrataSQLiteStore

/// A store opened for reading, unless the command needs another access.
struct Store {
    /// The access that a command needs to a store.
    enum Access {
        /// The store is read.
        case reading
        /// The store is read, and transformable values are read as their stored data.
        case readingArchives
        /// The store is changed.
        ///
        /// The dictionary has options for opening it.
        case writing([AnyHashable: Any])
    }

    let url: URL
    let metadata: [String: Any]
    let model: NSManagedObjectModel
    let coordinator: NSPersistentStoreCoordinator
    let context: NSManagedObjectContext

    /// Opens the store that `arguments` name, with the model that they name or the copy in the store.
    ///
    /// If `hasJobs` is true, then the objects of jobs are those of `CoreDataJobs`.
    init(_ arguments: Arguments, access: Access = .reading, hasJobs: Bool = false) throws {
        let place = try StorePlace(try arguments.required("--store"))
        url = place.url
        metadata = try Self.metadata(of: place)
        model = try Self.model(arguments, place)
        if hasJobs { model.useClassesOfJobs() }
        let configuration = model.configuration(ofStoreMetadata: metadata)
        var options: [AnyHashable: Any] = [NSReadOnlyPersistentStoreOption: true]
        switch access {
        case .reading: break
        case .readingArchives:
            try model.requireFit(ofStoreMetadata: metadata, configuration, at: url)
            model.readTransformablesAsData()
            options[NSIgnorePersistentStoreVersioningOption] = true
        case .writing(let further):
            options = further
            // A store with a history may be written only with the history option.
            if try Self.hasHistory(place, model, configuration) { options[NSPersistentHistoryTrackingKey] = true }
        }
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        _ = try coordinator.addPersistentStore(
            type: place.type,
            configuration: configuration,
            at: url,
            options: options
        )
        context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = coordinator
    }

    private static func hasHistory(
        _ place: StorePlace,
        _ model: NSManagedObjectModel,
        _ configuration: String?
    ) throws -> Bool {
        if place.isFile { return try StoreFigures(of: place.url).history != nil }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let options = [NSReadOnlyPersistentStoreOption: true]
        let store = try coordinator.addPersistentStore(
            type: place.type,
            configuration: configuration,
            at: place.url,
            options: options
        )
        defer { try? coordinator.remove(store) }
        return (coordinator.openStores.first?.rows as? any HistoryStore)?.hasHistory ?? false
    }

    static func metadata(of place: StorePlace) throws -> [String: Any] {
        try NSPersistentStoreCoordinator.metadataForPersistentStore(
            type: place.type,
            at: place.url,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
    }

    /// The model that `--model` names, or otherwise the copy in the store.
    ///
    /// - Parameters:
    ///   - arguments: The command line.
    ///   - place: The store.
    ///   - option: The option that names a model.
    /// - Returns: The model, with plain objects.
    /// - Throws: `migrationMissingSourceModel` (134130) with advice on what to name, and errors of reading either file.
    static func model(
        _ arguments: Arguments,
        _ place: StorePlace,
        option: String = "--model"
    ) throws -> NSManagedObjectModel {
        if let path = arguments[option] { return try model(at: path) }
        let cached: NSManagedObjectModel
        do {
            cached = try place.cachedModel()
        } catch let error as CocoaError where error.code == .migrationMissingSourceModel {
            throw CocoaError.described(
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

    /// The model that `--model` names, or otherwise the copy in a backup of a PostgreSQL store.
    ///
    /// - Throws: `migrationMissingSourceModel` (134130) if there is neither.
    static func model(_ arguments: Arguments, inBackup data: Data?) throws -> NSManagedObjectModel {
        if let path = arguments["--model"] { return try model(at: path) }
        guard let data else {
            throw CocoaError.described(
                .migrationMissingSourceModel,
                userInfo: [
                    NSLocalizedDescriptionKey: "The backup has no copy of the store's model. Name one with --model."
                ]
            )
        }
        return withoutClasses(try NSManagedObjectModel(cachedModelData: data))
    }

    /// Makes all objects plain managed objects: the classes of the model's author are not in this program.
    private static func withoutClasses(_ model: NSManagedObjectModel) -> NSManagedObjectModel {
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        return model
    }
}

extension NSManagedObjectModel {
    /// Gives the entities of jobs, and their sub-entities, the classes of `CoreDataJobs`.
    fileprivate func useClassesOfJobs() {
        let classes: [String: NSManagedObject.Type] = [
            "QueuedJob": QueuedJob.self, "JobQueueState": JobQueueState.self, "JobScheduleState": JobScheduleState.self,
        ]
        for (name, type) in classes {
            var rest = [entitiesByName[name]].compactMap { $0 }
            while let entity = rest.popLast() {
                entity.managedObjectClassName = String(reflecting: type)
                rest += entity.subentities
            }
        }
    }

    /// Makes plain data of transformable attributes, which is their stored form.
    ///
    /// Their transformers are not in this program.
    ///
    /// A store then has to be opened with `NSIgnorePersistentStoreVersioningOption`.
    func readTransformablesAsData() {
        for entity in entities {
            for attribute in entity.attributesByName.values where attribute.attributeType == .transformableAttributeType
            {
                attribute.attributeType = .binaryDataAttributeType
                attribute.valueTransformerName = nil
                attribute.defaultValue = nil
            }
        }
    }

    /// Refuses a store that was made with another version of the model, before the model is changed.
    func requireFit(ofStoreMetadata metadata: [String: Any], _ configuration: String?, at url: URL) throws {
        guard !isConfiguration(withName: configuration, compatibleWithStoreMetadata: metadata) else { return }
        let name = url.isFileURL ? url.path : StorePlace.shown(url)
        throw CocoaError.described(
            .persistentStoreIncompatibleVersionHash,
            userInfo: [NSLocalizedDescriptionKey: "The store \(name) was made with another version of the model."]
        )
    }
}
