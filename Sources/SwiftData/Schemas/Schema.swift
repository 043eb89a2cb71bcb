import CoreData
import Foundation

/// The classes whose objects a container keeps, with what the store has to know of them.
///
/// A schema is made of classes. One that is made of entities by hand, or decoded, can be compared, encoded and looked
/// at, but has no classes whose objects a container could keep.
///
/// ```swift
/// let schema = Schema([Trip.self], version: Schema.Version(2, 0, 0))
/// print(schema.entitiesByName.keys.sorted())
/// ```
public final class Schema: Codable, Hashable, CustomDebugStringConvertible, @unchecked Sendable {
    // @unchecked Sendable: immutable; the entities and the model are not changed after they were made.

    /// A version of a schema.
    ///
    /// ```swift
    /// let version = Schema.Version(1, 2, 0)
    /// print(version < Schema.Version(2, 0, 0), version)  // true 1.2.0
    /// ```
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
        ///
        /// - Parameters:
        ///   - lhs: One value.
        ///   - rhs: Another one.
        /// - Returns: Whether the first comes before the second.
        public static func < (lhs: Version, rhs: Version) -> Bool {
            (lhs.major, lhs.minor, lhs.patch) < (rhs.major, rhs.minor, rhs.patch)
        }
    }

    /// The facts that a macro has found about one stored property.
    ///
    /// ```swift
    /// let metadata = Schema.PropertyMetadata(name: "name", keypath: \Trip.name, metadata: Schema.Attribute(.unique))
    /// ```
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
    /// The version of the form in which the schema was encoded.
    public let encodingVersion: Version
    /// The version of the form in which schemas are encoded.
    public static let schemaEncodingVersion = Version(1, 0, 0)
    /// The entities, by name, with those that others inherit from before them.
    public let entities: [Entity]
    /// The entities, by name.
    public let entitiesByName: [String: Entity]
    let records: [String: ModelRecord]
    let model: NSManagedObjectModel

    /// Makes a schema without entities.
    public convenience init() { self.init([any PersistentModel.Type]()) }

    /// Makes the schema of some classes, of those from which they inherit, and of all that their relationships reach.
    ///
    /// Classes that inherit from one of them have to be named. If two classes have the same name, or an inverse leads
    /// elsewhere, then the program stops with both names.
    ///
    /// - Parameters:
    ///   - types: The classes.
    ///   - version: The version, by which a migration plan names it.
    public init(_ types: [any PersistentModel.Type], version: Version = Version(1, 0, 0)) {
        let records = Self.reachable(from: types)
        let roots = SchemaEntities(records).roots()
        (self.version, self.records, encodingVersion) = (version, records, Self.schemaEncodingVersion)
        entities = Self.flat(roots)
        entitiesByName = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        do {
            model = try SchemaModel(entities: entities, version: version).model()
        } catch {
            fatalError("SwiftData: \(error)")
        }
    }

    /// Makes the schema of some classes, and of all that their relationships reach.
    ///
    /// - Parameters:
    ///   - types: The classes.
    ///   - version: The version, by which a migration plan names it.
    public convenience init(_ types: any PersistentModel.Type..., version: Version = Version(1, 0, 0)) {
        self.init(types, version: version)
    }

    /// Makes a schema of entities.
    ///
    /// If a relationship leads to no entity of the schema, or a type cannot be stored, then the program stops with the
    /// name of the property.
    ///
    /// - Parameters:
    ///   - entities: The entities; those that inherit from them belong to the schema as well.
    ///   - version: The version.
    public init(_ entities: Entity..., version: Version = Version(1, 0, 0)) {
        let entities = Self.flat(entities)
        (self.version, records, encodingVersion) = (version, [:], Self.schemaEncodingVersion)
        self.entities = entities
        entitiesByName = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        do {
            model = try SchemaModel(entities: entities, version: version).model()
        } catch {
            fatalError("SwiftData: \(error)")
        }
    }

    /// The entities with those that inherit from them, each once.
    private static func flat(_ roots: [Entity]) -> [Entity] {
        var (flat, names): ([Entity], Set<String>) = ([], [])
        func add(_ entity: Entity) {
            guard names.insert(entity.name).inserted else { return }
            flat.append(entity)
            entity.subentities.sorted { $0.name < $1.name }.forEach(add)
        }
        roots.sorted { $0.name < $1.name }.forEach(add)
        return flat
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
            if let other = record.superrecord { open.append(other.type) }
            for property in record.ownProperties {
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
    ///
    /// - Parameter type: The class.
    /// - Returns: The name of the class, without its module and the types around it.
    public static func entityName<T: PersistentModel>(for type: T.Type) -> String { ModelRecord.of(type).entityName }

    /// The entity of a class.
    ///
    /// - Parameter type: The class.
    /// - Returns: The entity; `nil` if the schema has none for the class.
    public func entity<T: PersistentModel>(for type: T.Type) -> Entity? {
        mismatch(of: type) == nil ? entitiesByName[Self.entityName(for: type)] : nil
    }

    // MARK: - Codable

    private enum CodingKeys: String, CodingKey { case version, encodingVersion, entities }

    /// Reads a schema, which has entities, and no classes.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError.dataCorrupted` if the program lacks a type of a property, or a relationship leads to no
    ///   entity; and the errors of the decoder.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        version = try container.decode(Version.self, forKey: .version)
        encodingVersion = try container.decode(Version.self, forKey: .encodingVersion)
        entities = Self.flat(try container.decode([Entity].self, forKey: .entities))
        entitiesByName = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        records = [:]
        do {
            model = try SchemaModel(entities: entities, version: version).model()
        } catch {
            throw DecodingError.dataCorruptedError(
                forKey: .entities,
                in: container,
                debugDescription: "SwiftData: \(error)"
            )
        }
    }

    /// Writes the version and the entities.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(version, forKey: .version)
        try container.encode(Self.schemaEncodingVersion, forKey: .encodingVersion)
        try container.encode(entities.filter { $0.superentity == nil }, forKey: .entities)
    }

    /// Writes the schema into a file, as JSON.
    ///
    /// - Parameter toURL: The file, which is replaced.
    /// - Throws: The errors of the encoder and of the file system.
    public func save(to toURL: URL) throws { try JSONEncoder().encode(self).write(to: toURL, options: .atomic) }

    /// Reads a schema that ``save(to:)`` has written.
    ///
    /// - Parameter fromURL: The file.
    /// - Returns: The schema, which has entities, and no classes.
    /// - Throws: The errors of ``init(from:)`` and of the file system.
    public static func load(from fromURL: URL) throws -> Schema {
        try JSONDecoder().decode(Schema.self, from: Data(contentsOf: fromURL))
    }

    // MARK: - Comparing

    /// Compares the versions and the entities.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: Schema, rhs: Schema) -> Bool {
        lhs === rhs || lhs.version == rhs.version && lhs.entitiesByName == rhs.entitiesByName
    }

    /// Hashes the version and the names of the entities.
    ///
    /// - Parameter hasher: The hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(version)
        hasher.combine(Set(entitiesByName.keys))
    }

    /// The version and the names of the entities.
    public var debugDescription: String { "Schema(\(version): \(entities.map(\.name).joined(separator: ", ")))" }
}
