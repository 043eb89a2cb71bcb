import CoreData

/// Checks whether the values of transformable attributes can be decoded.
package struct ArchiveChecks {
    /// Values that cannot be decoded, or whose class this program does not have.
    package private(set) var problems: [String] = []
    /// Values that were not checked, because their transformer is not registered in this program.
    package private(set) var notes: [String] = []

    /// The number of objects that are named for each attribute.
    private static let mostNames = 10

    /// Checks all objects of a store.
    ///
    /// - Parameter context: A context on the store. The check runs in its `performAndWait`.
    /// - Throws: Errors of fetching.
    /// - Complexity: O(*n*) in the number of objects with such attributes, which are read in batches.
    package init(_ context: NSManagedObjectContext) throws {
        guard let coordinator = context.persistentStoreCoordinator else { return }
        let stored = coordinator.persistentStores.flatMap {
            coordinator.managedObjectModel.storedEntities(forConfigurationName: $0.configurationName) ?? []
        }
        let entities = Set(stored)
        for entity in entities.sorted(by: { ($0.name ?? "") < ($1.name ?? "") }) where !entity.isAbstract {
            let attributes = entity.attributesByName.values.filter {
                $0.attributeType == .transformableAttributeType && !$0.isTransient
            }
            for attribute in attributes.sorted(by: { $0.name < $1.name }) {
                try context.performAndWait { try check(attribute, of: entity.name ?? "", context) }
            }
        }
    }

    private mutating func check(
        _ attribute: NSAttributeDescription,
        of entity: String,
        _ context: NSManagedObjectContext
    ) throws {
        let request = NSFetchRequest<NSManagedObject>(entityName: entity)
        request.includesSubentities = false
        request.predicate = NSPredicate(format: "%K != nil", attribute.name)
        request.fetchBatchSize = 500
        if let name = attribute.valueTransformerName, ValueTransformer(forName: .init(name)) == nil {
            let count = try context.count(for: request)
            guard count > 0 else { return }
            notes.append(
                "\(entity): \(count) values of \(attribute.name) were not looked at: the transformer \(name) is not known here"
            )
            return
        }
        var names: [String] = []
        var count = 0
        for object in try context.batchedResults(for: request)
        where object.undecodableArchive(forKey: attribute.name) != nil {
            count += 1
            if names.count < Self.mostNames { names.append(object.objectID.uriRepresentation().lastPathComponent) }
        }
        guard count > 0 else { return }
        let more = count > names.count ? ", …" : ""
        problems.append(
            "\(entity): \(count) values of \(attribute.name) cannot be decoded (\(names.joined(separator: ", "))\(more)): their class is unknown here, or they are damaged"
        )
    }
}
