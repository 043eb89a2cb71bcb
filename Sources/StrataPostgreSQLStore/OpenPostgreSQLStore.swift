import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL
import Synchronization

/// The values that a store is opened with.
package struct PostgreSQLStoreRequest: Sendable {
    package let url: URL
    package let schema: Schema
    /// The configuration whose entities the store holds, or `nil` for all.
    package let configuration: String?
    /// The UUID of the store if it has to be made.
    package let newUUID: String
    /// The labels of the model's version, for the metadata of a store that has to be made.
    package let versionIdentifiers: [String]
    package let isReadOnly: Bool
    package let tracksHistory: Bool
    /// Whether the store gets foreign keys.
    package let addsForeignKeys: Bool
    /// The order of the keys of a store that has to be made.
    package let keyOrder: KeyOrder
    /// How many seconds a user of the store waits for others, or for the server.
    package let timeout: Double
    /// The most connections in use at a time, without those of versions that are held.
    package let maximumConnections: Int
    /// The most connections of all stores of the server that have this number; `nil` for no limit.
    package let serverConnections: Int?
    /// The servers that follow the primary, and how many seconds a read waits for one of them.
    package let replicas: (urls: [URL], wait: Double)
    /// The most versions that may be held at a time, and for how many seconds, where `nil` stands for no limit.
    ///
    /// Each version keeps a process of the server, and keeps old rows from being removed.
    package let pinnedVersions: (most: Int, age: Double?)
    /// The copy of the model that the store keeps; `nil` for none.
    package let modelCache: @Sendable () -> Data?
    /// Refuses a store that was made with another version of the model, by its metadata.
    package let requireVersion: @Sendable (_ metadata: [String: Any]) throws -> Void

    package init(
        url: URL,
        schema: Schema,
        configuration: String?,
        newUUID: String,
        versionIdentifiers: [String],
        isReadOnly: Bool,
        tracksHistory: Bool,
        addsForeignKeys: Bool = false,
        keyOrder: KeyOrder = .consecutive,
        timeout: Double,
        maximumConnections: Int,
        serverConnections: Int? = nil,
        replicas: (urls: [URL], wait: Double),
        pinnedVersions: (most: Int, age: Double?),
        modelCache: @escaping @Sendable () -> Data?,
        requireVersion: @escaping @Sendable (_ metadata: [String: Any]) throws -> Void
    ) {
        self.url = url
        self.schema = schema
        self.configuration = configuration
        self.newUUID = newUUID
        self.versionIdentifiers = versionIdentifiers
        self.isReadOnly = isReadOnly
        self.tracksHistory = tracksHistory
        self.addsForeignKeys = addsForeignKeys
        self.keyOrder = keyOrder
        self.timeout = timeout
        self.maximumConnections = maximumConnections
        self.serverConnections = serverConnections
        self.replicas = replicas
        self.pinnedVersions = pinnedVersions
        self.modelCache = modelCache
        self.requireVersion = requireVersion
    }
}

/// An open store of a database: the connections to it, and the values from which statements are made.
final class OpenPostgreSQLStore: Sendable {
    let request: PostgreSQLStoreRequest
    let pool: ConnectionPool
    let mapping: SQLMapping
    let queries: RowQueries
    let keys: KeyAllocation
    let shapes: WriteShapes
    let places: PlacesByEntity
    let versions: PinnedPostgreSQLVersions
    /// The blocks that may lock rows at a time; each has a separate session.
    let lockingBlocks: FairSemaphore
    /// The row that shows that the store is open; `nil` if the store is not portable.
    let lease: StoreLease?
    /// The derived attributes; `nil` if the model has none.
    let derived: DerivedPlan?
    /// The metadata that was found, or made.
    let metadata: StoreMetadata
    /// The UUIDs of the store: the one that it was opened with, and those that this store object has set since.
    private let identifiers: Locked<Set<String>>
    private let historyIsKept: AtomicCell<Bool>
    /// The servers that may answer reads which accept slightly old data; `nil` if there are none.
    let replicas: Replicas?
    /// Whether the server lets several connections see one version.
    let sharesVersions = AtomicCell(true)
    /// Called when another server has replaced the primary.
    let onFailover = Locked<(@Sendable () -> Void)?>(nil)
    /// Called in that case too, or when the server may have lost changes: rows that were read before may not exist any
    /// more.
    let onSetBack = Locked<(@Sendable () -> Void)?>(nil)

