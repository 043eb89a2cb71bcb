import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

/// A store's metadata: its UUID, and a property list in Apple's keys.
///
/// Unknown keys are kept as they are.
package struct StoreMetadata: @unchecked Sendable {
    // @unchecked Sendable: the values are of property-list types, and no code changes them in place.

    var uuid: String
    /// All values but the UUID, which has a separate column.
    var values: [String: Any]

    /// The keys that the framework writes; an application cannot remove them.
    package static let ownKeys: Set<String> = [
        NSStoreTypeKey, NSStoreUUIDKey, NSStoreModelVersionHashesKey, NSStoreModelVersionIdentifiersKey,
        NSPersistentStoreModelVersionChecksumKey, "NSStoreModelVersionHashesVersion", "NSStoreModelVersionHashesDigest",
        "NSPersistenceFrameworkVersion", "NSPersistenceMaximumFrameworkVersion", "_NSAutoVacuumLevel",
        historyBaselineKey, restorationKey, NSPersistentStoreDeferredLightweightMigrationOptionKey, EarlierModels.key,
    ]

    /// The last keys from before the history, by the name of the root entity: see ``HistoryBaseline``.
    package static let historyBaselineKey = "StrataHistoryBaseline"

    /// The mark of the last time when the contents of the file were replaced as a whole; a UUID, see ``ModelGuard``.
    package static let restorationKey = "StrataRestoration"

    /// The new metadata of a store when an application sets it: the framework's own keys stay as they are.
    package static func replacing(_ old: [String: Any], with new: [String: Any]) -> [String: Any] {
        var values = new
        // They describe one file, and may come from the metadata of another.
        values[historyBaselineKey] = nil
        values[restorationKey] = nil
        return values.merging(old.filter { ownKeys.contains($0.key) }) { $1 }
    }

    /// The framework version in files that are made here: the oldest of Apple's frameworks that wrote all of the keys.
    private static let frameworkVersion = 1344

    /// The metadata of a new store.
    init(newFor request: SQLiteStoreRequest) {
        uuid = request.newUUID
        let entities = request.schema.entities(inConfiguration: request.configuration)
        let hashes = Dictionary(entities.map { ($0.name, $0.versionHash) }) { _, last in last }
        values = [NSStoreTypeKey: NSSQLiteStoreType, "_NSAutoVacuumLevel": "2"]
        setModel(hashes, request.versionIdentifiers)
    }

    /// Notes the model that the rows fit.
    ///
    /// - Parameters:
    ///   - hashes: The version hashes of the entities that the store holds, by name.
    ///   - identifiers: The labels of the model's version.
    mutating func setModel(_ hashes: [String: Data], _ identifiers: [String]) {
        EarlierModels.note(from: versionHashes, to: hashes, in: &values)
        values[NSStoreModelVersionHashesKey] = hashes
        values["NSStoreModelVersionHashesVersion"] = 3
        values["NSStoreModelVersionHashesDigest"] = SchemaHashes.digest(of: hashes)
        values[NSPersistentStoreModelVersionChecksumKey] = SchemaHashes.checksum(of: hashes)
        values[NSStoreModelVersionIdentifiersKey] = identifiers
        values["NSPersistenceFrameworkVersion"] = Self.frameworkVersion
    }

    /// The version hashes of the model that the rows fit.
    var versionHashes: [String: Data] { values[NSStoreModelVersionHashesKey] as? [String: Data] ?? [:] }

    /// The mark of the last restoration; `nil` if there was none.
    var restoration: String? {
        get { values[Self.restorationKey] as? String }
        set { values[Self.restorationKey] = newValue }
    }

    /// Makes the metadata from the dictionary that the coordinator returns.
    init(dictionary: [String: Any], uuid: String) {
        self.uuid = uuid
        values = dictionary
        values[NSStoreUUIDKey] = nil
    }

    /// The dictionary that the coordinator returns.
    var dictionary: [String: Any] { values.merging([NSStoreUUIDKey: uuid]) { $1 } }

    // MARK: - In the database

    /// Reads the metadata.
    ///
    /// - Returns: `nil` if the database has none: it is no store.
    /// - Throws: `fileReadCorruptFile` (259) if it is damaged.
    init?(on connection: Connection, catalog: SQLCatalog, url: URL?) throws {
        guard catalog.hasColumn("Z_PLIST", in: "Z_METADATA"), catalog.hasColumn("Z_UUID", in: "Z_METADATA") else {
            return nil
        }
        let statement = try connection.statement("SELECT Z_UUID, Z_PLIST FROM Z_METADATA ORDER BY Z_VERSION LIMIT 1")
        guard try statement.step() else { throw SQLiteBoundary.damaged(url, "its metadata is missing.") }
        guard let uuid = statement[0].optionalString, !uuid.isEmpty,
            let values = PropertyListSerialization.dictionary(from: statement[1].data)
        else { throw SQLiteBoundary.damaged(url, "its metadata cannot be read.") }
        self.uuid = uuid
        self.values = values
    }

    /// Writes the metadata, in the transaction that is open.
    ///
    /// - Throws: `persistentStoreSave` (134030) if a value cannot be in a property list.
    func write(_ connection: Connection) throws {
        let data = try PropertyListSerialization.data(ofMetadata: values)
        let statement = try connection.statement(
            "INSERT OR REPLACE INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)"
        )
        try statement.bind(uuid, at: 1)
        try statement.bind(data, at: 2)
        try statement.run()
    }
}

extension SQLCatalog {
    /// Reads the tables and columns of a database.
    init(_ connection: Connection) throws(SQLiteError) {
        let statement = try connection.statement(
            """
            SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
            WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
            """
        )
        var columns: [String: [String]] = [:]
        while try statement.step() { columns[statement[0].string, default: []].append(statement[1].string) }
        self.init(columns)
    }
}
