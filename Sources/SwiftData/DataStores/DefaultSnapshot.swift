import CoreData
import Foundation

/// The values of an object of any class.
///
/// It can be encoded and decoded, for instance by `JSONEncoder`. A property that the coded form lacks gets the initial value
/// that the class declares.
///
/// ```swift
/// let data = try JSONEncoder().encode(snapshots)
/// let same = try JSONDecoder().decode([DefaultSnapshot].self, from: data)
/// ```
public struct DefaultSnapshot: DataStoreSnapshot, @unchecked Sendable {
    // @unchecked Sendable: values of attributes are immutable, but their types do not say that they are `Sendable`.

    /// The identifier of the object.
    public let persistentIdentifier: PersistentIdentifier
    /// The values of the attributes that have one; those of transformable attributes are the transformers' data.
    var attributes: [String: any Codable] = [:]
    /// The objects of the to-one relationships that have one.
    var toOne: [String: PersistentIdentifier] = [:]
    /// The members of the to-many relationships.
    var toMany: [String: [PersistentIdentifier]] = [:]
    /// The property that could not be read, with the reason; `nil` if all were read.
    private(set) var unread: String?

    /// Takes the values of an object.
    ///
    /// - Parameters:
    ///   - backingData: The values, of a backing that this library has made.
    ///   - relatedBackingDatas: The values of other objects, which are not used.
    public init(
        from backingData: any BackingData,
        relatedBackingDatas: inout [PersistentIdentifier: any BackingData]
    ) {
        guard let backing = backingData as? ModelState else {
            fatalError("SwiftData: a snapshot was made of a backing that was not made by this library.")
        }
        self.init(backing, Self.record(of: backingData))
    }

    private static func record<Backing: BackingData>(of backing: Backing) -> ModelRecord {
        ModelRecord.of(Backing.Model.self)
    }

    private init(_ backing: ModelState, _ record: ModelRecord) {
        persistentIdentifier = backing.identifier
        for property in record.properties {
            switch property.kind {
            case .attribute(let form):
                attributes[property.name] = attribute(property, of: backing).flatMap { form.coded($0) }
            case .toOne:
                toOne[property.name] = Self.identifiers(related(property, of: backing)).first
            case .toMany:
                toMany[property.name] = Self.identifiers(related(property, of: backing)).sorted()
            }
        }
    }

    private mutating func attribute(_ property: ModelProperty, of backing: ModelState) -> Any? {
        guard let object = backing.object else { return backing.values[property.name] }
        do {
            let value = try property.value(of: object)
            if object.isFault { unread = property.name }
            return value
        } catch {
            unread = "\(property.name): \(error)"
            return nil
        }
    }

    private mutating func related(_ property: ModelProperty, of backing: ModelState) -> Any? {
        guard let object = backing.object else { return backing.values[property.name] }
        let value = object.value(forKey: property.name)
        var isUnread = object.isFault
        if case .toMany = property.kind { isUnread = isUnread || object.hasFault(forRelationshipNamed: property.name) }
        if isUnread { unread = property.name }
        return value
    }

    private static func identifiers(_ value: Any?) -> [PersistentIdentifier] {
        switch value {
        case let object as NSManagedObject: [identifier(object)]
        case let objects as Set<NSManagedObject>: objects.map { identifier($0) }
        case let model as any PersistentModel: [model.persistentModelID]
        case let optional as any OptionalValue: optional.wrappedValue.map { identifiers($0) } ?? []
        case let models as [Any]: models.compactMap { ($0 as? any PersistentModel)?.persistentModelID }
        default: []
        }
    }

    /// The identifier by which the program knows an object: a new one has the temporary identifier of its model object.
    private static func identifier(_ object: NSManagedObject) -> PersistentIdentifier {
        if let model = (object.managedObjectContext as? ManagedContext)?.registeredModel(of: object) {
            return model.backing.identifier
        }
        return PersistentIdentifier(object.objectID)
    }

    private init(
        _ identifier: PersistentIdentifier,
        _ attributes: [String: any Codable],
        _ toOne: [String: PersistentIdentifier],
        _ toMany: [String: [PersistentIdentifier]]
    ) {
        persistentIdentifier = identifier
        self.attributes = attributes
        self.toOne = toOne
        self.toMany = toMany
    }

