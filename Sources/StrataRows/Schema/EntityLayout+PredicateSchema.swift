import StrataPredicates

extension EntityLayout: PredicateSchema {
    package var predicateEntityName: String { name }

    package func predicateProperty(named name: String) -> PredicateProperty? {
        switch places[name] {
        case .slot(let index): return property(slots[index])
        case .toMany(let index):
            let slot = toMany[index]
            guard !slot.isTransient, let destination = slot.relationship.destination else {
                return .unsupported(reason: "\"\(name)\" is transient, so no store can look at it.")
            }
            return .toMany(
                PredicateRelationship(
                    name: name,
                    slot: index,
                    isToMany: true,
                    isOrdered: slot.isOrdered,
                    mayDangle: slot.relationship.mayDangle,
                    destination: destination
                )
            )
        case .composite(let index):
            return .composite(CompositeSchema(layout: self, prefix: composites[index].name))
        case .transient: return .unsupported(reason: "\"\(name)\" is transient, so no store can look at it.")
        case .fetched: return .unsupported(reason: "\"\(name)\" is a fetched property, so no store can look at it.")
        case nil: return nil
        }
    }

    package var predicateEntityNumber: Int { number }

    package func predicateSchema(named name: String) -> (any PredicateSchema)? {
        schema.entitiesByName[name] ?? schema.entities.first { $0.isNamed(name) }
    }

    package func isKind(of other: any PredicateSchema) -> Bool {
        if self === other { return true }
        guard let other = other as? EntityLayout else { return false }
        return isKind(of: other)
    }

    /// Whether the entity or its class has this name.
    ///
    /// The name of the class may lack its module.
    private func isNamed(_ name: String) -> Bool {
        if self.name == name { return true }
        guard let className else { return false }
        return className == name || className.hasSuffix("." + name)
    }

    fileprivate func property(_ slot: Slot) -> PredicateProperty? {
        guard slot.kind == .reference else { return .attribute(attribute(slot)) }
        guard let destination = slot.relationship?.destination else { return nil }
        return .toOne(
            PredicateRelationship(name: slot.name, slot: slot.index, isToMany: false, destination: destination)
        )
    }

    fileprivate func attribute(_ slot: Slot) -> PredicateAttribute {
        PredicateAttribute(name: slot.name, type: slot.type.predicateType, slot: slot.index)
    }
}

/// The elements of a composite attribute, at any depth.
private struct CompositeSchema: PredicateComposite {
    let layout: EntityLayout
    let prefix: String

    func predicateProperty(named name: String) -> PredicateProperty? {
        let path = prefix + "." + name
        if let slot = layout.slot(named: path) { return layout.property(slot) }
        guard layout.slots.contains(where: { $0.name.hasPrefix(path + ".") }) else { return nil }
        return .composite(CompositeSchema(layout: layout, prefix: path))
    }

    var predicateLeaves: [PredicateAttribute] {
        layout.slots.filter { $0.name.hasPrefix(prefix + ".") }.map(layout.attribute)
    }
}
