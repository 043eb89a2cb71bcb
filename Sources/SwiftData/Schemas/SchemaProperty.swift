import CoreData
import Foundation

/// A part of a schema: an attribute, a relationship, or groups of properties that are unique or indexed together.
///
/// ```swift
/// let names = Schema([Trip.self]).entitiesByName["Trip"]?.properties.map(\.name)
/// ```
public protocol SchemaProperty: Codable, Hashable {
    /// The name of the property; empty for groups, and for options that stand at a property.
    var name: String { get set }
    /// The name in earlier versions of the schema; empty if it is the same.
    var originalName: String { get set }
    /// The type of the values, which is an optional type if they may be absent.
    var valueType: any Any.Type { get set }
    /// Whether it is an attribute.
    var isAttribute: Bool { get }
    /// Whether it is a relationship.
    var isRelationship: Bool { get }
    /// Whether it is tracked and not stored.
    var isTransient: Bool { get }
    /// Whether the value may be absent.
    var isOptional: Bool { get }
    /// Whether no two objects have the same value.
    var isUnique: Bool { get }
}

extension SchemaProperty {
    /// Whether it is an attribute: `false` by default.
    public var isAttribute: Bool { false }
    /// Whether it is a relationship: `false` by default.
    public var isRelationship: Bool { false }
    /// Whether it is tracked and not stored: `false` by default.
    public var isTransient: Bool { false }
    /// Whether the value may be absent: by default, whether the type is an optional type.
    public var isOptional: Bool { valueType is any OptionalValue.Type }
}

/// A type in an encoded schema.
enum CodedType {
    /// The name by which the program finds the type again.
    static func name(of type: any Any.Type) -> String { _mangledTypeName(type) ?? String(reflecting: type) }

    /// The type of a name.
    ///
    /// - Throws: `DecodingError.dataCorrupted` if the program has no such type.
    static func type<Key>(_ name: String, for key: Key, in container: KeyedDecodingContainer<Key>) throws
        -> any Any.Type
    {
        guard let type = _typeByName(name) else {
            throw DecodingError.dataCorruptedError(
                forKey: key,
                in: container,
                debugDescription: "SwiftData: the program has no type \(name)."
            )
        }
        return type
    }
}

extension Schema {
    /// An attribute of an entity, or the options of one.
    ///
    /// ```swift
    /// let attribute = Schema.Attribute(name: "code", options: [.unique], valueType: String.self)
    /// ```
    public class Attribute: SchemaProperty, CustomDebugStringConvertible, @unchecked Sendable {
        // @unchecked Sendable: a schema copies what it is made of, and does not change it afterwards.

        /// A choice about an attribute.
        ///
        /// ```swift
        /// @Model
        /// final class Photo {
        ///     @Attribute(.externalStorage) var image: Data
        ///     init(image: Data) { self.image = image }
        /// }
        /// ```
        public struct Option: Codable, Hashable, CustomDebugStringConvertible, Sendable {
            enum Kind: Hashable {
                case unique, externalStorage, ephemeral, preserveValueOnDeletion, spotlight, allowsCloudEncryption
                case codable
                case transformable(String)
            }

            let kind: Kind

            init(kind: Kind) { self.kind = kind }

            /// No two objects have the same value.
            ///
            /// A new object takes over the stored one that has the value.
            public static var unique: Option { Option(kind: .unique) }
            /// Large values may lie in files beside the store.
            public static var externalStorage: Option { Option(kind: .externalStorage) }
            /// The value is tracked and not stored.
            public static var ephemeral: Option { Option(kind: .ephemeral) }
            /// The history keeps the value of a deleted object.
            public static var preserveValueOnDeletion: Option { Option(kind: .preserveValueOnDeletion) }
            /// Has no effect on Linux.
            public static var spotlight: Option { Option(kind: .spotlight) }
            /// Has no effect on Linux.
            public static var allowsCloudEncryption: Option { Option(kind: .allowsCloudEncryption) }
            /// The value is stored as its type encodes it, and not by its parts.
            ///
            /// Predicates, sort descriptors and indexes cannot use its parts then.
            public static var codable: Option { Option(kind: .codable) }

            /// The value is stored as a transformer of this class makes it.
            ///
            /// - Parameter type: The class of the transformer, which is registered under its name.
            /// - Returns: The option.
            public static func transformable(by type: ValueTransformer.Type) -> Option {
                Option(kind: .transformable(String(describing: type)))
            }

            /// The value is stored as a transformer with this name makes it.
            ///
            /// - Parameter name: The name under which the transformer is registered.
            /// - Returns: The option.
            public static func transformable(by name: String) -> Option { Option(kind: .transformable(name)) }

            /// The name of the choice; for a transformer its name after a colon.
            public var debugDescription: String {
                if case .transformable(let name) = kind { return "transformable:\(name)" }
                return "\(kind)"
            }

