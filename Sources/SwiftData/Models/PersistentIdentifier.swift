import CoreData
import Foundation

/// The identity of a model object: its store, its entity and its key.
///
/// It is temporary until the object is saved for the first time. It can be sent between contexts, encoded and compared.
/// Encoded identifiers have the form of SwiftData: one key `implementation`, with the parts below it.
///
/// ```swift
/// let identifier = trip.persistentModelID
/// let text = try JSONEncoder().encode(identifier)
/// let same = try JSONDecoder().decode(PersistentIdentifier.self, from: text)
/// ```
public struct PersistentIdentifier: Hashable, Identifiable, Comparable, Codable, Sendable {
    /// An opaque value that is equal for equal identifiers.
    ///
    /// ```swift
    /// let byID = Dictionary(grouping: try context.fetch(FetchDescriptor<Trip>()), by: \.persistentModelID.id)
    /// ```
    public struct ID: Hashable, Sendable {
        fileprivate let storeIdentifier: String?
        fileprivate let entityName: String
        fileprivate let primaryKey: String
    }

    /// An opaque value that is equal for equal identifiers.
    public let id: ID
    /// Whether the object was not saved yet.
    public let isTemporary: Bool

    /// The name of the object's entity.
    public var entityName: String { id.entityName }

    /// The identifier of the store; `nil` while the identifier is temporary.
    public var storeIdentifier: String? { id.storeIdentifier }

    var primaryKey: String { id.primaryKey }

    init(store: String?, entity: String, key: String, isTemporary: Bool = false) {
        id = ID(storeIdentifier: store, entityName: entity, primaryKey: key)
        self.isTemporary = isTemporary
    }

    /// The identifier of an object that no context has.
    static func temporary(entityName: String) -> PersistentIdentifier {
        PersistentIdentifier(store: nil, entity: entityName, key: "t\(UUID().uuidString)", isTemporary: true)
    }

    init(_ objectID: NSManagedObjectID) {
        if let store = objectID.persistentStore {
            if let store = store as? SnapshotStore {
                self = store.identifier(of: objectID)
            } else {
                self.init(store: store.identifier, entity: objectID.entity.name ?? "", key: "p\(objectID.key)")
            }
            return
        }
        let uri = objectID.uriRepresentation()
        self.init(
            store: objectID.isTemporaryID ? nil : uri.host,
            entity: objectID.entity.name ?? "",
            key: uri.lastPathComponent,
            isTemporary: objectID.isTemporaryID
        )
    }

    /// Makes an identifier of an object in a custom store.
    ///
    /// - Parameters:
    ///   - storeIdentifier: The identifier of the store.
    ///   - entityName: The name of the object's entity.
    ///   - primaryKey: The key of the object in the store. It is kept as text.
    /// - Returns: An identifier that is not temporary.
    /// - Throws: Nothing today; Apple's function can throw.
    public static func identifier(
        for storeIdentifier: String,
        entityName: String,
        primaryKey: some Codable & Hashable
    ) throws -> PersistentIdentifier {
        PersistentIdentifier(store: storeIdentifier, entity: entityName, key: "\(primaryKey)", isTemporary: false)
    }

    var uri: String { "x-coredata://\(storeIdentifier ?? "")/\(entityName)/\(primaryKey)" }

    /// Compares store, entity and key.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: PersistentIdentifier, rhs: PersistentIdentifier) -> Bool { lhs.id == rhs.id }

    /// Hashes store, entity and key.
    ///
    /// - Parameter hasher: The hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }

    /// Orders by store, entity and key; keys that are numbers have the order of the numbers, and new objects come last.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether the first comes before the second.
    public static func < (lhs: PersistentIdentifier, rhs: PersistentIdentifier) -> Bool {
        if lhs.isTemporary != rhs.isTemporary { return rhs.isTemporary }
        if lhs.storeIdentifier != rhs.storeIdentifier {
            return (lhs.storeIdentifier ?? "") < (rhs.storeIdentifier ?? "")
        }
        if lhs.entityName != rhs.entityName { return lhs.entityName < rhs.entityName }
        if let left = lhs.number, let right = rhs.number { return left < right }
        return lhs.primaryKey < rhs.primaryKey
    }

    private var number: Int64? { Int64(primaryKey.drop { $0 == "p" || $0 == "t" }) }

    // MARK: - Codable

    private enum Outer: String, CodingKey { case implementation }

    private enum Inner: String, CodingKey {
        case primaryKey, uriRepresentation, isTemporary, storeIdentifier, entityName
    }

    /// Reads an identifier in the form of SwiftData.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: The errors of the decoder.
    public init(from decoder: any Decoder) throws {
        let parts = try decoder.container(keyedBy: Outer.self).nestedContainer(
            keyedBy: Inner.self,
            forKey: .implementation
        )
        self.init(
            store: try parts.decodeIfPresent(String.self, forKey: .storeIdentifier),
            entity: try parts.decode(String.self, forKey: .entityName),
            key: try parts.decode(String.self, forKey: .primaryKey),
            isTemporary: try parts.decode(Bool.self, forKey: .isTemporary)
        )
    }

    /// Writes the identifier in the form of SwiftData.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var outer = encoder.container(keyedBy: Outer.self)
        var parts = outer.nestedContainer(keyedBy: Inner.self, forKey: .implementation)
        try parts.encode(primaryKey, forKey: .primaryKey)
        try parts.encode(uri, forKey: .uriRepresentation)
        try parts.encode(isTemporary, forKey: .isTemporary)
        try parts.encodeIfPresent(storeIdentifier, forKey: .storeIdentifier)
        try parts.encode(entityName, forKey: .entityName)
    }
}
