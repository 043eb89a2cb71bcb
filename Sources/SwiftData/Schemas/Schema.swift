import CoreData
import Foundation

/// The classes whose objects a container keeps, with what the store has to know of them.
public final class Schema: @unchecked Sendable {
    // @unchecked Sendable: immutable; the model is not changed after it was made.

    /// A version of a schema.
    public struct Version: Hashable, Comparable, Codable, Sendable, CustomStringConvertible {
        /// The number of changes that make a new beginning.
        public let major: Int
        /// The number of additions.
        public let minor: Int
        /// The number of corrections.
        public let patch: Int

        /// Makes a version of its three numbers.
        ///
        /// - Parameters:
        ///   - major: The number of changes that make a new beginning.
        ///   - minor: The number of additions.
        ///   - patch: The number of corrections.
        public init(_ major: Int, _ minor: Int, _ patch: Int) {
            (self.major, self.minor, self.patch) = (major, minor, patch)
        }

        /// The three numbers with dots, as stores have them.
        public var description: String { "\(major).\(minor).\(patch)" }

        /// Compares the three numbers, the major one first.
        public static func < (lhs: Version, rhs: Version) -> Bool {
            (lhs.major, lhs.minor, lhs.patch) < (rhs.major, rhs.minor, rhs.patch)
        }
    }

    /// The facts that a macro has found about one stored property.
    public struct PropertyMetadata {
        let name: String
        let keypath: AnyKeyPath
        let defaultValue: Any?
        let metadata: (any SchemaProperty)?

        /// Describes a property, or a group of properties if there is no name.
        ///
        /// - Parameters:
        ///   - name: The name of the property; empty for groups.
        ///   - keypath: The key path of the property.
        ///   - defaultValue: The initial value that the class declares.
        ///   - metadata: The options that the property's attribute declares.
        public init(name: String, keypath: AnyKeyPath, defaultValue: Any? = nil, metadata: (any SchemaProperty)? = nil)
        {
            self.name = name
            self.keypath = keypath
            self.defaultValue = defaultValue
            self.metadata = metadata
        }
    }

    /// The version, which is 1.0.0 unless it was given.
    public let version: Version
    /// The version as stores name it.
    public var encodingVersion: Version { version }
    let records: [String: ModelRecord]
    let model: NSManagedObjectModel

    /// Makes the schema of some classes, and of all that their relationships reach.
    ///
    /// If two classes have the same name, or an inverse leads elsewhere, then the program stops with both names.
    ///
    /// - Parameters:
    ///   - types: The classes.
    ///   - version: The version, by which a migration plan names it.
    public init(_ types: [any PersistentModel.Type], version: Version = Version(1, 0, 0)) {
        self.version = version
        records = Self.reachable(from: types)
        model = SchemaModel(records: records, version: version).model()
    }

    /// Makes the schema of some classes, and of all that their relationships reach.
    public convenience init(_ types: any PersistentModel.Type..., version: Version = Version(1, 0, 0)) {
        self.init(types, version: version)
    }

    private static func reachable(from types: [any PersistentModel.Type]) -> [String: ModelRecord] {
        var records: [String: ModelRecord] = [:]
        var open = types
        while let type = open.popLast() {
            let record = ModelRecord.of(type)
            if let known = records[record.entityName] {
                guard known === record else {
                    fatalError(
                        "SwiftData: \(known.type) and \(type) have the same name, \(record.entityName), in one schema."
                    )
                }
                continue
            }
            records[record.entityName] = record
            for property in record.properties {
                switch property.kind {
                case .toOne(let other), .toMany(let other): open.append(other)
                case .attribute: break
                }
            }
        }
        return records
    }

    /// The problem of a class that has the name of one of the schema, and is another one; `nil` if there is none.
    func mismatch(of type: any PersistentModel.Type) -> String? {
        guard let record = records[ModelRecord.of(type).entityName], record.type != type else { return nil }
        return "\(String(reflecting: type)) was used with version \(version) of the schema, "
            + "whose class of that name is \(String(reflecting: record.type))."
    }

    /// The name of the entity of a class.
    public static func entityName(for type: any PersistentModel.Type) -> String { ModelRecord.of(type).entityName }
}

/// A part of a schema that a macro's attribute describes.
public protocol SchemaProperty {}

/// A part of a schema that names groups of properties.
protocol ConstraintMetadata {
    var uniqueGroups: [[AnyKeyPath]] { get }
    var indexGroups: [[AnyKeyPath]] { get }
}

extension Schema {
    /// The options of an attribute.
    public final class Attribute: SchemaProperty, @unchecked Sendable {
        // @unchecked Sendable: immutable.

        /// A choice about an attribute.
        public struct Option: Hashable, Sendable {
            enum Kind: Hashable {
                case unique, externalStorage, ephemeral, preserveValueOnDeletion, spotlight, allowsCloudEncryption
                case transformable(String)
            }

