import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows

/// A store's metadata: its UUID, and a property list in Apple's keys.
package struct StoreMetadata: @unchecked Sendable {
    // @unchecked Sendable: the values are of property-list types, which nobody mutates in place.

    var uuid: String
    /// All but the UUID.
    var values: [String: Any]

    /// The type of the store, as metadata and descriptions name it.
    package static let storeType = "PostgreSQL"

    /// The version of the layout of tables; a higher one is refused.
    static let format: Int64 = 1

    /// The keys that the framework writes; an application cannot remove them.
    private static let ownKeys: Set<String> = [
        NSStoreTypeKey, NSStoreUUIDKey, NSStoreModelVersionHashesKey, NSStoreModelVersionIdentifiersKey,
        NSPersistentStoreModelVersionChecksumKey, "NSStoreModelVersionHashesVersion", "NSStoreModelVersionHashesDigest",
    ]

    /// What a store keeps when an application sets its metadata: the framework's own keys stay as they are.
    package static func replacing(_ old: [String: Any], with new: [String: Any]) -> [String: Any] {
        new.merging(old.filter { ownKeys.contains($0.key) }) { $1 }
    }

    /// The metadata of a new store.
    init(newFor request: PostgreSQLStoreRequest) {
        uuid = request.newUUID
        let entities = request.schema.entities(inConfiguration: request.configuration)
        let hashes = Dictionary(entities.map { ($0.name, $0.versionHash) }) { _, last in last }
        values = [
            NSStoreTypeKey: Self.storeType,
            NSStoreModelVersionHashesKey: hashes,
            "NSStoreModelVersionHashesVersion": 3,
            "NSStoreModelVersionHashesDigest": SchemaHashes.digest(of: hashes),
            NSPersistentStoreModelVersionChecksumKey: SchemaHashes.checksum(of: hashes),
            NSStoreModelVersionIdentifiersKey: request.versionIdentifiers,
        ]
    }

    /// As the coordinator shows it.
    init(dictionary: [String: Any], uuid: String) {
        self.uuid = uuid
        values = dictionary
        values[NSStoreUUIDKey] = nil
    }

    /// As the coordinator shows it.
    package var dictionary: [String: Any] { values.merging([NSStoreUUIDKey: uuid]) { $1 } }

    /// The version hashes of the model that the rows fit.
    var versionHashes: [String: Data] { values[NSStoreModelVersionHashesKey] as? [String: Data] ?? [:] }

    // MARK: - In the database

    /// Reads the metadata; `nil` if there is no store.
    ///
    /// - Throws: `fileReadCorruptFile` (259) if it is damaged, `persistentStoreOpen` (134080) for a later format.
    static func read(_ connection: Connection, _ place: String) throws -> StoreMetadata? {
        let table = try connection.query("SELECT pg_catalog.to_regclass('strata_store')::text")
        guard table.rowCount > 0, !table[0].isNull(0) else { return nil }
        let result = try connection.query("SELECT format, uuid, metadata FROM strata_store")
        guard result.rowCount == 1 else { throw PostgreSQLBoundary.damaged(place, "its metadata is missing.") }
        guard result[0].int64(0) <= format else {
            throw CocoaError(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "The store \(place) was made by a later version of Strata."]
            )
        }
        let uuid = result[0].string(1)
        guard !uuid.isEmpty,
            let list = try? PropertyListSerialization.propertyList(from: result[0].data(2), format: nil),
            let values = list as? [String: Any]
        else { throw PostgreSQLBoundary.damaged(place, "its metadata cannot be read.") }
        return StoreMetadata(dictionary: values, uuid: uuid)
    }

    /// - Throws: `persistentStoreSave` (134030) if a value cannot be in a property list.
    func archived() throws -> Data {
        guard PropertyListSerialization.propertyList(values, isValidFor: .binary),
            let data = try? PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0)
        else {
            throw CocoaError(
                .persistentStoreSave,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store's metadata cannot be written: all values must be of property-list types."
                ]
            ).marked(.request)
        }
        return data
    }

    /// Writes the metadata, in the transaction that is open.
    func write(_ connection: Connection) throws {
        try connection.query(
            "UPDATE strata_store SET uuid = $1, metadata = $2",
            [.text(uuid), .bytea(try archived())]
        )
    }
}
