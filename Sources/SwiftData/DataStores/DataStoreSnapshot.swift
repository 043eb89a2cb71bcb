/// A value in a snapshot.
public typealias DataStoreSnapshotValue = Codable & Sendable

/// The values of an object at one time, in a form that a store can keep.
///
/// ``DefaultSnapshot`` fits all classes. A type of your own is used by its coded form: one key
/// ``DataStoreSnapshotCodingKey/persistentIdentifier``, and one key for each stored property, which is named as the property.
/// A relationship is a `PersistentIdentifier`, or an array of them.
///
/// ```swift
/// struct TripSnapshot: DataStoreSnapshot {
///     var persistentIdentifier: PersistentIdentifier
///     var name: String
///
///     init(from: any BackingData, relatedBackingDatas: inout [PersistentIdentifier: any BackingData]) {
///         guard let trip = from as? any BackingData<Trip>, let identifier = trip.persistentModelID else {
///             fatalError("this store keeps trips")
///         }
///         (persistentIdentifier, name) = (identifier, trip.getValue(forKey: \.name))
///     }
///
///     func copy(
///         persistentIdentifier: PersistentIdentifier,
///         remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]?
///     ) -> TripSnapshot {
///         var copy = self
///         copy.persistentIdentifier = persistentIdentifier
///         return copy
///     }
/// }
/// ```
public protocol DataStoreSnapshot: Decodable, Encodable, Sendable {
    /// The identifier of the object.
    var persistentIdentifier: PersistentIdentifier { get }

    /// Takes the values of an object. It is called on the queue of the object's context.
    ///
    /// - Parameters:
    ///   - from: The values, a `BackingData` of the object's class.
    ///   - relatedBackingDatas: The values of the other objects of the save, by their identifiers. A snapshot may add those
    ///     that it has read.
    init(from: any BackingData, relatedBackingDatas: inout [PersistentIdentifier: any BackingData])

    /// The same values with other identifiers.
    ///
    /// - Parameters:
    ///   - persistentIdentifier: The identifier of the object.
    ///   - remappedIdentifiers: The identifiers by which those of related objects are replaced; `nil` if they stay.
    /// - Returns: The snapshot.
    func copy(
        persistentIdentifier: PersistentIdentifier,
        remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]?
    ) -> Self
}

/// A key in the coded form of a snapshot.
///
/// ```swift
/// func encode(_ identifier: PersistentIdentifier, _ name: String, to encoder: any Encoder) throws {
///     var values = encoder.container(keyedBy: DataStoreSnapshotCodingKey.self)
///     try values.encode(identifier, forKey: .persistentIdentifier)
///     try values.encode(name, forKey: .modeledProperty("name"))
/// }
/// ```
public enum DataStoreSnapshotCodingKey: CodingKey {
    /// The identifier of the object.
    case persistentIdentifier
    /// A stored property, with its name.
    case modeledProperty(String)

    /// The text of the key: the name of the property, or `persistentIdentifier`.
    public var stringValue: String {
        switch self {
        case .persistentIdentifier: "persistentIdentifier"
        case .modeledProperty(let name): name
        }
    }

    /// Makes the key of a text.
    ///
    /// - Parameter stringValue: The name of a property, or `persistentIdentifier`.
    public init?(stringValue: String) {
        self = stringValue == "persistentIdentifier" ? .persistentIdentifier : .modeledProperty(stringValue)
    }

    /// Always `nil`: a key has a text.
    public var intValue: Int? { nil }

    /// Makes no key.
    ///
    /// - Parameter intValue: Any number.
    public init?(intValue: Int) { nil }
}
