import StrataKeys
import StrataPredicates

extension NSManagedObjectModel {
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
        return versionHashes(forConfigurationName: configuration) == hashesByPresentRule(of: stored)
    }

    /// The version hashes of a store, converted to this model's rule.
    ///
    /// A hash that the former rule gave an entity with composite attributes is replaced by the hash of the present
    /// rule.
    ///
    /// - Complexity: O(number of properties).
    package func hashesByPresentRule(of stored: [String: Data]) -> [String: Data] {
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
    package func hasChecksum(_ checksum: String) -> Bool {
        checksum == versionChecksum || checksum == formerVersionChecksum
    }

    /// The checksum by the former rule; `nil` for a model without composite attributes.
    package var formerVersionChecksum: String? {
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
        let stored = hashesByPresentRule(of: Self.versionHashes(in: metadata) ?? [:])
        let own = versionHashes(forConfigurationName: configuration) ?? [:]
        return Set(stored.keys).union(own.keys).filter { stored[$0] != own[$0] }.sorted()
    }

    package static func versionHashes(in metadata: [String: Any]) -> [String: Data]? {
        metadata["NSStoreModelVersionHashes"] as? [String: Data]
    }
}
