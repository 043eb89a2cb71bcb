import CoreData

extension Schema {
    /// A relationship of an entity, or the options of one.
    ///
    /// ```swift
    /// let relationship = Schema([Trip.self]).entitiesByName["Trip"]?.relationshipsByName["stops"]
    /// print(relationship?.destination ?? "", relationship?.inverseName ?? "")
    /// ```
    public final class Relationship: SchemaProperty, CustomDebugStringConvertible, @unchecked Sendable {
        // @unchecked Sendable: a schema copies what it is made of, and does not change it afterwards.

        /// A choice about a relationship.
        ///
        /// ```swift
        /// let unique: [Schema.Relationship.Option] = [.unique]
        /// ```
        public struct Option: Codable, Hashable, CustomDebugStringConvertible, Sendable {
            private let name: String

            /// No two objects are related to the same one.
            public static var unique: Option { Option(name: "unique") }

            /// The name of the choice.
            public var debugDescription: String { name }
        }

        /// The fate of the related objects if an object is deleted.
        ///
        /// ```swift
        /// let rule = Schema.Relationship.DeleteRule.cascade
        /// ```
        public enum DeleteRule: String, Codable, Hashable, Sendable {
            /// Nothing happens to them.
            case noAction
            /// They lose the relationship to the object.
            case nullify
            /// They are deleted as well.
            case cascade
            /// The object cannot be deleted while there are any.
            case deny

            var rule: NSDeleteRule {
                switch self {
                case .noAction: .noActionDeleteRule
                case .nullify: .nullifyDeleteRule
                case .cascade: .cascadeDeleteRule
                case .deny: .denyDeleteRule
                }
            }
        }

        /// The name; empty for options that stand at a property.
        public var name: String = ""
        /// The name in earlier versions of the schema; empty if it is the same.
        public var originalName: String
        /// The key path of the property; `nil` in a schema that was decoded.
        public var keypath: AnyKeyPath?
        /// The choices.
        public var options: [Option]
        /// The type of the values: a class, an array of it, or an optional of one of both.
        public var valueType: any Any.Type = Any.self {
            didSet { destination = Self.destination(of: valueType)?.record.entityName ?? destination }
        }
        /// The name of the entity of the related objects.
        public var destination: String = ""
        /// The fate of the related objects if an object is deleted.
        public var deleteRule: DeleteRule
        /// The name of the relationship that leads back; `nil` if there is none.
        public var inverseName: String?
        /// The relationship of the other class that leads back, if it is named on this side.
        public var inverseKeyPath: AnyKeyPath?
        /// The smallest number of related objects; 0 for no limit.
        public var minimumModelCount: Int?
        /// The largest number of related objects; 0 for no limit.
        public var maximumModelCount: Int?
        /// A text that makes this version of the relationship differ from another one.
        public var hashModifier: String?

        /// Whether it leads to one object at most.
        public var isToOneRelationship: Bool { !(Self.plain(valueType) is any RelationshipCollection.Type) }
        /// Whether no two objects are related to the same one.
        public var isUnique: Bool { options.contains(.unique) }
        /// Whether it is an attribute: `false`.
        public var isAttribute: Bool { false }
        /// Whether it is a relationship: `true`.
        public var isRelationship: Bool { true }
        /// Whether it is tracked and not stored: `false`.
        public var isTransient: Bool { false }

        /// Describes the options of a relationship, at the property.
        ///
        /// - Parameters:
        ///   - options: The choices.
        ///   - deleteRule: The fate of the related objects if an object is deleted.
        ///   - minimumModelCount: The smallest number of related objects; 0 for no limit.
        ///   - maximumModelCount: The largest number of related objects; 0 for no limit.
        ///   - originalName: The name in earlier versions of the schema; the same if it is nil.
        ///   - inverse: The relationship of the other class that leads back.
        ///   - hashModifier: A text that makes this version of the relationship differ from another one.
        public init(
            _ options: Option...,
            deleteRule: DeleteRule = .nullify,
            minimumModelCount: Int? = 0,
            maximumModelCount: Int? = 0,
            originalName: String? = nil,
            inverse: AnyKeyPath? = nil,
            hashModifier: String? = nil
        ) {
            self.options = options
            self.deleteRule = deleteRule
            self.minimumModelCount = minimumModelCount
            self.maximumModelCount = maximumModelCount
            self.originalName = originalName ?? ""
            inverseKeyPath = inverse
            self.hashModifier = hashModifier
        }

