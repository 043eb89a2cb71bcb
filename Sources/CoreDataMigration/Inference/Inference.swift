import CoreDataEssentials
import StrataPredicates
import StrataRows

/// Infers an ``InferredMapping``: first pairs of entities, then hierarchies, then the properties of each entity.
struct Inference {
    private let source: [NSEntityDescription]
    private let destination: [NSEntityDescription]
    private let sourceMembers: Set<ObjectIdentifier>
    private let destinationMembers: Set<ObjectIdentifier>
    /// The pairs, by the identity of each of the two entities.
    private var counterparts: [ObjectIdentifier: NSEntityDescription] = [:]

    private(set) var entities: [InferredEntity] = []
    var obstacles = InferenceObstacles()
    private(set) var remarks: [String] = []

    init(from source: [NSEntityDescription], to destination: [NSEntityDescription]) {
        self.source = source
        self.destination = destination
        sourceMembers = Set(source.map(ObjectIdentifier.init))
        destinationMembers = Set(destination.map(ObjectIdentifier.init))
    }

    mutating func run() {
        pairEntities()
        checkHierarchies()
        for entity in destination { entities.append(infer(entity)) }
        for entity in source where counterparts[ObjectIdentifier(entity)] == nil {
            remarks.append("entity \(entity.name ?? "") is removed, with its rows")
            entities.append(
                InferredEntity(kind: .remove, source: entity, destination: nil, attributes: [], relationships: [])
            )
        }
    }

    // MARK: - Entities

    private mutating func pairEntities() {
        func items(_ entities: [NSEntityDescription]) -> [CanonicalPairing<NSEntityDescription>.Item] {
            entities.map { .init(element: $0, name: $0.name ?? "", identifier: $0.explicitRenamingIdentifier) }
        }
        let pairing = CanonicalPairing(items(source), items(destination))
        for (position, found) in pairing.sources.enumerated() {
            guard let found else { continue }
            counterparts[ObjectIdentifier(destination[position])] = source[found]
            counterparts[ObjectIdentifier(source[found])] = destination[position]
        }
        for position in pairing.byPresentName.sorted() { remark(destination[position].name ?? "", nil) }
        for (name, items, isInSource) in pairing.ambiguous {
            obstacles.add(
                items.first ?? "",
                property: nil,
                reason:
                    "the entities \(items.joined(separator: " and ")) of the \(isInSource ? "old" : "new") model "
                    + "share the renaming identifier \(name)",
                advice: "Give each entity an identifier of its own."
            )
        }
    }

    private mutating func remark(_ entity: String, _ property: String?) {
        let what = property.map { "property \($0) of entity \(entity)" } ?? "entity \(entity)"
        remarks.append(
            "\(what) is paired by the present name of its predecessor; give the first name as renaming identifier in all later versions"
        )
    }

    /// The root of an entity's hierarchy.
    private func root(_ entity: NSEntityDescription) -> NSEntityDescription { entity.ancestors.last ?? entity }

    /// Checks that no two hierarchies become one, because their rows have the same keys.
    private mutating func checkHierarchies() {
        var oldRoots: [ObjectIdentifier: NSEntityDescription] = [:]
        // The root's predecessor is recorded first, wherever the root is in the list.
        for entity in destination where entity.superentity == nil {
            if let old = counterparts[ObjectIdentifier(entity)] { oldRoots[ObjectIdentifier(entity)] = root(old) }
        }
        for entity in destination {
            guard let old = counterparts[ObjectIdentifier(entity)] else { continue }
            let (new, oldRoot) = (root(entity), root(old))
            guard let known = oldRoots[ObjectIdentifier(new)] else {
                oldRoots[ObjectIdentifier(new)] = oldRoot
                continue
            }
            guard known !== oldRoot else { continue }
            let from = old === oldRoot ? "was the root of a hierarchy" : "inherited from \(oldRoot.name ?? "")"
            obstacles.add(
                entity.name ?? "",
                property: nil,
                reason:
                    "it \(from) and would now share the hierarchy of \(new.name ?? ""), whose objects come from \(known.name ?? "")",
                advice: "Two hierarchies cannot be merged in place; use a mapping model."
            )
        }
    }

    // MARK: - Properties

    private mutating func infer(_ entity: NSEntityDescription) -> InferredEntity {
        let old = counterparts[ObjectIdentifier(entity)]
        let attributes = inferAttributes(of: entity, from: old)
        let relationships = inferRelationships(of: entity, from: old)
        let kind: InferredEntity.Kind =
            old.map { $0.versionHash == entity.versionHash ? .copy : .transform } ?? .add
        return InferredEntity(
            kind: kind,
            source: old,
            destination: entity,
            attributes: attributes,
            relationships: relationships
        )
    }

    /// The pairs of stored properties of one kind.
    private mutating func pair<Property: NSPropertyDescription>(
        _ entity: NSEntityDescription,
        with old: NSEntityDescription?,
        kind: Property.Type
    ) -> [(Property, Property?)] {
        func stored(_ entity: NSEntityDescription?) -> [Property] {
            // If two properties have the same name, as in a damaged model, then the later one counts.
            let named = EntityFacts.byName(
                entity?.properties.filter(\.isPersistent).compactMap { $0 as? Property } ?? []
            ) { $0.name }
            return named.values.sorted { $0.name < $1.name }
        }
        let (new, former) = (stored(entity), stored(old))
        guard old != nil else { return new.map { ($0, nil) } }
        return pair(new, with: former, entity: entity.name ?? "", isOwn: { $0.owner === entity || $0.owner == nil })
    }

