import CoreDataEssentials
import StrataKeys
import StrataPredicates

extension NSManagedObjectModel {
    /// Creates a model with copies of all entities, configurations and templates of several models.
    ///
    /// Entities with the same name and the same version hash count as one. A relationship to an entity of another model
    /// is resolved by name. The result is `nil` if two entities have the same name but differ.
    ///
    /// - Parameter models: The models. With `nil`, those that ``mergedModel(from:)`` finds in the main bundle.
    public convenience init?(byMerging models: [NSManagedObjectModel]?) {
        guard let models = models ?? Self.models(in: nil) else { return nil }
        var hashes: [String: Data] = [:]
        for entity in models.flatMap(\.entities) {
            let hash = entity.versionHash
            guard hashes.updateValue(hash, forKey: entity.name ?? "").map({ $0 == hash }) ?? true else { return nil }
        }
        self.init()
        var copier = ModelCopier(unresolvedDestinations: .byName)
        copier.copy(models, into: self)
    }

    /// Creates a model with the entities of several models with which a store was written.
    ///
    /// If one of the models has all of them, then all come from that model, because the parts that are in no hash may
    /// differ: the transformers, the classes, the user info. If several models have all of them, then the first one
    /// without further entities is used, or else the first one. If no model has all of them, then each entity comes
    /// from the first model that has it. The result is `nil` if any entity of the store is missing in the store's
    /// version.
    ///
    /// - Parameters:
    ///   - models: The models; several versions of one model may be among them.
    ///   - metadata: The store's metadata, with the version hashes of its entities.
    public convenience init?(
        byMerging models: [NSManagedObjectModel],
        forStoreMetadata metadata: [String: Any]
    ) {
        guard let stored = Self.versionHashes(in: metadata) else { return nil }
        let models = Self.whole(in: models, for: stored).map { [$0] } ?? models
        var found: [String: NSEntityDescription] = [:]
        for entity in models.flatMap(\.entities) {
            guard let name = entity.name, found[name] == nil else { continue }
            if stored[name].map(entity.isOfVersion) ?? false { found[name] = entity }
        }
        guard found.count == stored.count else { return nil }
        self.init()
        let kept = Set(found.values.map(ObjectIdentifier.init))
        var copier = ModelCopier(unresolvedDestinations: .byName)
        // Only models that contribute an entity also contribute identifiers, configurations and templates.
        let sources = models.filter { $0.entities.contains { kept.contains(ObjectIdentifier($0)) } }
        copier.copy(sources, into: self) { kept.contains(ObjectIdentifier($0)) }
    }

    /// The model among several that has all entities of a store.
    ///
    /// - Parameters:
    ///   - models: The models.
    ///   - stored: The version hashes of the store's entities, by name.
    /// - Returns: The first with exactly these entities, or else the first that has them all; `nil` if there is none.
    package static func whole(in models: [NSManagedObjectModel], for stored: [String: Data]) -> NSManagedObjectModel? {
        guard !stored.isEmpty else { return nil }
        var larger: NSManagedObjectModel?
        for model in models {
            let hashes = model.entityVersionHashesByName
            guard model.hashesByPresentRule(of: stored).allSatisfy({ hashes[$0.key] == $0.value }) else { continue }
            if hashes.count == stored.count { return model }
            larger = larger ?? model
        }
        return larger
    }
}

extension NSEntityDescription {
    /// Whether a version hash is the entity's, by the present rule or by the former one.
    fileprivate func isOfVersion(_ hash: Data) -> Bool {
        hash == versionHash || hash == VersionHash.formerHash(of: self)
    }
}
