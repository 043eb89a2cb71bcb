import StrataPredicates
import StrataRows

/// The version hashes of entities and properties.
///
/// They decide whether a store can be opened with a model, here and on Apple's systems, so they are computed over the
/// same bytes. Where no store was found to measure, the choice made here is marked "own choice"; such models open with
/// this framework, but perhaps not with Apple's.
enum VersionHash {
    // MARK: - Properties

    /// The hash of a property, over its name, whether it is optional, its modifier, and what its kind adds.
    static func hash(of property: NSPropertyDescription) -> Data {
        if let derived = property as? NSDerivedAttributeDescription {
            return SHA2.sha256(Data((derived.derivationText ?? "").utf8))
        }
        var message = base(of: property)
        if let attribute = property as? NSAttributeDescription {
            message.append(contentsOf: bytes(attribute.type.rawValue.rawValue))
            if attribute.allowsExternalBinaryDataStorage { message.append(1) }
            if attribute.preservesValueInHistoryOnDeletion { message.append(1) }
            if let composite = attribute as? NSCompositeAttributeDescription {
                // Own choice: the hashes of the elements, by name.
                for element in sorted(composite.elements) {
                    message.append(element.versionHash)
                }
            }
        } else if let relationship = property as? NSRelationshipDescription {
            message.append(contentsOf: (relationship.destinationEntity?.name ?? "").utf8)
            message.append(contentsOf: (relationship.inverseRelationship?.name ?? "").utf8)
            message.append(contentsOf: bytes(relationship.maxCount))
            message.append(contentsOf: bytes(relationship.minCount))
            if relationship.isOrdered { message.append(contentsOf: [1, 0]) }
        }
        return SHA2.sha256(message)
    }

    private static func base(of property: NSPropertyDescription) -> Data {
        var message = Data(property.name.utf8)
        message.append(property.isOptional ? 1 : 0)
        // Zero in every store that was measured, for transient properties take no part in an entity's hash.
        message.append(0)
        message.append(contentsOf: (property.versionHashModifier ?? "").utf8)
        return SHA2.sha256(message)
    }

    // MARK: - Entities

    /// The hash of an entity, over its name, its parent's hash, its persistent properties, and its constraints.
    static func hash(of entity: NSEntityDescription) -> Data {
        var hashes = Entities()
        return hashes.hash(of: entity)
    }

    /// The hashes of several entities: what they inherit is hashed once.
    struct Entities {
        private var entities: [ObjectIdentifier: Data] = [:]
        private var properties: [ObjectIdentifier: Data] = [:]

        mutating func hash(of entity: NSEntityDescription) -> Data {
            if let known = entities[ObjectIdentifier(entity)] { return known }
            // From the root down, so that an inheritance cycle, which validation reports, does not recurse for ever.
            var parent: Data?
            for ancestor in entity.ancestors.reversed() {
                parent = entities[ObjectIdentifier(ancestor)] ?? hash(of: ancestor, parent: parent)
            }
            return hash(of: entity, parent: parent)
        }

        private mutating func hash(of entity: NSEntityDescription, parent: Data?) -> Data {
            var message = Data((entity.name ?? "").utf8)
            message.append(entity.isAbstract ? 1 : 0)
            if let parent { message.append(parent) }
            for property in sorted(entity.properties.filter(\.isPersistent)) {
                message.append(hash(of: property))
            }
            // In the order of their texts, whatever the model's order.
            for constraint in entity.uniquenessConstraintNames.map({ $0.joined(separator: ".") }).sorted(by: precedes) {
                message.append(contentsOf: constraint.utf8)
            }
            message.append(contentsOf: (entity.versionHashModifier ?? "").utf8)
            let hash = SHA2.sha256(message)
            entities[ObjectIdentifier(entity)] = hash
            return hash
        }

        private mutating func hash(of property: NSPropertyDescription) -> Data {
            if let known = properties[ObjectIdentifier(property)] { return known }
            let hash = VersionHash.hash(of: property)
            properties[ObjectIdentifier(property)] = hash
            return hash
        }
    }

    // MARK: - Pieces

    private static func sorted<Property: NSPropertyDescription>(_ properties: [Property]) -> [Property] {
        properties.sorted { precedes($0.name, $1.name) }
    }

    /// Byte order, which for names beyond ASCII is not the order of `String`.
    private static func precedes(_ left: String, _ right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }

    private static func bytes(_ value: some BinaryInteger) -> [UInt8] {
        withUnsafeBytes(of: Int32(truncatingIfNeeded: value).littleEndian, Array.init)
    }
}