    private mutating func pair<Property: NSPropertyDescription>(
        _ new: [Property],
        with former: [Property],
        entity: String,
        isOwn: (Property) -> Bool
    ) -> [(Property, Property?)] {
        func items(_ properties: [Property]) -> [CanonicalPairing<Property>.Item] {
            properties.map { .init(element: $0, name: $0.name, identifier: $0.explicitRenamingIdentifier) }
        }
        let pairing = CanonicalPairing(items(former), items(new))
        for position in pairing.byPresentName.sorted() where isOwn(new[position]) { remark(entity, new[position].name) }
        for (name, items, isInSource) in pairing.ambiguous {
            obstacles.add(
                entity,
                property: items.first,
                reason:
                    "the properties \(items.joined(separator: " and ")) of the \(isInSource ? "old" : "new") model "
                    + "share the renaming identifier \(name)",
                advice: "Give each property an identifier of its own."
            )
        }
        let kept = Set(pairing.sources.compactMap { $0 })
        for position in former.indices where !kept.contains(position) {
            remarks.append("property \(former[position].name) of entity \(entity) is removed, with its values")
        }
        return pairing.sources.enumerated().map { (new[$0.offset], $0.element.map { former[$0] }) }
    }

    private mutating func inferAttributes(
        of entity: NSEntityDescription,
        from old: NSEntityDescription?
    ) -> [InferredAttribute] {
        pair(entity, with: old, kind: NSAttributeDescription.self).map { new, former in
            infer(new, from: former, path: new.name, entity: new.owner?.name ?? entity.name ?? "")
        }
    }

    private mutating func infer(
        _ new: NSAttributeDescription,
        from former: NSAttributeDescription?,
        path: String,
        entity: String
    ) -> InferredAttribute {
        if let composite = new as? NSCompositeAttributeDescription {
            let old = former as? NSCompositeAttributeDescription
            if let former, old == nil { refuse(former, as: new, path: path, entity: entity) }
            let pairs = pair(composite.elements, with: old?.elements ?? [], entity: entity, isOwn: { _ in true })
            let elements = pairs.map { infer($0, from: $1, path: path + "." + $0.name, entity: entity) }
            return InferredAttribute(destination: new, source: old, elements: elements)
        }
        // The store computes the value again.
        guard let former, !(new is NSDerivedAttributeDescription) || former is NSDerivedAttributeDescription else {
            return InferredAttribute(destination: new, source: nil, elements: [])
        }
        if !AttributeConversion.isInferable(former.attributeType, new.attributeType) {
            // A derived value is computed again, whatever its former type.
            if new is NSDerivedAttributeDescription {
                return InferredAttribute(destination: new, source: nil, elements: [])
            }
            refuse(former, as: new, path: path, entity: entity)
        }
        return InferredAttribute(destination: new, source: former, elements: [])
    }

    private mutating func refuse(
        _ former: NSAttributeDescription,
        as new: NSAttributeDescription,
        path: String,
        entity: String
    ) {
        let types = (AttributeType(former.attributeType).described, AttributeType(new.attributeType).described)
        obstacles.add(
            entity,
            property: path,
            reason: "its type \(types.0) does not become \(types.1) by itself",
            advice: "Add an attribute of another name and fill it in a custom stage, or use a mapping model."
        )
    }

    private mutating func inferRelationships(
        of entity: NSEntityDescription,
        from old: NSEntityDescription?
    ) -> [InferredRelationship] {
        pair(entity, with: old, kind: NSRelationshipDescription.self).map { new, former in
            if let former { checkDestination(of: new, former, entity) }
            return InferredRelationship(destination: new, source: former)
        }
    }

    /// Checks that the objects at the other end still belong to the destination's entity.
    private mutating func checkDestination(
        of new: NSRelationshipDescription,
        _ former: NSRelationshipDescription,
        _ entity: NSEntityDescription
    ) {
        guard let oldTarget = former.destinationEntity, let newTarget = new.destinationEntity,
            // The store has no references to entities that it does not hold.
            sourceMembers.contains(ObjectIdentifier(oldTarget)),
            destinationMembers.contains(ObjectIdentifier(newTarget))
        else { return }
        let counterpart = counterparts[ObjectIdentifier(oldTarget)]
        if let counterpart, counterpart.isKindOf(entity: newTarget) { return }
        let now =
            counterpart.map { $0.name == oldTarget.name ? "" : ", now \($0.name ?? "")," } ?? ", which is removed,"
        obstacles.add(
            new.owner?.name ?? entity.name ?? "",
            property: new.name,
            reason: "it led to \(oldTarget.name ?? "")\(now) and would lead to \(newTarget.name ?? "")",
            advice: "Add a relationship of another name and fill it in a custom stage, or use a mapping model."
        )
    }
}
