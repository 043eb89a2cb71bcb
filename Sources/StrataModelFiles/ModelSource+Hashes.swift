import Foundation

extension ModelSource {
    /// The 32-byte version hashes of the entities, by name, as the framework computes them from its descriptions.
    ///
    /// If the model has faults, they may not be the hashes of any model.
    package var versionHashes: [String: Data] {
        var hashes = SourceHashes(self)
        var result: [String: Data] = [:]
        for entity in entities { result[entity.name] = hashes.hash(of: entity) }
        return result
    }
}

extension AttributeSource.TypeName {
    /// The number of the type in Apple's framework.
    fileprivate var number: UInt {
        switch self {
        case .undefined: 0
        case .integer16: 100
        case .integer32: 200
        case .integer64: 300
        case .decimal: 400
        case .double: 500
        case .float: 600
        case .string: 700
        case .boolean: 800
        case .date: 900
        case .data: 1000
        case .uuid: 1100
        case .uri: 1200
        case .transformable: 1800
        case .objectID: 2000
        case .composite: 2100
        }
    }
}

/// Computes the version hashes of one model's entities.
private struct SourceHashes {
    private let entities: [String: EntitySource]
    private let composites: [String: CompositeSource]
    private var known: [String: Data] = [:]
    /// The stored properties that an entity declares itself, by its name.
    private var declared: [String: [(name: String, hash: Data)]] = [:]

    init(_ source: ModelSource) {
        entities = Dictionary(source.entities.map { ($0.name, $0) }) { first, _ in first }
        composites = Dictionary(source.composites.map { ($0.name, $0) }) { _, last in last }
    }

    mutating func hash(of entity: EntitySource) -> Data {
        if let hash = known[entity.name] { return hash }
        // The order is from the root down, so that an inheritance cycle, which is a fault, does not recurse for ever.
        var line = [entity]
        var seen: Set<String> = [entity.name]
        while let parent = line.last?.parent.flatMap({ entities[$0] }), seen.insert(parent.name).inserted {
            line.append(parent)
        }
        var properties: [(name: String, hash: Data)] = []
        var hash: Data?
        for member in line.reversed() {
            properties += ownProperties(of: member)
            hash =
                known[member.name]
                ?? HashFormula.entity(
                    member.name,
                    isAbstract: member.isAbstract,
                    parent: hash,
                    properties: properties,
                    constraints: member.uniquenessConstraints,
                    modifier: member.versionHashModifier
                )
            known[member.name] = hash
        }
        return hash ?? Data()
    }

    private mutating func ownProperties(of entity: EntitySource) -> [(name: String, hash: Data)] {
        if let hashes = declared[entity.name] { return hashes }
        var hashes: [(name: String, hash: Data)] = []
        for property in entity.properties where !property.facts.isTransient {
            switch property {
            case .attribute(let attribute): hashes.append((attribute.facts.name, hash(of: attribute, depth: 0)))
            case .relationship(let relationship): hashes.append((relationship.facts.name, hash(of: relationship)))
            case .fetched: break
            }
        }
        declared[entity.name] = hashes
        return hashes
    }

    private func base(_ facts: PropertyFacts) -> HashFormula.Base {
        HashFormula.Base(name: facts.name, isOptional: facts.isOptional, modifier: facts.versionHashModifier)
    }

    private func hash(of attribute: AttributeSource, depth: Int) -> Data {
        if attribute.type == .composite {
            return HashFormula.composite(elements(of: attribute, depth: depth))
        }
        if attribute.isDerived { return HashFormula.derived(attribute.derivationExpression ?? "") }
        return HashFormula.attribute(
            base(attribute.facts),
            type: attribute.type.number,
            allowsExternalStorage: attribute.allowsExternalBinaryDataStorage,
            preservesValueOnDeletion: attribute.preservesValueInHistoryOnDeletion
        )
    }

    /// The elements of a composite attribute: its own, or those of the composite type that it names.
    ///
    /// The framework refuses deeper nesting.
    private func elements(of attribute: AttributeSource, depth: Int) -> [(name: String, hash: Data)] {
        guard depth < 8 else { return [] }
        let named = attribute.compositeNames.lazy.compactMap { composites[$0] }.first?.elements
        let elements = attribute.elements.isEmpty ? named ?? [] : attribute.elements
        return elements.map { ($0.facts.name, hash(of: $0, depth: depth + 1)) }
    }

    private func hash(of relationship: RelationshipSource) -> Data {
        HashFormula.relationship(
            base(relationship.facts),
            destination: relationship.destination,
            inverse: relationship.inverse?.name ?? "",
            maxCount: relationship.maxCount,
            minCount: relationship.minCount,
            isOrdered: relationship.isOrdered
        )
    }
}
