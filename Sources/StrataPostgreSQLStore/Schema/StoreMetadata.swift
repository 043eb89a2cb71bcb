import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// A store's metadata: its UUID, and a property list with Apple's keys.
package struct StoreMetadata: @unchecked Sendable {
    // @unchecked Sendable: the values are of property-list types, which are never changed in place.

    var uuid: String
    /// The form of the tables: see ``StoreFormat``.
    private(set) var format = StoreFormat.current
    /// The property list, without the UUID.
    var values: [String: Any]

    /// The name of the store type in metadata and descriptions.
    package static let storeType = "PostgreSQL"

    /// The keys that the framework writes; an application cannot remove them.
    private static let ownKeys: Set<String> = [
        NSStoreTypeKey, NSStoreUUIDKey, NSStoreModelVersionHashesKey, NSStoreModelVersionIdentifiersKey,
        NSPersistentStoreModelVersionChecksumKey, "NSStoreModelVersionHashesVersion", "NSStoreModelVersionHashesDigest",
        tablesKey, namesKey, portableKey, StoreGenerations.key, EarlierModels.key,
    ]

    /// The key for the digest of the tables: see ``tables``.
    private static let tablesKey = "StrataTables"

    /// The key for the names of the tables: see ``tableNames``.
    private static let namesKey = "StrataTableNames"

    /// The key that only the metadata of portable stores has: see ``isPortable``.
    private static let portableKey = "StrataPortable"

    /// The metadata of a store after an application has set it: the framework's own entries stay as they are.
    package static func replacing(_ old: [String: Any], with new: [String: Any]) -> [String: Any] {
        var new = new
        // They are about the tables of one store, and the new values may come from another one.
        new[StoreGenerations.key] = nil
        return new.merging(old.filter { ownKeys.contains($0.key) }) { $1 }
    }

    /// The metadata of a new store.
    init(newFor request: PostgreSQLStoreRequest, _ mapping: SQLMapping) {
        uuid = request.newUUID
        let entities = request.schema.entities(inConfiguration: request.configuration)
        values = [NSStoreTypeKey: Self.storeType]
        setModel(
            Dictionary(entities.map { ($0.name, $0.versionHash) }) { _, last in last },
            request.versionIdentifiers
        )
        setTables(mapping)
    }

    /// The digest of the tables that the store was made or migrated with; `nil` if it is unknown.
    ///
    /// Version hashes do not include names and folded texts that user info asks for.
    var tables: Data? { values[Self.tablesKey] as? Data }

    /// The names of the store's tables and sequences, without its bookkeeping tables; `nil` if they are unknown.
    ///
    /// Other objects in the schema do not belong to the store.
    var tableNames: [String]? { values[Self.namesKey] as? [String] }

    /// Whether the store relies on nothing but rows, unique keys and sequences: see ``ServerForm/portable``.
    var isPortable: Bool { values[Self.portableKey] as? Bool ?? false }

    /// The numbers of the tables of a portable store.
    var generations: StoreGenerations {
        // ``values(in:)`` refuses others.
        get { StoreGenerations(in: values) ?? StoreGenerations() }
        set { values[StoreGenerations.key] = newValue.propertyList }
    }

    /// The metadata of a copy that has only the tables that count.
    var withoutOtherTables: StoreMetadata {
        var copy = self
        copy.generations.pending = nil
        copy.generations.leftovers = []
        copy.generations.schemas = []
        return copy
    }

    /// Notes that the store is portable.
    mutating func setPortable() { values[Self.portableKey] = true }

    /// Notes the tables of the store.
    mutating func setTables(_ mapping: SQLMapping) {
        values[Self.tablesKey] = PostgreSQLSchema.digest(mapping)
        values[Self.namesKey] = PostgreSQLSchema.names(mapping)
    }

    /// Notes the version of the model that the rows fit.
    mutating func setModel(_ hashes: [String: Data], _ identifiers: [String]) {
        EarlierModels.note(from: versionHashes, to: hashes, in: &values)
        values[NSStoreModelVersionHashesKey] = hashes
        values["NSStoreModelVersionHashesVersion"] = 3
        values["NSStoreModelVersionHashesDigest"] = SchemaHashes.digest(of: hashes)
        values[NSPersistentStoreModelVersionChecksumKey] = SchemaHashes.checksum(of: hashes)
        values[NSStoreModelVersionIdentifiersKey] = identifiers
    }

    /// Takes metadata in the form that the coordinator shows.
    init(dictionary: [String: Any], uuid: String) {
        self.uuid = uuid
        values = dictionary
        values[NSStoreUUIDKey] = nil
    }

    /// The metadata in the form that the coordinator shows.
    package var dictionary: [String: Any] { values.merging([NSStoreUUIDKey: uuid]) { $1 } }

    /// The version hashes of the model that the rows fit.
    var versionHashes: [String: Data] { values[NSStoreModelVersionHashesKey] as? [String: Data] ?? [:] }

    // MARK: - In the database

    /// Reads the metadata; `nil` if there is no store, or one that was made by hand and not opened yet.
    ///
    /// - Parameters:
    ///   - connection: The connection that reads.
    ///   - place: The name of the store in messages.
    ///   - target: Where the store is, if the session joins ``StoreSessions``; `nil` otherwise.
    /// - Returns: The metadata.
    /// - Throws: `fileReadCorruptFile` (259) if it is damaged, `persistentStoreOpen` (134080) for a later format.
    static func read(
        _ connection: Connection,
        _ place: String,
        joining target: ConnectionTarget? = nil
    ) throws -> StoreMetadata? {
        // A session joins a store that existed before. Only opening a store has to check for the table first, because
        // an error ends a transaction.
        if target == nil, try !hasTable(connection) { return nil }
        let result: QueryResult
        do {
            let (sql, values) = statement(joining: target)
            result = try connection.query(sql, values)
        } catch let error as PostgreSQLError where target != nil && error.sqlState == "42P01" {
            // The table does not exist any more.
            return nil
        }
        // Tables that were made by hand have no row here.
        guard result.rowCount > 0 else { return nil }
        let metadata = try StoreMetadata(result, place)
        if metadata.isPortable { connection.isPortable = true }
        return metadata
    }

    /// Begins a transaction that sees one moment, from the next statement on.
    ///
    /// If a migration has its locks, then this waits for it before the moment is fixed. Otherwise the transaction would
    /// see the old tables and the old metadata, and nothing in the tables that the migration has made anew. After that,
    /// migrations wait.
    ///
    /// - Returns: The statement whose answer shows whether the table of the metadata exists, and may be read.
    /// - Throws: ``PostgreSQLError``.
    @discardableResult
    static func beginReading(_ connection: Connection) throws -> PostedStatement {
        try connection.post("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if connection.isPortable { return try connection.post("SELECT 1 FROM strata_store", isKept: false) }
        return try connection.post("LOCK TABLE strata_store IN ACCESS SHARE MODE", isKept: false, mayWait: true)
    }

    /// Whether there is a table for the metadata.
    ///
    /// The query reads the tables of the catalogue, so it sees all commits before this statement. `to_regclass` may
    /// answer from knowledge that the session had before it waited for the lock of the process that made the store.
    static func hasTable(_ connection: Connection) throws -> Bool {
        let table = try connection.query(
            """
            SELECT 1 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.relname = 'strata_store' AND n.nspname = pg_catalog.current_schema()
            """
        )
        return table.rowCount > 0
    }

    /// Reads the metadata of an existing store, and keeps it from being changed until the transaction ends.
    ///
    /// - Throws: The errors of ``read(_:_:joining:)``, and `fileReadCorruptFile` (259) if there is none.
    static func locked(_ connection: Connection, _ place: String) throws -> StoreMetadata {
        // Each transaction that writes to a portable store has a lock of the row already, with which this one agrees.
        let lock = connection.isPortable ? "FOR NO KEY UPDATE" : "FOR UPDATE"
        return try StoreMetadata(
            try connection.query("SELECT format, uuid, metadata FROM strata_store \(lock)"),
            place
        )
    }

    /// The statement that reads the metadata of an existing store, and lets the session join; see
    /// ``read(_:_:joining:)``.
    static func statement(joining target: ConnectionTarget?) -> (sql: String, values: [PostgreSQLValue]) {
        // One statement does both, so no other process can migrate the store between the two.
        let joining = target.map { _ in ", \(StoreSessions.join(schema: "$1"))" } ?? ""
        return (
            "SELECT format, uuid, metadata\(joining) FROM strata_store", target.map { [.text($0.schema)] } ?? []
        )
    }

    /// Takes the metadata from the answer of the database.
    ///
    /// - Throws: The errors of ``read(_:_:joining:)``.
    init(_ result: QueryResult, _ place: String) throws {
        guard result.rowCount == 1 else { throw PostgreSQLBoundary.damaged(place, "its metadata is missing.") }
        guard result[0].int64(0) <= StoreFormat.current else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "The store \(place) was made by a later version of Strata."]
            )
        }
        let uuid = result[0].string(1)
        guard !uuid.isEmpty,
            let values = Self.values(in: result[0].data(2))
        else { throw PostgreSQLBoundary.damaged(place, "its metadata cannot be read.") }
        self.init(dictionary: values, uuid: uuid)
        format = result[0].int64(0)
    }

    /// The property list in data; `nil` if it cannot be read, or if the numbers of the tables in it cannot.
    static func values(in data: Data) -> [String: Any]? {
        guard let values = PropertyListSerialization.dictionary(from: data), StoreGenerations(in: values) != nil else {
            return nil
        }
        return values
    }

    /// Whether it belongs to the same store, with the same model.
    func isSame(as other: StoreMetadata) -> Bool { uuid == other.uuid && hasSameTables(as: other) }

    /// Whether it belongs to the same tables, with the same model.
    func hasSameTables(as other: StoreMetadata) -> Bool {
        versionHashes == other.versionHashes && generations.current == other.generations.current
    }

    /// The property list as data.
    ///
    /// - Throws: `persistentStoreSave` (134030) if a value cannot be in a property list.
    func archived() throws -> Data { try PropertyListSerialization.data(ofMetadata: values) }

    /// Writes the metadata, in the transaction that is open.
    func write(_ connection: Connection) throws {
        try connection.query(
            "UPDATE strata_store SET uuid = $1, metadata = $2",
            [.text(uuid), .bytea(try archived())]
        )
    }
}