    /// Whether a history is kept: this store object was asked to keep one, or another process has begun one.
    var recordsHistory: Bool { historyIsKept.load(ordering: .acquiring) }

    /// Whether the store was made when it was opened.
    let wasMade: Bool
    /// How the server keeps the tables.
    let form: ServerForm

    var place: String { pool.target.place }
    var naming: SQLNaming { mapping.dialect.naming }

    init(
        _ request: PostgreSQLStoreRequest,
        pool: ConnectionPool,
        mapping: SQLMapping,
        metadata: StoreMetadata,
        wasMade: Bool,
        recordsHistory: Bool,
        form: ServerForm,
        lease: StoreLease?,
        replicas: Replicas?
    ) {
        self.request = request
        self.pool = pool
        self.mapping = mapping
        self.metadata = metadata
        self.wasMade = wasMade
        self.form = form
        self.lease = lease
        identifiers = Locked([metadata.uuid])
        historyIsKept = AtomicCell(recordsHistory)
        self.replicas = replicas
        queries = RowQueries(mapping, place: pool.target.place)
        keys = KeyAllocation(mapping, pool, form)
        shapes = WriteShapes(mapping)
        places = PlacesByEntity(mapping)
        versions = PinnedPostgreSQLVersions(most: request.pinnedVersions.most)
        lockingBlocks = FairSemaphore(permits: pool.size)
        derived = DerivedPlan(mapping)
        pool.onFailover { [weak self] in
            guard let self else { return }
            // The new server may not know the keys that the old server has given out last.
            keys.forget()
            self.replicas?.forgetPosition()
            onSetBack.withLock { $0 }?()
            onFailover.withLock { $0 }?()
        }
    }

    // MARK: - The same store

    /// Notes that the store may have another UUID from now on.
    func mayBecome(_ identifier: String) { identifiers.withLock { _ = $0.insert(identifier) } }

