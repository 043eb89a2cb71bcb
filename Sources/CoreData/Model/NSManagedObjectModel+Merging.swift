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
    static func whole(in models: [NSManagedObjectModel], for stored: [String: Data]) -> NSManagedObjectModel? {
        guard !stored.isEmpty else { return nil }
        var larger: NSManagedObjectModel?
        for model in models {
            let hashes = model.entityVersionHashesByName
            guard model.current(stored).allSatisfy({ hashes[$0.key] == $0.value }) else { continue }
            if hashes.count == stored.count { return model }
            larger = larger ?? model
        }
        return larger
    }

    /// Whether a store can be opened with this model, or with one configuration of it.
    ///
    /// ```swift
    /// let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: oldURL)
    /// print(model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))  // false: a migration is needed
    /// ```
    ///
    /// - Parameters:
    ///   - configuration: The configuration, or `nil` for all entities.
    ///   - metadata: The store's metadata.
    /// - Returns: Whether the store has exactly the entities of the configuration and their sub-entities, with equal
    ///   version hashes. Hashes that earlier versions of this framework computed for composite attributes count as
    ///   equal. `false` if there is no such configuration, or the metadata has no hashes.
    /// - Complexity: O(number of properties): the hashes are computed each time.
    public func isConfiguration(
        withName configuration: String?,
        compatibleWithStoreMetadata metadata: [String: Any]
    ) -> Bool {
        guard let stored = Self.versionHashes(in: metadata) else { return false }
        return versionHashes(forConfigurationName: configuration) == current(stored)
    }

    /// The version hashes of a store, converted to this model's rule.
    ///
    /// A hash that the former rule gave an entity with composite attributes is replaced by the hash of the present
    /// rule.
    ///
    /// - Complexity: O(number of properties).
    func current(_ stored: [String: Data]) -> [String: Data] {
        var result = stored
        for entity in entities {
            guard let name = entity.name, let hash = stored[name], VersionHash.formerHash(of: entity) == hash else {
                continue
            }
            result[name] = entity.versionHash
        }
        return result
    }

    /// Whether a checksum is that of the model, by the present rule or by the former one.
    func hasChecksum(_ checksum: String) -> Bool {
        checksum == versionChecksum || checksum == formerVersionChecksum
    }

    /// The checksum by the former rule; `nil` for a model without composite attributes.
    var formerVersionChecksum: String? {
        let former = entitiesByName.compactMapValues(VersionHash.formerHash)
        guard !former.isEmpty else { return nil }
        return SchemaHashes.checksum(of: entityVersionHashesByName.merging(former) { $1 })
    }

    /// The version hashes of the entities in a store of a configuration; `nil` if there is no such configuration.
    package func versionHashes(forConfigurationName configuration: String?) -> [String: Data]? {
        guard let members = storedEntities(forConfigurationName: configuration) else { return nil }
        var hashes = VersionHash.Entities()
        return EntityFacts.byName(members) { $0.name }.mapValues { hashes.hash(of: $0) }
    }

    /// The configuration with which a store was made: `nil` for all entities, and also if none fits.
    package func configuration(ofStoreMetadata metadata: [String: Any]) -> String? {
        let fitting = configurations.first { isConfiguration(withName: $0, compatibleWithStoreMetadata: metadata) }
        return fitting == Self.defaultConfigurationName ? nil : fitting
    }

    /// The names of the entities in which a store differs from a configuration of this model, sorted.
    ///
    /// - Returns: The entities that only one of the two has, and those whose hashes differ.
    package func entitiesThatDiffer(
        fromStoreMetadata metadata: [String: Any],
        configuration: String?
    ) -> [String] {
        let stored = current(Self.versionHashes(in: metadata) ?? [:])
        let own = versionHashes(forConfigurationName: configuration) ?? [:]
        return Set(stored.keys).union(own.keys).filter { stored[$0] != own[$0] }.sorted()
    }

    static func versionHashes(in metadata: [String: Any]) -> [String: Data]? {
        metadata["NSStoreModelVersionHashes"] as? [String: Data]
    }
}

extension NSEntityDescription {
    /// Whether a version hash is the entity's, by the present rule or by the former one.
    fileprivate func isOfVersion(_ hash: Data) -> Bool {
        hash == versionHash || hash == VersionHash.formerHash(of: self)
    }
}
