import StrataPredicates

/// How rows of one version of a model become rows of another: the target of each entity and of each property.
///
/// It does not say how a store keeps them.
package struct SchemaMigration: Sendable {
    package let source: Schema
    /// The configuration of the source whose entities the store holds, or `nil` for all.
    package let sourceConfiguration: String?
    package let destination: Schema
    /// The configuration of the destination whose entities the store will hold, or `nil` for all.
    package let destinationConfiguration: String?
    /// The entities that exist in both versions; others are added or removed.
    package let pairs: [EntityPair]

    package init(
        source: Schema,
        sourceConfiguration: String?,
        destination: Schema,
        destinationConfiguration: String?,
        pairs: [EntityPair]
    ) {
        self.source = source
        self.sourceConfiguration = sourceConfiguration
        self.destination = destination
        self.destinationConfiguration = destinationConfiguration
        self.pairs = pairs
    }

    /// Whether a store has the source version, judged by the version hashes in its metadata.
    package func starts(at stored: [String: Data]) -> Bool {
        source.hashesByPresentRule(of: stored) == hashes(source, sourceConfiguration)
    }

    /// The version hashes of the entities that the store holds afterwards.
    package var destinationHashes: [String: Data] { hashes(destination, destinationConfiguration) }

    private func hashes(_ schema: Schema, _ configuration: String?) -> [String: Data] {
        let entities = schema.entities(inConfiguration: configuration)
        return Dictionary(entities.map { ($0.name, $0.versionHash) }) { _, last in last }
    }
}

/// An entity and the entity that its rows become.
package struct EntityPair: Sendable {
    package let source: EntityLayout
    package let destination: EntityLayout
    /// The names of stored properties in the source, by their names in the destination.
    ///
    /// Leaves of composite attributes have paths for names. A property that is missing here is new.
    package let names: [String: String]

    package init(source: EntityLayout, destination: EntityLayout, names: [String: String]) {
        self.source = source
        self.destination = destination
        self.names = names
    }

    /// The source slot whose value a slot of the destination gets; `nil` for a new one, or one that was not a slot.
    package func source(of slot: Slot) -> Slot? { names[slot.name].flatMap { source.slot(named: $0) } }

    /// The relationship of the source whose members a relationship of the destination gets.
    package func source(of relationship: Relationship) -> Relationship? {
        names[relationship.name].flatMap { source.relationships[$0] }
    }
}
