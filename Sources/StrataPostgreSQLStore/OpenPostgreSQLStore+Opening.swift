import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension OpenPostgreSQLStore {
    /// Opens a store, or makes it if there is none.
    static func open(_ request: PostgreSQLStoreRequest) throws -> OpenPostgreSQLStore {
        let target: ConnectionTarget
        let followers: [ConnectionTarget]
        do {
            target = try ConnectionTarget(request.url)
            followers = try request.replicas.urls.map {
                try ConnectionTarget($0, schema: target.schema, isFollower: true)
            }
        } catch let error as PostgreSQLError {
            throw PostgreSQLBoundary.cocoaError(describing: error, while: .opening, at: "")
        }
        var mapping = try SQLMapping(request.schema, configuration: request.configuration, dialect: .postgresql)
        let budget = request.serverConnections.map { ConnectionBudget.shared(for: target, most: $0) }
        let pool = pool(target, size: request.maximumConnections, timeout: request.timeout, budget: budget)
        return try PostgreSQLBoundary.run(.opening, at: target.place) {
            do {
                var wasMade = false
                var metadata = try pool.withConnection { try StoreMetadata.read($0, target.place) }
                if metadata == nil {
                    try pool.withConnection { try requireUse(of: target, $0) }
                    guard !request.isReadOnly else {
                        throw CocoaError.described(
                            .fileReadNoSuchFile,
                            userInfo: [NSLocalizedDescriptionKey: "There is no store at \(target.place)."]
                        )
                    }
                    do {
                        metadata = try pool.withConnection {
                            try create(
                                for: request,
                                mapping: mapping,
                                at: target,
                                through: pool,
                                on: $0,
                                wasMade: &wasMade
                            )
                        }
                    } catch is ServerCapabilities.Missing {
                        metadata = try pool.withConnection {
                            try createPortable(
                                for: request,
                                mapping: mapping,
                                at: target,
                                through: pool,
                                on: $0,
                                wasMade: &wasMade
                            )
                        }
                    }
                }
                guard let metadata else {
                    throw PostgreSQLBoundary.damaged(target.place, "it has no metadata.")
                }
                try request.requireVersion(metadata.dictionary)
                if metadata.isPortable {
                    mapping = try SQLMapping(
                        request.schema,
                        configuration: request.configuration,
                        generation: metadata.generations.current
                    )
                    if !request.isReadOnly { PortableUpkeep.tidyUp(metadata, of: request.url, at: target) }
                }
                try prepare(for: request, mapping: mapping, metadata: metadata, at: target, through: pool)
                let lease = metadata.isPortable ? StoreLease(pool) : nil
                let (records, form) = try pool.withConnection { connection in
                    let joined =
                        try lease.map { try joinPortable(for: request, at: target, $0, through: pool, on: connection) }
                        ?? join(for: request, metadata: metadata, at: target, on: connection)
                    try findTable(of: connection, pool)
                    return joined
                }
                let replicas = followers.isEmpty ? nil : Replicas(followers, of: pool, request)
                return OpenPostgreSQLStore(
                    request,
                    pool: pool,
                    mapping: mapping,
                    metadata: metadata,
                    wasMade: wasMade,
                    recordsHistory: records,
                    form: form,
                    lease: lease,
                    replicas: replicas
                )
            } catch {
                pool.close()
                throw error
            }
        }
    }

    /// Ensures that a store has the requested tables and foreign keys.
    private static func prepare(
        for request: PostgreSQLStoreRequest,
        mapping: SQLMapping,
        metadata: StoreMetadata,
        at target: ConnectionTarget,
        through pool: ConnectionPool
    ) throws {
        if metadata.format < StoreFormat.current {
            guard !request.isReadOnly else { throw StoreFormat.outdated(target.place) }
            try pool.withConnection { try StoreFormat.bringUp(target, $0) }
        }
        let wanted = StoreMetadata(newFor: request, mapping)
        // A caller that ignores versions may expect other tables.
        if metadata.tables != wanted.tables,
            request.schema.hashesByPresentRule(of: metadata.versionHashes) == wanted.versionHashes
        {
            try pool.withConnection { try StoreTables.require(mapping, in: $0, target.place) }
        }
        if request.addsForeignKeys, !request.isReadOnly {
            guard !metadata.isPortable else { throw ServerCapabilities.noForeignKeys(target.place) }
            try pool.withConnection { connection in
                try ForeignKeys(mapping, connection).begin(target, timeout: request.timeout) {
                    try request.requireVersion($0.dictionary)
                }
            }
        }
    }

    /// Prepares the connection for the store.
    ///
    /// It checks that the server has all that the store relies on, and begins a history if one is requested. Then it
    /// marks the connection, so that the next user need not examine the store again.
    ///
    /// - Returns: Whether a history is kept, and how the server keeps the tables.
    /// - Throws: `persistentStoreOpen` (134080) if the server lacks something.
    private static func join(
        for request: PostgreSQLStoreRequest,
        metadata: StoreMetadata,
        at target: ConnectionTarget,
        on connection: Connection
    ) throws -> (recordsHistory: Bool, form: ServerForm) {
        do {
            // This takes one round trip, unless there is a pooler, behind which no session belongs to the connection.
            let (sql, values) = StoreMetadata.statement(joining: target)
            let joined = connection.isPooled ? nil : try connection.post(sql, values)
            let asked =
                connection.isPooled
                ? nil : try connection.post(ServerCapabilities.statement, isKept: false)
            let question = connection.isPooled ? nil : try ServerForm.ask(connection)
            let records = try beginHistory(request, connection)
            try ServerCapabilities.require(
                asked.map { try connection.answer($0) } ?? connection.query(ServerCapabilities.statement),
                target.place
            )
            let form =
                try question.map { try ServerForm.answer($0, connection) } ?? ServerForm.find(behind: connection)
            if let joined {
                // If the tables are elsewhere, then the session has not joined the sessions that a migration ends. Its next user joins first, and
                // then reads the metadata again.
                let isSame = try StoreMetadata(connection.answer(joined), target.place).isSame(as: metadata)
                connection.isKnown = form == .oneNode && isSame
            }
            return (records, form)
        } catch let error as PostgreSQLError where error.kind == .server && !connection.isBroken {
            if !connection.isIdle { try connection.rollback() }
            try ServerCapabilities.requireEach(connection, target.place)
            throw error
        }
    }

    /// Refuses an existing schema that the role may not use.
    ///
    /// The server ignores such a schema, and would make the tables in the next one of the search path: among the
    /// temporary tables of the session, which no other session sees and which end with it.
    ///
    /// - Throws: ``PostgreSQLError`` with 42501.
    static func requireUse(of target: ConnectionTarget, _ connection: Connection) throws {
        let refused = try connection.query(
            """
            SELECT 1 FROM pg_catalog.pg_namespace
            WHERE nspname = $1 AND NOT pg_catalog.has_schema_privilege(oid, 'USAGE')
            """,
            [.text(target.schema)]
        )
        guard refused.rowCount == 0 else {
            throw PostgreSQLError(.server, sqlState: "42501", "the role has no USAGE on the schema")
        }
    }

    /// Makes a store, or adopts tables that were made by hand, unless another process is faster.
    ///
    /// - Throws: ``ServerCapabilities/Missing`` if the server lacks something that only portable stores do without; nothing is made then.
    private static func create(
        for request: PostgreSQLStoreRequest,
        mapping: SQLMapping,
        at target: ConnectionTarget,
        through pool: ConnectionPool,
        on connection: Connection,
        wasMade: inout Bool
    ) throws -> StoreMetadata? {
        // Tables that others have made while this waits for the lock have to be visible, whatever the role's default
        // is.
        try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
        do {
            let asked = try connection.post(ServerCapabilities.statement, isKept: false)
            try lockShape(of: target, connection)
            try ServerCapabilities.requireAll(connection.answer(asked))
        } catch let error as PostgreSQLError
            where error.isUnavailable && error.sqlState != "25006" && !connection.isBroken
        {
            throw ServerCapabilities.Missing()
        }
        if let metadata = try StoreMetadata.read(connection, target.place) {
            try connection.command("COMMIT")
            return metadata
        }
        try requireExclusion(by: connection, of: target, pool)
        if try StoreMetadata.hasTable(connection) {
            try HandMadeStore(mapping, on: connection, place: target.place).require()
        } else {
            wasMade = try makeTables(of: mapping, request.keyOrder, at: target, on: connection)
        }
        let metadata = StoreMetadata(newFor: request, mapping)
        try connection.query(
            "INSERT INTO strata_store (format, uuid, metadata, model) VALUES ($1, $2, $3, $4)",
            [
                .int8(StoreFormat.current), .text(metadata.uuid), .bytea(try metadata.archived()),
                request.modelCache().map { .bytea($0) } ?? .null(.bytea),
            ]
        )
        // A session of a store whose tables were dropped here would otherwise continue in this store. A new session
        // finds another UUID.
        try StoreSessions.endOthers(of: target, connection)
        try connection.commit()
        return metadata
    }

    /// Makes the tables in the transaction that is open.
    ///
    /// - Returns: Whether the schema was made as well.
    private static func makeTables(
        of mapping: SQLMapping,
        _ order: KeyOrder,
        at target: ConnectionTarget,
        on connection: Connection
    ) throws -> Bool {
        let isNew = try makeSchema(at: target, on: connection)
        try PostgreSQLSchema(mapping) { _ in order }.create(on: connection)
        return isNew
    }

    /// Makes the schema, unless it exists, in the transaction that is open.
    ///
    /// - Returns: Whether it was made.
    @discardableResult
    static func makeSchema(at target: ConnectionTarget, on connection: Connection) throws -> Bool {
        let exists = try connection.query(
            "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1",
            [.text(target.schema)]
        )
        if exists.rowCount == 0 { try connection.command("CREATE SCHEMA \(target.quotedSchema)") }
        return exists.rowCount == 0
    }

    /// Keeps others from making or migrating a store until the transaction ends.
    ///
    /// Only later statements see what others have made meanwhile.
    static func lockShape(of target: ConnectionTarget, _ connection: Connection) throws {
        try connection.query("SELECT pg_catalog.pg_advisory_xact_lock(\(AdvisoryLocks.shape))", [.text(target.schema)])
    }

    /// Ensures that the lock of a connection keeps another session out, because some servers accept advisory locks but
    /// lock nothing.
    ///
    /// This is not checked if the server or the role has no room for another session.
    ///
    /// - Throws: ``ServerCapabilities/Missing``.
    private static func requireExclusion(by holder: Connection, of target: ConnectionTarget, _ pool: ConnectionPool)
        throws
    {
        let other: Connection
        do { other = try pool.open(timeout: 1) } catch let error as PostgreSQLError
            where error.isBusy || error.kind == .deadline
        {
            return
        }
        let isTaken = try other.query(
            "SELECT pg_catalog.pg_try_advisory_xact_lock(\(AdvisoryLocks.shape))",
            [.text(target.schema)]
        )
        if isTaken.firstInt64 != 0 { throw ServerCapabilities.Missing() }
    }

    /// Notes that a history is kept from now on, if it is requested.
    ///
    /// Each process that has opened the store before checks in every transaction whether a history is kept, and holds a
    /// lock of the table from then on. So all saves that record nothing have ended when this returns.
    ///
    /// - Returns: Whether a history is kept.
    static func beginHistory(_ request: PostgreSQLStoreRequest, _ connection: Connection) throws -> Bool {
        if try connection.query("SELECT 1 FROM strata_history").rowCount > 0 { return true }
        guard request.tracksHistory, !request.isReadOnly else { return false }
        let end = ContinuousClock.now + .seconds(request.timeout)
        while true {
            do {
                // Saves wait behind the wait for this lock, so each wait is short.
                try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
                try connection.command("SET LOCAL lock_timeout = 1000")
                if connection.isPortable {
                    try lockOutWriters(ofPortable: connection)
                } else {
                    try connection.command("LOCK TABLE strata_history IN ACCESS EXCLUSIVE MODE")
                }
                try connection.query("INSERT INTO strata_history (last, purged) VALUES (0, 0) ON CONFLICT DO NOTHING")
                try connection.commit()
                return true
            } catch let error as PostgreSQLError
                where (error.sqlState == "55P03" || error.isTransient) && !connection.isBroken && .now < end
            {
                try connection.rollback()
                usleep(50_000)
            }
        }
    }
}
