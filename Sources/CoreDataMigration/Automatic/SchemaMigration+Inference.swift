import CoreDataEssentials
import StrataPredicates
import StrataRows

extension SchemaMigration {
    /// Makes the engine's form of an inferred mapping.
    ///
    /// - Parameters:
    ///   - mapping: A mapping without obstacles, between models that are in use.
    ///   - source: The model with which the store was written.
    ///   - sourceConfiguration: The configuration of `source` that the store holds, or `nil` for all.
    ///   - destination: The model to which the store is migrated.
    ///   - destinationConfiguration: The configuration of `destination` that the store shall hold, or `nil` for all.
    init(
        _ mapping: InferredMapping,
        from source: FrozenModel,
        sourceConfiguration: String?,
        to destination: FrozenModel,
        destinationConfiguration: String?
    ) {
        let pairs = mapping.entities.compactMap { entity -> EntityPair? in
            guard let old = entity.source?.layoutIfInUse, let new = entity.destination?.layoutIfInUse else {
                return nil
            }
            var names: [String: String] = [:]
            for attribute in entity.attributes { attribute.addNames(to: &names, "", "") }
            for relationship in entity.relationships {
                names[relationship.destination.name] = relationship.source?.name
            }
            return EntityPair(source: old, destination: new, names: names)
        }
        self.init(
            source: source.schema,
            sourceConfiguration: sourceConfiguration,
            destination: destination.schema,
            destinationConfiguration: destinationConfiguration,
            pairs: pairs
        )
    }
}

extension InferredAttribute {
    /// Adds the attribute's old name, with the paths of elements.
    fileprivate func addNames(to names: inout [String: String], _ prefix: String, _ oldPrefix: String) {
        guard let source else { return }
        if destination is NSCompositeAttributeDescription {
            for element in elements {
                element.addNames(to: &names, prefix + destination.name + ".", oldPrefix + source.name + ".")
            }
        } else {
            names[prefix + destination.name] = oldPrefix + source.name
        }
    }
}