    /// Ensures, once for each connection, that the database behind it has this store, with the model that it was opened
    /// with.
    ///
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) if another process has migrated it;
    ///   `persistentStoreOperation` (134070) for another store.
    func requireSame(_ connection: Connection) throws {
        guard !connection.isKnown else { return }
        if form == .portable { Self.servePortable(connection, for: pool.target, timeout: pool.timeout) }
        if connection.isPooled {
            // Behind a pooler no session belongs to the connection, so neither a migration nor the end of the server
            // ends it. Each transaction checks the store and the server instead. It keeps migrations out until it ends,
            // because they lock this table first.
            let target = pool.target
            let settings = SessionSettings(target, timeout: pool.timeout)
            let table = "\(target.quotedSchema).strata_store"
            let columns = ["(SELECT pg_catalog.md5(metadata) FROM \(table))"]
            let facts = (columns + ServerIdentity.columns(behind: connection)).joined(separator: ", ")
            connection.beginTransactions(
                with: TransactionPrelude(
                    // The lock comes before the first read, which decides what a transaction of one snapshot sees.
                    lock: form == .portable
                        ? "SELECT 1 FROM \(table) FOR KEY SHARE" : "LOCK TABLE \(table) IN ACCESS SHARE MODE",
                    locksWritersOnly: form == .portable,
                    "SELECT \(settings.sql(isLocal: true)), pg_catalog.concat_ws(' ', \(facts))",
                    settings.values
                ) { [weak self] connection in
                    guard let self else { return true }
                    try ServerIdentity.requireSame(behind: connection)
                    let found = try StoreMetadata.read(connection, place)
                    try requireSame(found)
                    guard found?.generations.pending != nil else { return true }
                    // Transactions that only read may go on: the tables that count do not change any more.
                    if !connection.onlyReads { throw MigrationUnderWay.error(place) }
                    return false
                }
            )
        } else {
            if form == .shardedBySchema { try StoreSessions.joinHere(pool.target, connection) }
            try requireSame(try StoreMetadata.read(connection, place, joining: pool.target))
            try Self.findTable(of: connection, pool)
        }
        connection.isKnown = true
    }

    /// Finds the number of the store's table for a connection that was opened while there was no such table.
    static func findTable(of connection: Connection, _ pool: ConnectionPool) throws {
        guard connection.serverRun?.table == nil else { return }
        try ServerIdentity.readRun(of: connection)
        pool.registerRun(of: connection)
    }

    /// Ensures that metadata belongs to this store, with the model that it was opened with.
    func requireSame(_ found: StoreMetadata?) throws {
        guard let found, identifiers.withLock({ $0.contains(found.uuid) }) else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(place) is not there any more, or is another one, with another UUID. Remove the store, and add it again."
                ]
            ).marked(.environment)
        }
        guard found.hasSameTables(as: metadata) else {
            throw CocoaError.described(
                .persistentStoreIncompatibleVersionHash,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(place) was migrated by somebody else since it was opened here. Nothing is read or saved any more; remove the store, and add it with the new model.",
                    "metadata": found.dictionary,
                    "reason": "The store was migrated by somebody else",
                ]
            )
        }
    }

    /// Notes that a history is kept from the next transaction on.
    func recordHistory() { historyIsKept.store(true, ordering: .releasing) }

    /// Writes the metadata that an application has set, in the transaction that is open.
    ///
    /// The framework's own entries stay as they are in the database, because another process may have added more since
    /// they were read here.
    ///
    /// - Throws: The errors of ``requireSame(_:)``, if the store was migrated meanwhile.
    func write(_ new: StoreMetadata, _ connection: Connection) throws {
        let found = try StoreMetadata.locked(connection, place)
        try requireSame(found)
        try StoreMetadata(dictionary: StoreMetadata.replacing(found.dictionary, with: new.dictionary), uuid: new.uuid)
            .write(connection)
    }

    /// Waits until no transaction writes to the store, and lets none begin until this one ends; this has to be its
    /// first statement.
    ///
    /// Transactions may still get their numbers.
    func lockOutWriters(_ connection: Connection) throws {
        var attempt = 0
        while true {
            attempt += 1
            do {
                try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
                // The transaction is idle while others copy.
                try connection.command("SET LOCAL idle_in_transaction_session_timeout = 0")
                guard form != .portable else { return try Self.lockOutWriters(ofPortable: connection) }
                let tables = (mapping.tables.map(\.name) + mapping.joinTables.map(\.name)).map(\.description)
                try connection.command(
                    "LOCK TABLE \((["strata_store"] + tables).joined(separator: ", ")) IN SHARE MODE"
                )
                return
            } catch let error as PostgreSQLError where error.isTransient && attempt < 10 && !connection.isBroken {
                // A save has taken its locks in another order.
                try connection.rollback()
            }
        }
    }

    /// Waits until no transaction writes to a portable store, and lets none begin until the open one ends.
    ///
    /// Each transaction that writes shares a lock of the row of the metadata.
    static func lockOutWriters(ofPortable connection: Connection) throws {
        try connection.query("SELECT 1 FROM strata_store FOR UPDATE")
    }

    /// Closes all connections.
    func close() {
        lease?.end()
        pool.close()
        replicas?.close()
    }

    /// Notes that this process or another one has committed changes: a replica that does not have them yet may not
    /// answer any more.
    func countCommit() { replicas?.countCommit() }
}

extension Connection {
    /// Commits the transaction, with what was posted in it.
    ///
    /// - Throws: ``PostgreSQLError`` if the server has rolled back instead. The server does that without an error if an
    ///   earlier statement has failed.
    func commit() throws {
        cancelsAtDeadline = false
        defer { cancelsAtDeadline = true }
        let tag = try answer(try post("COMMIT", isKept: false, mayWait: true)).tag
        guard tag == "COMMIT" else { throw PostgreSQLError(.server, "the transaction was rolled back") }
    }
}
