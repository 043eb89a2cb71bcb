import StrataPredicates

/// A model as rows, plans and stores know it: entities by number, each with its layout.
///
/// A model is frozen into a schema when it is first used. The schema is immutable and immortal: rows and objects refer
/// to its parts without counting references.
package final class Schema: Sendable {
    /// All entities in depth-first order; the entity with number n is at index n - 1.
    package let entities: [EntityLayout]
    package let entitiesByName: [String: EntityLayout]
    /// The numbers of the roots of the hierarchies, indexed by the entity's number less one.
    package let rootNumbers: [Int]
    /// The numbers of the entities of each configuration.
    private let configurations: [String: [Int]]

    /// Lays out a model.
    ///
    /// - Parameters:
    ///   - definitions: The entities in the order of their numbers, which is depth first: each super-entity comes
    ///     directly before its sub-entities.
    ///   - configurations: The numbers of the entities of each configuration, by its name.
    package init(_ definitions: [EntityDefinition], configurations: [String: [Int]] = [:]) {
        self.configurations = configurations
        entities = SchemaBuilder(definitions).build()
        rootNumbers = entities.map(\.rootNumber)
        entitiesByName = Dictionary(entities.map { ($0.name, $0) }) { _, last in last }
        for entity in entities { entity.join(self) }
        _ = Unmanaged.passRetained(self)
    }

    /// The entity with a number, or `nil` when no entity has it (a number may come from a damaged file).
    package func entity(numbered number: Int) -> EntityLayout? {
        entities.indices.contains(number - 1) ? entities[number - 1] : nil
    }

    /// The entities of a configuration: all for `nil`, none for a configuration that the model does not have.
    package func entities(inConfiguration name: String?) -> [EntityLayout] {
        guard let name else { return entities }
        return (configurations[name] ?? []).compactMap(entity(numbered:))
    }

    /// The 32-byte version hashes by entity name.
    package var versionHashes: [String: Data] { entitiesByName.mapValues(\.versionHash) }

    /// The version hashes of a store as this schema has them.
    ///
    /// A hash by a former rule is replaced by the present one.
    package func hashesByPresentRule(of stored: [String: Data]) -> [String: Data] {
        var result = stored
        for (name, hash) in stored {
            guard let entity = entitiesByName[name], entity.formerVersionHash == hash else { continue }
            result[name] = entity.versionHash
        }
        return result
    }
}
