import StrataModelFiles
import StrataPredicates

/// The version hashes of descriptions; ``HashFormula`` describes the input of the hashes.
package enum VersionHash {
    /// The rule for hashing composite attributes, and derivations that were made in code.
    enum Rule {
        /// The rule of Apple's framework.
        case apple
        /// The rule of earlier versions of this framework, before Apple's rule was known.
        case former
    }

    // MARK: - Properties

    /// The hash of a property, from its name, whether it is optional, its modifier, and the facts of its kind.
    static func hash(of property: NSPropertyDescription, _ rule: Rule = .apple) -> Data {
        if let derived = property as? NSDerivedAttributeDescription {
            let former = rule == .former ? derived.formerDerivationText : nil
            return HashFormula.derived(former ?? derived.derivationText ?? "")
        }
        let base = HashFormula.Base(
            name: property.name,
            isOptional: property.isOptional,
            modifier: property.versionHashModifier
        )
        if let composite = property as? NSCompositeAttributeDescription {
            let elements = composite.elements.map { (name: $0.name, hash: hash(of: $0, rule)) }
            guard rule == .former else { return HashFormula.composite(elements) }
            return HashFormula.formerComposite(
                base,
                allowsExternalStorage: composite.allowsExternalBinaryDataStorage,
                preservesValueOnDeletion: composite.preservesValueInHistoryOnDeletion,
                elements: elements
            )
        }
        if let attribute = property as? NSAttributeDescription {
            return HashFormula.attribute(
                base,
                type: attribute.type.rawValue.rawValue,
                allowsExternalStorage: attribute.allowsExternalBinaryDataStorage,
                preservesValueOnDeletion: attribute.preservesValueInHistoryOnDeletion
            )
        }
        if let relationship = property as? NSRelationshipDescription {
            return HashFormula.relationship(
                base,
                destination: relationship.destinationEntity?.name ?? "",
                inverse: relationship.inverseRelationship?.name ?? "",
                maxCount: relationship.maxCount,
                minCount: relationship.minCount,
                isOrdered: relationship.isOrdered
            )
        }
        return HashFormula.other(base)
    }

    // MARK: - Entities

    /// The hash of an entity, from its name, its parent's hash, its persistent properties, and its constraints.
    static func hash(of entity: NSEntityDescription) -> Data {
        var hashes = Entities()
        return hashes.hash(of: entity)
    }

    /// The hash of an entity by the former rule; `nil` if it has neither composite attributes nor derivations by functions
    /// that were made in code.
    ///
    /// Stores that were made under the former rule have this hash in their metadata, and can still be opened.
    package static func formerHash(of entity: NSEntityDescription) -> Data? {
        let hasFormerParts = entity.properties.contains { property in
            guard property.isPersistent else { return false }
            return property is NSCompositeAttributeDescription
                || (property as? NSDerivedAttributeDescription)?.formerDerivationText != nil
        }
        guard hasFormerParts else { return nil }
        var hashes = Entities(.former)
        return hashes.hash(of: entity)
    }

    /// The hashes of several entities; inherited parts are hashed once.
    struct Entities {
        private let rule: Rule
        private var entities: [ObjectIdentifier: Data] = [:]
        private var properties: [ObjectIdentifier: Data] = [:]

        init(_ rule: Rule = .apple) { self.rule = rule }

        mutating func hash(of entity: NSEntityDescription) -> Data {
            if let known = entities[ObjectIdentifier(entity)] { return known }
            // It goes from the root down, so that an inheritance cycle, which validation reports, does not recurse for
            // ever.
            var parent: Data?
            for ancestor in entity.ancestors.reversed() {
                parent = entities[ObjectIdentifier(ancestor)] ?? hash(of: ancestor, parent: parent)
            }
            return hash(of: entity, parent: parent)
        }

        private mutating func hash(of entity: NSEntityDescription, parent: Data?) -> Data {
            var hashed: [(name: String, hash: Data)] = []
            for property in entity.properties where property.isPersistent {
                hashed.append((property.name, hash(of: property)))
            }
            let hash = HashFormula.entity(
                entity.name ?? "",
                isAbstract: entity.isAbstract,
                parent: parent,
                properties: hashed,
                constraints: entity.uniquenessConstraintNames,
                modifier: entity.versionHashModifier
            )
            entities[ObjectIdentifier(entity)] = hash
            return hash
        }

        private mutating func hash(of property: NSPropertyDescription) -> Data {
            if let known = properties[ObjectIdentifier(property)] { return known }
            let hash = VersionHash.hash(of: property, rule)
            properties[ObjectIdentifier(property)] = hash
            return hash
        }
    }
}