            let kind: Kind

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

            /// The value is stored as a transformer of this class makes it.
            public static func transformable(by type: ValueTransformer.Type) -> Option {
                Option(kind: .transformable(String(describing: type)))
            }

            /// The value is stored as a transformer with this name makes it.
            public static func transformable(by name: String) -> Option { Option(kind: .transformable(name)) }
        }

        /// The choices.
        public let options: [Option]
        /// The name in earlier versions of the schema.
        public let originalName: String?
        /// A text that makes this version of the attribute differ from another one.
        public let hashModifier: String?

        /// Describes an attribute.
        ///
        /// - Parameters:
        ///   - options: The choices.
        ///   - originalName: The name in earlier versions of the schema.
        ///   - hashModifier: A text that makes this version of the attribute differ from another one.
        public init(_ options: Option..., originalName: String? = nil, hashModifier: String? = nil) {
            self.options = options
            self.originalName = originalName
            self.hashModifier = hashModifier
        }

        var transformerName: String? {
            for case .transformable(let name) in options.map(\.kind) { return name }
            return nil
        }
    }

    /// The options of a relationship.
    public final class Relationship: SchemaProperty, @unchecked Sendable {
        // @unchecked Sendable: immutable; key paths of properties capture nothing.

        /// A choice about a relationship.
        public struct Option: Hashable, Sendable {
            /// No two objects are related to the same one.
            public static var unique: Option { Option() }
        }

        /// The fate of the related objects if an object is deleted.
        public enum DeleteRule: String, Codable, Hashable, Sendable {
            case noAction, nullify, cascade, deny

            var rule: NSDeleteRule {
                switch self {
                case .noAction: .noActionDeleteRule
                case .nullify: .nullifyDeleteRule
                case .cascade: .cascadeDeleteRule
                case .deny: .denyDeleteRule
                }
            }
        }

        /// The choices.
        public let options: [Option]
        /// The fate of the related objects if an object is deleted.
        public let deleteRule: DeleteRule
        /// The smallest number of related objects; 0 for no limit.
        public let minimumModelCount: Int?
        /// The largest number of related objects; 0 for no limit.
        public let maximumModelCount: Int?
        /// The name in earlier versions of the schema.
        public let originalName: String?
        /// The relationship of the other class that leads back, if it is named on this side.
        public let inverseKeyPath: AnyKeyPath?
        /// A text that makes this version of the relationship differ from another one.
        public let hashModifier: String?

        /// Describes a relationship.
        ///
        /// - Parameters:
        ///   - options: The choices.
        ///   - deleteRule: The fate of the related objects if an object is deleted.
        ///   - minimumModelCount: The smallest number of related objects; 0 for no limit.
        ///   - maximumModelCount: The largest number of related objects; 0 for no limit.
        ///   - originalName: The name in earlier versions of the schema.
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
            self.originalName = originalName
            inverseKeyPath = inverse
            self.hashModifier = hashModifier
        }
    }

    /// Groups of properties whose values are together unique.
    public final class Unique<T: PersistentModel>: SchemaProperty, ConstraintMetadata, @unchecked Sendable {
        // @unchecked Sendable: immutable; key paths of properties capture nothing.
        let uniqueGroups: [[AnyKeyPath]]
        let indexGroups: [[AnyKeyPath]] = []

        /// Names the groups.
        ///
        /// - Parameter constraints: The groups.
        public init(_ constraints: [PartialKeyPath<T>]...) { uniqueGroups = constraints }
    }

    /// Groups of properties by which a store finds objects quickly.
    public final class Index<T: PersistentModel>: SchemaProperty, ConstraintMetadata, @unchecked Sendable {
        // @unchecked Sendable: immutable; key paths of properties capture nothing.

        /// The kind of an index, with its properties.
        public enum Types<Model: PersistentModel>: @unchecked Sendable {
            // @unchecked Sendable: key paths of properties capture nothing.
            /// An index in the order of the values.
            case binary([PartialKeyPath<Model>])
            /// An index of ranges. It is made as a binary one.
            case rtree([PartialKeyPath<Model>])
        }

        let uniqueGroups: [[AnyKeyPath]] = []
        let indexGroups: [[AnyKeyPath]]

        /// Names the groups of binary indexes.
        ///
        /// - Parameter indices: The groups.
        public init(_ indices: [PartialKeyPath<T>]...) { indexGroups = indices }

        /// Names the groups with the kinds of their indexes.
        ///
        /// - Parameter indices: The groups.
        public init(_ indices: Types<T>...) {
            indexGroups = indices.map { index in
                switch index {
                case .binary(let group), .rtree(let group): group
                }
            }
        }
    }
}
