extension Schema {
    /// The description of the objects of one class: their properties, and what is unique or indexed about them.
    ///
    /// The entities of a schema of classes are made of the classes. Others can be made by hand.
    ///
    /// ```swift
    /// for entity in Schema([Trip.self]).entities { print(entity.name, entity.attributes.count) }
    /// ```
    public final class Entity: Codable, Hashable, CustomDebugStringConvertible, @unchecked Sendable {
        // @unchecked Sendable: a schema does not change its entities.

        /// The name, which is that of the class without its module and the types around it.
        public var name: String
        /// The entities that inherit from this one.
        public var subentities: Set<Entity> {
            didSet { adopt(subentities) }
        }
        /// The name of the entity from which this one inherits; `nil` if it is none.
        public var superentityName: String?
        /// The properties that the entity does not inherit, in the order of their declaration.
        public var storedProperties: [any SchemaProperty]
        /// The groups of properties whose values are together unique.
        public var uniquenessConstraints: [[String]] = []
        /// The groups of properties by which a store finds objects quickly.
        public var indices: [[String]] = []

        private weak var parent: Entity?
        private var ownInherited: [any SchemaProperty] = []

        /// Makes an entity without properties.
        ///
        /// - Parameter name: The name.
        public init(_ name: String) {
            self.name = name
            subentities = []
            storedProperties = []
        }

        /// Makes an entity from which others inherit.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - subentities: The entities that inherit from it.
        ///   - properties: Its attributes and relationships.
        public init(_ name: String, subentities: Entity..., properties: any SchemaProperty...) {
            self.name = name
            self.subentities = Set(subentities)
            storedProperties = properties
            adopt(self.subentities)
        }

        /// Makes an entity.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - properties: Its attributes and relationships.
        public init(_ name: String, properties: any SchemaProperty...) {
            self.name = name
            subentities = []
            storedProperties = properties
        }

        private func adopt(_ subentities: Set<Entity>) {
            for entity in subentities { entity.superentity = self }
        }

        // MARK: - Properties

        /// The entity from which this one inherits; `nil` if it is none.
        ///
        /// It is not kept alive.
        public var superentity: Entity? {
            get { parent }
            set {
                parent = newValue
                superentityName = newValue?.name
            }
        }

        /// The properties of the entities from which this one inherits, the topmost ones first.
        ///
        /// Those that are set count only while there is no superentity.
        public var inheritedProperties: [any SchemaProperty] {
            get { parent?.properties ?? ownInherited }
            set { ownInherited = newValue }
        }

        /// All properties, the inherited ones first.
        public var properties: [any SchemaProperty] { inheritedProperties + storedProperties }

        /// The attributes that the entity does not inherit.
        ///
        /// Setting them keeps the relationships.
        public var attributes: Set<Attribute> {
            get { Set(storedProperties.compactMap { $0 as? Attribute }) }
            set {
                storedProperties = newValue.sorted { $0.name < $1.name } + storedProperties.filter { !$0.isAttribute }
            }
        }

        /// The relationships that the entity does not inherit.
        ///
        /// Setting them keeps the attributes.
        public var relationships: Set<Relationship> {
            get { Set(storedProperties.compactMap { $0 as? Relationship }) }
            set {
                storedProperties =
                    storedProperties.filter { !$0.isRelationship } + newValue.sorted { $0.name < $1.name }
            }
        }

        /// The attributes that the entity does not inherit, by name.
        public var attributesByName: [String: Attribute] {
            get { Self.byName(Array(attributes)) }
            set { attributes = Set(newValue.values) }
        }

        /// The relationships that the entity does not inherit, by name.
        public var relationshipsByName: [String: Relationship] {
            get { Self.byName(Array(relationships)) }
            set { relationships = Set(newValue.values) }
        }

        /// The properties that the entity does not inherit, by name.
        public var storedPropertiesByName: [String: any SchemaProperty] {
            get { Dictionary(storedProperties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first }) }
            set { storedProperties = newValue.values.sorted { $0.name < $1.name } }
        }

