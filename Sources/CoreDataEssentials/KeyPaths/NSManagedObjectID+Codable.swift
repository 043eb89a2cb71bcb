// Foundation's `#Predicate` captures constants that are `Codable` and `Sendable`. IDs are, so a predicate can contain
// `$0.city?.objectID == id`. Objects are not, because they are not `Sendable`.

extension CodingUserInfoKey {
    /// The key, in a decoder's `userInfo`, of the coordinator for which IDs are decoded.
    public static let persistentStoreCoordinator = CodingUserInfoKey(staticName: "NSPersistentStoreCoordinator")

    private init(staticName: String) {
        // The initialiser never fails.
        self = CodingUserInfoKey(rawValue: staticName).unsafelyUnwrapped
    }
}

/// A protocol that lets decoding return the one existing ID of a row.
///
/// ```swift
/// let data = try JSONEncoder().encode([id])
/// let decoder = JSONDecoder()
/// decoder.userInfo[.persistentStoreCoordinator] = coordinator
/// let ids = try decoder.decode([NSManagedObjectID].self, from: data)
/// ```
public protocol ObjectIDDecoding {}

extension NSManagedObjectID: ObjectIDDecoding {}

extension ObjectIDDecoding where Self: NSManagedObjectID {
    /// Finds the ID that was encoded.
    ///
    /// ```swift
    /// let data = try JSONEncoder().encode(id)
    /// let decoder = JSONDecoder()
    /// decoder.userInfo[.persistentStoreCoordinator] = coordinator
    /// let same = try decoder.decode(NSManagedObjectID.self, from: data)
    /// ```
    ///
    /// - Parameter decoder: The decoder to read from, with the coordinator under `persistentStoreCoordinator` in its
    ///   `userInfo`.
    /// - Throws: `DecodingError.dataCorrupted` if the decoder has no coordinator, or the coordinator has no such store or
    ///   entity. A row need not exist.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let url = try container.decode(URL.self)
        guard let coordinator = decoder.userInfo[.persistentStoreCoordinator] as? NSPersistentStoreCoordinator else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "To decode an object ID, set userInfo[.persistentStoreCoordinator] of the decoder."
            )
        }
        guard let id = coordinator.managedObjectID(forURIRepresentation: url) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "The coordinator has no store or no entity for \(url.absoluteString)."
            )
        }
        // The class is final, so `Self` is this class.
        self = id as! Self
    }
}

extension NSManagedObjectID: Codable {
    /// Encodes the ID as its URI.
    ///
    /// - Parameter encoder: The encoder to write to.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(uriRepresentation())
    }
}