        /// Makes the relationship of a property with the options that stand at it.
        init(_ property: ModelProperty) {
            let declared = property.metadata as? Relationship
            name = property.name
            originalName = declared?.originalName.nonEmpty ?? property.name
            keypath = property.keyPath
            options = declared?.options ?? []
            valueType = type(of: property.keyPath).valueType
            deleteRule = declared?.deleteRule ?? .nullify
            inverseKeyPath = declared?.inverseKeyPath
            minimumModelCount = declared?.minimumModelCount ?? 0
            maximumModelCount = declared?.maximumModelCount ?? 0
            hashModifier = declared?.hashModifier
            destination = Self.destination(of: valueType)?.record.entityName ?? ""
        }

        private static func plain(_ type: any Any.Type) -> any Any.Type {
            (type as? any OptionalValue.Type)?.wrapped ?? type
        }

        /// The class of the related objects.
        private static func destination(of type: any Any.Type) -> (any PersistentModel.Type)? {
            let plain = plain(type)
            return plain as? any PersistentModel.Type ?? (plain as? any RelationshipCollection.Type)?.element
        }

        // MARK: - Codable

        private enum CodingKeys: String, CodingKey {
            case name, originalName, options, valueType, destination, deleteRule, inverseName, minimumModelCount,
                maximumModelCount, hashModifier
        }

        /// Reads a relationship of an encoded schema.
        ///
        /// - Parameter decoder: The decoder.
        /// - Throws: `DecodingError.dataCorrupted` if the program lacks the type, and the errors of the decoder.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            name = try container.decode(String.self, forKey: .name)
            originalName = try container.decode(String.self, forKey: .originalName)
            options = try container.decode([Option].self, forKey: .options)
            let type = try container.decode(String.self, forKey: .valueType)
            valueType = try CodedType.type(type, for: .valueType, in: container)
            destination = try container.decode(String.self, forKey: .destination)
            deleteRule = try container.decode(DeleteRule.self, forKey: .deleteRule)
            inverseName = try container.decodeIfPresent(String.self, forKey: .inverseName)
            minimumModelCount = try container.decodeIfPresent(Int.self, forKey: .minimumModelCount)
            maximumModelCount = try container.decodeIfPresent(Int.self, forKey: .maximumModelCount)
            hashModifier = try container.decodeIfPresent(String.self, forKey: .hashModifier)
        }

        /// Writes the relationship as a part of a schema, without key paths.
        ///
        /// - Parameter encoder: The encoder.
        /// - Throws: The errors of the encoder.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(name, forKey: .name)
            try container.encode(originalName, forKey: .originalName)
            try container.encode(options, forKey: .options)
            try container.encode(CodedType.name(of: valueType), forKey: .valueType)
            try container.encode(destination, forKey: .destination)
            try container.encode(deleteRule, forKey: .deleteRule)
            try container.encodeIfPresent(inverseName, forKey: .inverseName)
            try container.encodeIfPresent(minimumModelCount, forKey: .minimumModelCount)
            try container.encodeIfPresent(maximumModelCount, forKey: .maximumModelCount)
            try container.encodeIfPresent(hashModifier, forKey: .hashModifier)
        }

        // MARK: - Comparing

        /// Compares names, types, rules and counts; key paths are not compared.
        ///
        /// - Parameters:
        ///   - lhs: One value.
        ///   - rhs: Another one.
        /// - Returns: Whether they are equal.
        public static func == (lhs: Relationship, rhs: Relationship) -> Bool {
            lhs.name == rhs.name && lhs.originalName == rhs.originalName && lhs.options == rhs.options
                && lhs.valueType == rhs.valueType && lhs.destination == rhs.destination
                && lhs.deleteRule == rhs.deleteRule && lhs.inverseName == rhs.inverseName
                && lhs.minimumModelCount == rhs.minimumModelCount && lhs.maximumModelCount == rhs.maximumModelCount
                && lhs.hashModifier == rhs.hashModifier
        }

        /// Hashes the name.
        ///
        /// - Parameter hasher: The hasher.
        public func hash(into hasher: inout Hasher) { hasher.combine(name) }

        /// The name, the type, the delete rule and the inverse.
        public var debugDescription: String {
            "Schema.Relationship(\(name): \(valueType), deleteRule: \(deleteRule), inverse: \(inverseName ?? "none"))"
        }
    }
}

extension String {
    /// The text; `nil` if it is empty.
    var nonEmpty: String? { isEmpty ? nil : self }
}