        /// The inherited properties, by name.
        public var inheritedPropertiesByName: [String: any SchemaProperty] {
            get { Dictionary(inheritedProperties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first }) }
            set { inheritedProperties = newValue.values.sorted { $0.name < $1.name } }
        }

        private static func byName<Property: SchemaProperty>(_ properties: [Property]) -> [String: Property] {
            Dictionary(properties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        }

        // MARK: - Codable

        private enum CodingKeys: String, CodingKey {
            case name, subentities, superentityName, properties, uniquenessConstraints, indices
        }

        /// A property of one of the three kinds.
        private enum CodedProperty: Codable {
            case attribute(Attribute)
            case composite(CompositeAttribute)
            case relationship(Relationship)

            init?(_ property: any SchemaProperty) {
                switch property {
                case let composite as CompositeAttribute: self = .composite(composite)
                case let attribute as Attribute: self = .attribute(attribute)
                case let relationship as Relationship: self = .relationship(relationship)
                default: return nil
                }
            }

            var property: any SchemaProperty {
                switch self {
                case .attribute(let attribute): attribute
                case .composite(let composite): composite
                case .relationship(let relationship): relationship
                }
            }
        }

        /// Reads an entity of an encoded schema.
        ///
        /// - Parameter decoder: The decoder.
        /// - Throws: `DecodingError.dataCorrupted` if the program lacks a type, and the errors of the decoder.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            name = try container.decode(String.self, forKey: .name)
            subentities = Set(try container.decode([Entity].self, forKey: .subentities))
            superentityName = try container.decodeIfPresent(String.self, forKey: .superentityName)
            storedProperties = try container.decode([CodedProperty].self, forKey: .properties).map(\.property)
            uniquenessConstraints = try container.decode([[String]].self, forKey: .uniquenessConstraints)
            indices = try container.decode([[String]].self, forKey: .indices)
            adopt(subentities)
        }

        /// Writes the entity and those that inherit from it.
        ///
        /// - Parameter encoder: The encoder.
        /// - Throws: The errors of the encoder.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(name, forKey: .name)
            try container.encode(subentities.sorted { $0.name < $1.name }, forKey: .subentities)
            try container.encodeIfPresent(superentityName, forKey: .superentityName)
            try container.encode(storedProperties.compactMap { CodedProperty($0) }, forKey: .properties)
            try container.encode(uniquenessConstraints, forKey: .uniquenessConstraints)
            try container.encode(indices, forKey: .indices)
        }

        // MARK: - Comparing

        /// Compares the names, the properties in any order, and what is unique or indexed.
        ///
        /// - Parameters:
        ///   - lhs: One value.
        ///   - rhs: Another one.
        /// - Returns: Whether they are equal.
        public static func == (lhs: Entity, rhs: Entity) -> Bool {
            lhs === rhs
                || lhs.name == rhs.name && lhs.superentityName == rhs.superentityName
                    && lhs.attributesByName == rhs.attributesByName
                    && lhs.relationshipsByName == rhs.relationshipsByName
                    && lhs.uniquenessConstraints == rhs.uniquenessConstraints && lhs.indices == rhs.indices
                    && lhs.subentities == rhs.subentities
        }

        /// Hashes the name.
        ///
        /// - Parameter hasher: The hasher.
        public func hash(into hasher: inout Hasher) { hasher.combine(name) }

        /// The name, and the names of the properties.
        public var debugDescription: String {
            "Schema.Entity(\(name): \(properties.map(\.name).joined(separator: ", ")))"
        }
    }
}

extension Schema.Entity {
    /// Makes the entity of a class, without those that inherit from it.
    convenience init(_ record: ModelRecord) {
        self.init(record.entityName)
        storedProperties = record.ownProperties.map { property in
            guard case .attribute(let form) = property.kind else { return Schema.Relationship(property) }
            let declared = property.metadata as? Schema.Attribute
            let make =
                form.isComposite
                ? Schema.CompositeAttribute.init
                : Schema.Attribute.init(name:originalName:options:valueType:defaultValue:hashModifier:)
            return make(
                property.name,
                declared?.originalName.nonEmpty,
                declared?.options ?? [],
                Swift.type(of: property.keyPath).valueType,
                property.defaultValue,
                declared?.hashModifier
            )
        }
        uniquenessConstraints =
            storedProperties.filter { $0.isUnique && !$0.isRelationship }.map { [$0.name] } + record.constraints
        indices = record.indices
    }
}
