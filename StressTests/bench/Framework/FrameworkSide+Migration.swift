import CoreData

// Migrations of a copy of the database with all rows. The time to make the copy is not measured.

extension FrameworkSide {
    /// The version of the model to which the database is migrated.
    private static let widened = widened(by: "Visit")
    /// The name of the new entity sorts before that of the rows, so the rows' entity gets another number.
    private static let widenedInFront = widened(by: "Review")
    private static func widened(by name: String) -> NSManagedObjectModel {
        next { venue, model in
            venue.properties.append(attribute("note", .string))
            let entity = NSEntityDescription()
            entity.name = name
            entity.properties = [attribute("text", .string)]
            model.entities.append(entity)
        }
    }
    private static let reshaped = next { venue, _ in
        venue.attributesByName["name"]?.renamingIdentifier = "name"
        venue.attributesByName["name"]?.name = "title"
        venue.attributesByName["price"]?.type = .integer64
        venue.properties.removeAll { $0.name == "favorite" }
        venue.indexes = []
    }
    private static let split = next { venue, _ in
        venue.properties.append(attribute("label", .string))
    }
    /// One model for all runs, like ``model``; its objects are plain `NSManagedObject`s.
    private static let plain = next { _, _ in }

    private static func next(_ change: (NSEntityDescription, NSManagedObjectModel) -> Void) -> NSManagedObjectModel {
        let model = BenchModel.make()
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        if let venue = model.entitiesByName["Venue"] { change(venue, model) }
        return model
    }

    private static func attribute(
        _ name: String,
        _ type: NSAttributeDescription.AttributeType
    ) -> NSAttributeDescription {
        let attribute = NSAttributeDescription()
        (attribute.name, attribute.type, attribute.isOptional) = (name, type, true)
        return attribute
    }

    /// W21, W21b and W22: opens the database with another version of its model, which migrates it.
    static func migrate(_ workload: Workload, in folder: String) throws -> Sample {
        try withCopy(of: folder + "/framework.sqlite") { path in
            let model =
                switch workload {
                case .migrateInPlace: widened
                case .migrateInFront: widenedInFront
                default: reshaped
                }
            let clock = ContinuousClock()
            let start = clock.now
            let stack = try Stack(path, model, options: Self.migrating)
            stack.close()
            let duration = clock.now - start
            return Sample(duration: duration, checksum: try rows(path, model))
        }
    }

    private static var migrating: [AnyHashable: Any] {
        [
            NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
            // W22 removes an attribute, with its values.
            NSPersistentStoreAllowsLossyMigrationOption: true,
        ]
    }

    private static func rows(_ path: String, _ model: NSManagedObjectModel) throws -> Int {
        let stack = try Stack(path, model)
        defer { stack.close() }
        return try stack.context.performAndWait {
            try stack.context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Venue"))
        }
    }

    /// W23: migrates to another file with a mapping model that has a policy.
    static func migrateByPolicy(in folder: String) throws -> Sample {
        let path = folder + "/framework-split.sqlite"
        removeDatabase(at: path)
        defer { removeDatabase(at: path) }
        guard let mapping = try? NSMappingModel.inferredMappingModel(forSourceModel: plain, destinationModel: split)
        else {
            throw BenchError("No mapping can be inferred")
        }
        NSEntityMigrationPolicy.register(LabelPolicy.self, as: "LabelPolicy")
        for entry in mapping.entityMappings where entry.sourceEntityName == "Venue" {
            entry.mappingType = .customEntityMappingType
            entry.entityMigrationPolicyClassName = "LabelPolicy"
        }
        let clock = ContinuousClock()
        let start = clock.now
        let manager = NSMigrationManager(sourceModel: plain, destinationModel: split)
        try manager.migrateStore(
            from: URL(fileURLWithPath: folder + "/framework.sqlite"),
            type: .sqlite,
            mapping: mapping,
            to: URL(fileURLWithPath: path),
            type: .sqlite
        )
        let duration = clock.now - start
        return Sample(duration: duration, checksum: try rows(path, split))
    }

    /// The comparison for W23: all objects are read in one context and made anew in another, with the same saves.
    static func copyThroughContexts(in folder: String, scale: Scale) throws -> Sample {
        let path = folder + "/raw-split.sqlite"
        removeDatabase(at: path)
        defer { removeDatabase(at: path) }
        let source = try Stack(folder + "/framework.sqlite", plain)
        defer { source.close() }
        let clock = ContinuousClock()
        let start = clock.now
        let target = try Stack(path, split)
        try source.context.performAndWait {
            try target.context.performAndWait {
                var cities: [NSManagedObjectID: NSManagedObject] = [:]
                for city in try source.context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")) {
                    let copy = NSEntityDescription.insertNewObject(forEntityName: "City", into: target.context)
                    copy.setValue(city.value(forKey: "name"), forKey: "name")
                    cities[city.objectID] = copy
                }
                let request = NSFetchRequest<NSManagedObject>(entityName: "Venue")
                request.fetchBatchSize = 1000
                for (number, venue) in try source.context.fetch(request).enumerated() {
                    let copy = NSEntityDescription.insertNewObject(forEntityName: "Venue", into: target.context)
                    for name in ["name", "price", "distance", "createdAt", "favorite"] {
                        copy.setValue(venue.value(forKey: name), forKey: name)
                    }
                    copy.setValue(LabelPolicy.label(venue), forKey: "label")
                    if let city = venue.value(forKey: "city") as? NSManagedObject {
                        copy.setValue(cities[city.objectID], forKey: "city")
                    }
                    if number % 1000 == 999 { try target.context.save() }
                }
                try target.context.save()
            }
        }
        target.close()
        let duration = clock.now - start
        return Sample(duration: duration, checksum: try rows(path, split))
    }

    /// Copies a database for one run, and removes the copy afterwards.
    static func withCopy(of path: String, _ body: (String) throws -> Sample) throws -> Sample {
        let copy = path.replacingOccurrences(of: ".sqlite", with: "-copy.sqlite")
        removeDatabase(at: copy)
        defer { removeDatabase(at: copy) }
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        return try body(copy)
    }
}

/// Makes a label out of two values.
private final class LabelPolicy: NSEntityMigrationPolicy {
    static func label(_ venue: NSManagedObject) -> String {
        "\(venue.value(forKey: "name") as? String ?? "") \(venue.value(forKey: "price") as? Int16 ?? 0)"
    }

    override func createDestinationInstances(
        forSource source: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
        let made = manager.destinationInstances(forEntityMappingName: mapping.name ?? "", sourceInstances: [source])
        made.first?.setValue(Self.label(source), forKey: "label")
    }
}
