/// Checks how parts of a model refer to each other: duplicate names, and names of missing parts.
struct ModelReferences {
    private let source: ModelSource
    private let entities: [String: EntitySource]
    private let composites: [String: CompositeSource]

    init(_ source: ModelSource) {
        self.source = source
        entities = Dictionary(source.entities.map { ($0.name, $0) }) { first, _ in first }
        composites = Dictionary(source.composites.map { ($0.name, $0) }) { _, last in last }
    }

    func faults() -> [ModelError] {
        var faults = duplicates() + inheritanceFaults()
        for entity in source.entities {
            faults += nameFaults(entity)
            for property in entity.properties {
                switch property {
                case .relationship(let relationship): faults += self.faults(of: relationship, entity)
                case .attribute(let attribute): faults += self.faults(of: attribute, entity)
                case .fetched(let fetched):
                    if let request = fetched.request {
                        faults += self.faults(of: request, entity.name, fetched.facts.name)
                    }
                }
            }
        }
        for configuration in source.configurations {
            for member in configuration.members where entities[member] == nil {
                faults.append(
                    ModelError(
                        .invalid,
                        entity: member,
                        line: configuration.line,
                        "configuration \"\(configuration.name)\" names it, but it is not in the model"
                    )
                )
            }
        }
        return faults + source.fetchRequests.flatMap { self.faults(of: $0, nil, nil) }
    }

    // MARK: - Duplicate names

    private func nameFaults(_ entity: EntitySource) -> [ModelError] {
        var faults: [ModelError] = []
        if let reason = ModelNames.fault(entity.name, of: "an entity") {
            faults.append(ModelError(.invalid, entity: entity.name, line: entity.line, reason))
        }
        for facts in entity.properties.map(\.facts) {
            guard let reason = ModelNames.fault(facts.name, of: "a property") ?? ModelNames.memberFault(facts.name)
            else {
                continue
            }
            faults.append(
                ModelError(.invalid, entity: entity.name, property: facts.name, line: facts.line, reason)
            )
        }
        return faults
    }

    private func duplicates() -> [ModelError] {
        var faults: [ModelError] = []
        var names: Set<String> = []
        for entity in source.entities {
            if !names.insert(entity.name).inserted {
                faults.append(
                    ModelError(
                        .invalid,
                        entity: entity.name,
                        line: entity.line,
                        "there are two entities with this name"
                    )
                )
            }
        }
        names = []
        for configuration in source.configurations where !names.insert(configuration.name).inserted {
            let reason = "there are two configurations named \"\(configuration.name)\""
            faults.append(ModelError(.invalid, line: configuration.line, reason))
        }
        names = []
        for request in source.fetchRequests where !names.insert(request.name).inserted {
            let reason = "there are two fetch requests named \"\(request.name)\""
            faults.append(ModelError(.invalid, line: request.line, reason))
        }
        return faults
    }

    // MARK: - Names of missing parts

    private func inheritanceFaults() -> [ModelError] {
        var parents: [String: String] = [:]
        for entity in source.entities {
            guard let parent = entity.parent else { continue }
            guard entities[parent] != nil else {
                let reason = "its super-entity \"\(parent)\" is not in the model"
                return [ModelError(.invalid, entity: entity.name, line: entity.line, reason)]
            }
            parents[entity.name] = parent
        }
        do throws(ModelError) {
            try InheritanceCheck.check(parents)
            return []
        } catch {
            var error = error
            error.line = error.entity.flatMap { entities[$0]?.line }
            return [error]
        }
    }

    private func faults(of relationship: RelationshipSource, _ entity: EntitySource) -> [ModelError] {
        func fault(_ reason: String) -> [ModelError] {
            let facts = relationship.facts
            return [ModelError(.invalid, entity: entity.name, property: facts.name, line: facts.line, reason)]
        }
        guard entities[relationship.destination] != nil else {
            return fault("its destination entity \"\(relationship.destination)\" is not in the model")
        }
        guard let inverse = relationship.inverse else { return [] }
        guard declares(inverse) else {
            return fault("its inverse \"\(inverse.name)\" is not a relationship of \"\(inverse.entity)\"")
        }
        return []
    }

    /// Whether the entity, or one of its super-entities, has the relationship.
    private func declares(_ inverse: RelationshipSource.Inverse) -> Bool {
        var seen: Set<String> = []
        var next: String? = inverse.entity
        while let name = next, let entity = entities[name], seen.insert(name).inserted {
            let found = entity.properties.contains {
                guard case .relationship(let relationship) = $0 else { return false }
                return relationship.facts.name == inverse.name
            }
            if found { return true }
            next = entity.parent
        }
        return false
    }

    private func faults(of attribute: AttributeSource, _ entity: EntitySource) -> [ModelError] {
        guard attribute.type == .composite, attribute.elements.isEmpty,
            !attribute.compositeNames.contains(where: { composites[$0] != nil })
        else { return [] }
        let name = attribute.compositeNames.first ?? ""
        return [
            ModelError(
                .invalid,
                entity: entity.name,
                property: attribute.facts.name,
                line: attribute.facts.line,
                "its composite type \"\(name)\" is not in the model"
            )
        ]
    }

    private func faults(of request: FetchRequestSource, _ entity: String?, _ property: String?) -> [ModelError] {
        guard entities[request.entity] == nil else { return [] }
        return [
            ModelError(
                .invalid,
                entity: entity,
                property: property,
                line: request.line,
                "fetch request \"\(request.name)\" is for entity \"\(request.entity)\", which is not in the model"
            )
        ]
    }
}