            private static let plain: [Option] = [
                unique, externalStorage, ephemeral, preserveValueOnDeletion, spotlight, allowsCloudEncryption, codable,
            ]

            /// Reads the name of a choice.
            ///
            /// - Parameter decoder: The decoder.
            /// - Throws: `DecodingError.dataCorrupted` for an unknown name, and the errors of the decoder.
            public init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                let name = try container.decode(String.self)
                if name.hasPrefix("transformable:") {
                    self = .transformable(by: String(name.dropFirst("transformable:".count)))
                } else if let option = Self.plain.first(where: { $0.debugDescription == name }) {
                    self = option
                } else {
                    throw DecodingError.dataCorruptedError(
                        in: container,
                        debugDescription: "SwiftData: \(name) is no option of an attribute."
                    )
                }
            }

            /// Writes the name of the choice.
            ///
            /// - Parameter encoder: The encoder.
            /// - Throws: The errors of the encoder.
            public func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(debugDescription)
            }
        }

        /// The name; empty for options that stand at a property.
        public var name: String
        /// The name in earlier versions of the schema; empty if it is the same.
        public var originalName: String
        /// The choices.
        public var options: [Option]
        /// The type of the values, which is an optional type if they may be absent.
        public var valueType: any Any.Type { didSet { isOptional = valueType is any OptionalValue.Type } }
        /// The initial value that the class declares.
        ///
        /// It is the value of rows that a migration gives the attribute. New objects have what their initialiser sets.
        public var defaultValue: Any?
        /// Whether the value may be absent: by default, whether the type is an optional type.
        public var isOptional: Bool
        /// A text that makes this version of the attribute differ from another one.
        public var hashModifier: String?

        /// Whether it is an attribute: `true`.
        public var isAttribute: Bool { true }
        /// Whether it is a relationship: `false`.
        public var isRelationship: Bool { false }
        /// Whether the value is tracked and not stored.
        public var isTransient: Bool { options.contains(.ephemeral) }
        /// Whether no two objects have the same value.
        public var isUnique: Bool { options.contains(.unique) }
        /// Whether a transformer makes the stored value.
        public var isTransformable: Bool { transformerName != nil }
        /// Whether the value is stored as its type encodes it.
        public var isCodable: Bool { options.contains(.codable) }

        /// Describes the options of an attribute, at the property.
        ///
        /// - Parameters:
        ///   - options: The choices.
        ///   - originalName: The name in earlier versions of the schema; the same if it is nil.
        ///   - hashModifier: A text that makes this version of the attribute differ from another one.
        public init(_ options: Option..., originalName: String? = nil, hashModifier: String? = nil) {
            name = ""
            self.originalName = originalName ?? ""
            self.options = options
            valueType = Any.self
            isOptional = false
            self.hashModifier = hashModifier
        }

        /// Describes an attribute of an entity.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - originalName: The name in earlier versions of the schema; the same if it is nil.
        ///   - options: The choices.
        ///   - valueType: The type of the values, an optional type if they may be absent.
        ///   - defaultValue: The initial value.
        ///   - hashModifier: A text that makes this version of the attribute differ from another one.
        public init(
            name: String,
            originalName: String? = nil,
            options: [Option] = [],
            valueType: any Any.Type,
            defaultValue: Any? = nil,
            hashModifier: String? = nil
        ) {
            self.name = name
            self.originalName = originalName ?? name
            self.options = options
            self.valueType = valueType
            self.defaultValue = defaultValue
            isOptional = valueType is any OptionalValue.Type
            self.hashModifier = hashModifier
        }

        var transformerName: String? {
            for case .transformable(let name) in options.map(\.kind) { return name }
            return nil
        }

        // MARK: - Codable

        private enum CodingKeys: String, CodingKey {
            case name, originalName, options, valueType, defaultValue, isOptional, hashModifier
        }

        /// Reads an attribute of an encoded schema.
        ///
        /// - Parameter decoder: The decoder.
        /// - Throws: `DecodingError.dataCorrupted` if the program lacks the type, and the errors of the decoder.
        public required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            name = try container.decode(String.self, forKey: .name)
            originalName = try container.decode(String.self, forKey: .originalName)
            options = try container.decode([Option].self, forKey: .options)
            let type = try container.decode(String.self, forKey: .valueType)
            valueType = try CodedType.type(type, for: .valueType, in: container)
            isOptional = try container.decode(Bool.self, forKey: .isOptional)
            hashModifier = try container.decodeIfPresent(String.self, forKey: .hashModifier)
            if container.contains(.defaultValue), let type = valueType as? any Decodable.Type {
                defaultValue = try type.init(from: container.superDecoder(forKey: .defaultValue))
            }
        }

        /// Writes the attribute as a part of a schema.
        ///
        /// The initial value is left out if its type is not `Codable`.
        ///
        /// - Parameter encoder: The encoder.
        /// - Throws: The errors of the encoder.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(name, forKey: .name)
            try container.encode(originalName, forKey: .originalName)
            try container.encode(options, forKey: .options)
            try container.encode(CodedType.name(of: valueType), forKey: .valueType)
            try container.encode(isOptional, forKey: .isOptional)
            try container.encodeIfPresent(hashModifier, forKey: .hashModifier)
            if valueType is any Decodable.Type, let value = defaultValue as? any Encodable {
                try value.encode(to: container.superEncoder(forKey: .defaultValue))
            }
        }

        // MARK: - Comparing

        /// Compares names, types and options; initial values are not compared.
        ///
        /// - Parameters:
        ///   - lhs: One value.
        ///   - rhs: Another one.
        /// - Returns: Whether they are equal.
        public static func == (lhs: Attribute, rhs: Attribute) -> Bool {
            lhs.name == rhs.name && lhs.originalName == rhs.originalName && lhs.options == rhs.options
                && lhs.valueType == rhs.valueType && lhs.isOptional == rhs.isOptional
                && lhs.hashModifier == rhs.hashModifier
        }

        /// Hashes the name.
        ///
        /// - Parameter hasher: The hasher.
        public func hash(into hasher: inout Hasher) { hasher.combine(name) }

        /// The name, the type and the options.
        public var debugDescription: String { "Schema.Attribute(\(name): \(valueType), options: \(options))" }
    }

    /// An attribute whose value has parts, each of which is a column: an enumeration or a `Codable` structure.
    ///
    /// ```swift
    /// let composites = Schema([Trip.self]).entities.flatMap(\.attributes).compactMap { $0 as? Schema.CompositeAttribute }
    /// ```
    public final class CompositeAttribute: Attribute, @unchecked Sendable {
        // @unchecked Sendable: as its superclass.

        /// The parts.
        public var properties: [Attribute]

        /// Describes an attribute, and finds the parts of its type.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - originalName: The name in earlier versions of the schema; the same if it is nil.
        ///   - options: The choices.
        ///   - valueType: The type of the values, an optional type if they may be absent.
        ///   - defaultValue: The initial value.
        ///   - hashModifier: A text that makes this version of the attribute differ from another one.
        public override init(
            name: String,
            originalName: String? = nil,
            options: [Option] = [],
            valueType: any Any.Type,
            defaultValue: Any? = nil,
            hashModifier: String? = nil
        ) {
            properties = []
            super.init(
                name: name,
                originalName: originalName,
                options: options,
                valueType: valueType,
                defaultValue: defaultValue,
                hashModifier: hashModifier
            )
            properties = (try? storedForm)?.parts ?? []
        }

        private enum CodingKeys: String, CodingKey { case properties }

        /// Reads an attribute of an encoded schema.
        ///
        /// - Parameter decoder: The decoder.
        /// - Throws: `DecodingError.dataCorrupted` if the program lacks a type, and the errors of the decoder.
        public required init(from decoder: any Decoder) throws {
            properties = try decoder.container(keyedBy: CodingKeys.self).decode([Attribute].self, forKey: .properties)
            try super.init(from: decoder)
        }

        /// Writes the attribute and its parts.
        ///
        /// - Parameter encoder: The encoder.
        /// - Throws: The errors of the encoder.
        public override func encode(to encoder: any Encoder) throws {
            try super.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(properties, forKey: .properties)
        }

        /// Compares the attributes and their parts.
        ///
        /// - Parameters:
        ///   - lhs: One value.
        ///   - rhs: Another one.
        /// - Returns: Whether they are equal.
        public static func == (lhs: CompositeAttribute, rhs: CompositeAttribute) -> Bool {
            (lhs as Attribute) == (rhs as Attribute) && lhs.properties == rhs.properties
        }

        /// The name, the type, and the names of the parts.
        public override var debugDescription: String {
            "Schema.CompositeAttribute(\(name): \(valueType), properties: \(properties.map(\.name)))"
        }
    }
}

extension Schema.Attribute {
    /// The form in which values of the attribute are stored.
    ///
    /// - Throws: `StoredForm.Unsupported` if the type cannot be stored.
    var storedForm: StoredForm {
        get throws {
            try StoredForm(of: (valueType as? any OptionalValue.Type)?.wrapped ?? valueType, property: name, self)
        }
    }
}

extension StoredForm {
    /// The parts of a composite; `nil` if it has none.
    fileprivate var parts: [Schema.Attribute]? {
        switch self {
        case .rawValue(let type, let element, _):
            [Schema.Attribute(name: element, valueType: type.optionalRawType)]
        case .cases(_, let names): names.map { Schema.Attribute(name: $0, valueType: String?.self) }
        case .structure(_, let elements): elements.map { Schema.Attribute(name: $0.name, valueType: $0.type) }
        default: nil
        }
    }

    var isComposite: Bool { parts != nil }
}

extension RawRepresentable {
    fileprivate static var optionalRawType: any Any.Type { RawValue?.self }
}