    /// The same values with other identifiers.
    ///
    /// - Parameters:
    ///   - persistentIdentifier: The identifier of the object.
    ///   - remappedIdentifiers: The identifiers by which those of related objects are replaced; `nil` if they stay.
    /// - Returns: The snapshot.
    public func copy(
        persistentIdentifier: PersistentIdentifier,
        remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]? = [:]
    ) -> DefaultSnapshot {
        let remapped = remappedIdentifiers ?? [:]
        return DefaultSnapshot(
            persistentIdentifier,
            attributes,
            toOne.mapValues { remapped[$0] ?? $0 },
            toMany.mapValues { $0.map { remapped[$0] ?? $0 } }
        )
    }

    // MARK: - Codable

    /// The classes that decoded snapshots may have: those of the container whose store is being asked.
    @TaskLocal static var schema: Schema?

    /// Reads a snapshot.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError.dataCorrupted` if the program has no class of the identifier's entity, or several of which
    ///   no container names the right one. `DecodingError.valueNotFound` for a missing property that is not optional and has
    ///   no initial value. The errors of the decoder.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: DataStoreSnapshotCodingKey.self)
        let identifier = try container.decode(PersistentIdentifier.self, forKey: .persistentIdentifier)
        self.init(identifier, [:], [:], [:])
        let record = try Self.record(named: identifier.entityName, container)
        for property in record.properties {
            let key = DataStoreSnapshotCodingKey.modeledProperty(property.name)
            switch property.kind {
            case .attribute(let form):
                if let value = try form.decoded(property.plainType, container, key) {
                    attributes[property.name] = value
                } else if !property.isOptional, form.emptyValue == nil {
                    guard !container.contains(key), let initial = property.defaultValue.flatMap({ form.coded($0) })
                    else {
                        throw DecodingError.valueNotFound(
                            property.plainType,
                            .init(
                                codingPath: container.codingPath + [key],
                                debugDescription: "SwiftData: \(record.type).\(property.name) has no value"
                            )
                        )
                    }
                    attributes[property.name] = initial
                }
            case .toOne:
                toOne[property.name] = try container.decodeIfPresent(PersistentIdentifier.self, forKey: key)
            case .toMany:
                toMany[property.name] = try container.decodeIfPresent([PersistentIdentifier].self, forKey: key) ?? []
            }
        }
    }

    private static func record(
        named name: String,
        _ container: KeyedDecodingContainer<DataStoreSnapshotCodingKey>
    ) throws -> ModelRecord {
        if let record = schema?.records[name] { return record }
        let known = ModelRecord.named(name)
        guard known.count == 1, let record = known.first else {
            throw DecodingError.dataCorruptedError(
                forKey: .persistentIdentifier,
                in: container,
                debugDescription: known.isEmpty
                    ? "SwiftData: no class with the entity \(name) is known. Make its Schema first."
                    : "SwiftData: several classes have the entity \(name). Decode while a container asks the store."
            )
        }
        return record
    }

    /// Writes the snapshot.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: DataStoreSnapshotCodingKey.self)
        try container.encode(persistentIdentifier, forKey: .persistentIdentifier)
        for (name, value) in attributes.sorted(by: { $0.key < $1.key }) {
            try container.encode(value, forKey: .modeledProperty(name))
        }
        for (name, value) in toOne.sorted(by: { $0.key < $1.key }) {
            try container.encode(value, forKey: .modeledProperty(name))
        }
        for (name, value) in toMany.sorted(by: { $0.key < $1.key }) {
            try container.encode(value, forKey: .modeledProperty(name))
        }
    }
}

extension ModelProperty {
    /// The type of the property's values if there are any.
    fileprivate var plainType: Any.Type {
        let declared = Swift.type(of: keyPath).valueType
        return (declared as? any OptionalValue.Type)?.wrapped ?? declared
    }
}

extension StoredForm {
    /// The attribute that describes a transformer; `nil` for other forms.
    private var transforming: NSAttributeDescription? {
        guard case .transformable(let name, _) = self else { return nil }
        let attribute = NSAttributeDescription()
        attribute.valueTransformerName = name
        return attribute
    }

    /// A value in the form of a snapshot; `nil` for no value.
    fileprivate func coded(_ value: Any) -> (any Codable)? {
        if let optional = value as? any OptionalValue { return optional.wrappedValue.flatMap { coded($0) } }
        if let transforming { return transforming.archived(value) }
        return value as? any Codable
    }

    /// The value of a property in a coded snapshot; `nil` for no value.
    fileprivate func decoded(
        _ type: Any.Type,
        _ container: KeyedDecodingContainer<DataStoreSnapshotCodingKey>,
        _ key: DataStoreSnapshotCodingKey
    ) throws -> (any Codable)? {
        guard let codable = (transforming == nil ? type : Data.self) as? any Codable.Type else { return nil }
        func value<Value: Codable>(_ type: Value.Type) throws -> (any Codable)? {
            try container.decodeIfPresent(type, forKey: key)
        }
        return try value(codable)
    }

    /// The value of a managed object for a value of a snapshot.
    ///
    /// - Throws: `Unreadable` if a transformer refuses its data, and the error of the encoder.
    func stored(snapshotValue value: any Codable) throws -> Any? {
        guard let transforming else { return try stored(value) }
        guard let data = value as? Data, let object = transforming.unarchived(data) else {
            throw Unreadable(description: "the transformer \(transforming.valueTransformerName ?? "") refuses its data")
        }
        return object
    }
}
