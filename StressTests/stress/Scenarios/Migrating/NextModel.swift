import CoreData

/// The next version of the model of all scenarios.
///
/// No value is lost on the way to it and back.
///
/// One table gets another name, and another is copied because a column comes and goes. Pairs get an order and lose
/// it, and images move from their files into rows and back.
/// their files into rows and back.
enum NextModel {
    static let shared: NSManagedObjectModel = make()

    static func make(of entities: Set<String>? = nil) -> NSManagedObjectModel {
        let model = StressModel.make()
        if let entities { model.entities.removeAll { !entities.contains($0.name ?? "") } }
        for entity in model.entities {
            entity.managedObjectClassName = "NSManagedObject"
            switch entity.name {
            case "Account":
                entity.renamingIdentifier = "Account"
                entity.name = "Purse"
            case "Node":
                if let second = entity.attributesByName["second"] {
                    second.renamingIdentifier = "second"
                    second.name = "latest"
                }
                let note = NSAttributeDescription()
                (note.name, note.type, note.isOptional) = ("note", .string, true)
                entity.properties.append(note)
                entity.relationshipsByName["marks"]?.isOrdered = true
            case "Mark": entity.attributesByName["image"]?.allowsExternalBinaryDataStorage = false
            default: break
            }
        }
        return model
    }

    /// Options for opening a store of one version with the other.
    static var options: [AnyHashable: Any] {
        [
            NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
            NSPersistentStoreAllowsLossyMigrationOption: true,
        ]
    }

    /// Whether a store has this version of the model.
    ///
    /// - Returns: `nil` if it has neither version.
    /// - Throws: If its metadata cannot be read.
    static func isVersion(of url: URL) throws -> Bool? {
        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: url)
        if shared.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata) { return true }
        return StressModel.shared.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata) ? false : nil
    }

    /// Opens a store with one of the two versions, and closes it.
    ///
    /// - Throws: Errors of adding the store.
    static func visit(_ url: URL, isNext: Bool, _ options: [AnyHashable: Any] = [:]) throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: isNext ? shared : StressModel.shared)
        let store = try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: url,
            options: self.options.merging(options) { $1 }
        )
        try coordinator.remove(store)
    }
}
