import StrataPredicates
import StrataRows

extension SchemaMigration {
    /// What an inferred mapping does, as engines know it.
    ///
    /// - Parameters:
    ///   - mapping: A mapping without obstacles, between models that are in use.
    ///   - source: The model that the store was written with.
    ///   - sourceConfiguration: The configuration of it that the store holds, or `nil` for all.
    ///   - destination: The model that it shall fit.
    ///   - destinationConfiguration: The configuration of it that the store shall hold, or `nil` for all.
    init(
        _ mapping: InferredMapping,
        from source: FrozenModel,
        _ sourceConfiguration: String?,
        to destination: FrozenModel,
        _ destinationConfiguration: String?
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
    /// Adds what the attribute was called, with the paths of elements.
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
