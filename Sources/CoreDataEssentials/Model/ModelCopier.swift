import StrataPredicates

/// Copies entities, and whole models, so that the copies refer only to each other and not to the original.
package struct ModelCopier {
    /// The rule for relationships whose destination is not among the copied entities.
    package enum UnresolvedDestinations {
        /// The relationship still points at the original.
        case keep

        /// The relationship points at the copied entity with the same name, or at nothing if there is none.
        case byName
    }

    private let unresolvedDestinations: UnresolvedDestinations
    private var entities: [ObjectIdentifier: NSEntityDescription] = [:]
    private var properties: [ObjectIdentifier: NSPropertyDescription] = [:]
    private var copies: [NSEntityDescription] = []

    package init(unresolvedDestinations: UnresolvedDestinations) {
        self.unresolvedDestinations = unresolvedDestinations
    }

    /// Copies one entity and its sub-entities.
    mutating func copy(_ entity: NSEntityDescription) -> NSEntityDescription {
        let copy = duplicate(entity)
        link()
        return copy
    }

    /// Fills an empty model with copies of the contents of `models`.
    ///
    /// Only entities that fulfil `isKept` are copied. If several have the same name, then only the first one is copied.
    package mutating func copy(
        _ models: [NSManagedObjectModel],
        into target: NSManagedObjectModel,
        where isKept: (NSEntityDescription) -> Bool = { _ in true }
    ) {
        var byName: [String: NSEntityDescription] = [:]
        for entity in models.flatMap(\.entities) where isKept(entity) {
            if let name = entity.name, let first = byName[name] {
                entities[ObjectIdentifier(entity)] = first
                for property in entity.ownProperties {
                    properties[ObjectIdentifier(property)] = first.ownProperties.first { $0.name == property.name }
                }
                continue
            }
            let copy = entities[ObjectIdentifier(entity)] ?? shallowDuplicate(entity)
            if let name = entity.name { byName[name] = copy }
        }
        for entity in models.flatMap(\.entities) {
            guard let copy = entities[ObjectIdentifier(entity)], let parent = entity.superentity else { continue }
            guard let parentCopy = entities[ObjectIdentifier(parent)], copy.superentity == nil else { continue }
            parentCopy.subentities.append(copy)
        }
        target.entities = copies
        link()
        copyRest(of: models, into: target)
    }

    private func copyRest(of models: [NSManagedObjectModel], into target: NSManagedObjectModel) {
        var configurations: [String: [NSEntityDescription]] = [:]
        var templates: [String: NSFetchRequest<NSFetchRequestResult>] = [:]
        var localization: [String: String] = [:]
        for model in models {
            for (name, members) in model.membersByConfiguration {
                configurations[name, default: []] += members.compactMap { entities[ObjectIdentifier($0)] }
            }
            for (name, template) in model.templates {
                templates[name] = retargeted(template)
            }
            localization.merge(model.localizationDictionary ?? [:]) { first, _ in first }
            target.versionIdentifiers.formUnion(model.versionIdentifiers)
        }
        target.adopt(configurations: configurations, templates: templates)
        if models.contains(where: { $0.localizationDictionary != nil }) { target.localizationDictionary = localization }
    }

    // MARK: - Steps

    private mutating func duplicate(_ entity: NSEntityDescription) -> NSEntityDescription {
        let copy = shallowDuplicate(entity)
        copy.subentities = entity.subentities.map { duplicate($0) }
        return copy
    }

    /// Copies the entity with its own properties; links are missing, or still point at the original.
    private mutating func shallowDuplicate(_ entity: NSEntityDescription) -> NSEntityDescription {
        let copy = type(of: entity).init()
        copy.adoptFacts(of: entity)
        copy.properties = entity.ownProperties.map { property in
            let copy = type(of: property).init()
            copy.adopt(property)
            properties[ObjectIdentifier(property)] = copy
            return copy
        }
        copy.indexes = entity.indexes.map { $0.duplicate { $0 } }
        entities[ObjectIdentifier(entity)] = copy
        copies.append(copy)
        return copy
    }

    /// Changes the links of all copies to point at copies.
    private func link() {
        for entity in copies {
            for property in entity.ownProperties {
                if let relationship = property as? NSRelationshipDescription {
                    link(relationship)
                } else if let fetched = property as? NSFetchedPropertyDescription {
                    fetched.fetchRequest = fetched.fetchRequest.map(retargeted)
                }
            }
            entity.indexes = entity.indexes.map { index in
                index.duplicate { property in
                    if let copy = properties[ObjectIdentifier(property)] { return copy }
                    // An expression belongs only to the index.
                    return property.owner == nil ? property.copy() as? NSPropertyDescription ?? property : property
                }
            }
        }
    }

    private func link(_ relationship: NSRelationshipDescription) {
        if let destination = relationship.destinationEntity {
            relationship.destinationEntity = counterpart(of: destination)
        }
        guard let inverse = relationship.inverseRelationship else { return }
        if let copy = properties[ObjectIdentifier(inverse)] as? NSRelationshipDescription {
            relationship.inverseRelationship = copy
        } else if unresolvedDestinations == .byName {
            relationship.inverseRelationship = relationship.destinationEntity?.relationshipsByName[inverse.name]
        }
    }

    private func counterpart(of entity: NSEntityDescription) -> NSEntityDescription? {
        if let copy = entities[ObjectIdentifier(entity)] { return copy }
        switch unresolvedDestinations {
        case .keep: return entity
        case .byName: return copies.first { $0.name == entity.name }
        }
    }

    private func retargeted(
        _ request: NSFetchRequest<NSFetchRequestResult>
    ) -> NSFetchRequest<NSFetchRequestResult> {
        let copy = request.duplicate()
        if let entity = request.entity, let counterpart = counterpart(of: entity) { copy.entity = counterpart }
        return copy
    }
}
