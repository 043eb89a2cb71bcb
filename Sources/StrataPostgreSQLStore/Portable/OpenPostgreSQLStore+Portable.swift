import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

// Portable stores are made and opened without locks of sessions and tables, and without transactions that change tables.
extension OpenPostgreSQLStore {
    /// Makes a portable store, or adopts tables that were made by hand, unless another process is faster.
    ///
    /// Each statement is a transaction, and may be run again. So a process that dies leaves a part of the store, and the next one goes on.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) if another process does not get on with it.
    static func createPortable(
        for request: PostgreSQLStoreRequest,
        mapping: SQLMapping,
        at target: ConnectionTarget,
        through pool: ConnectionPool,
        on connection: Connection,
        wasMade: inout Bool
    ) throws -> StoreMetadata {
        let end = ContinuousClock.now + .seconds(pool.timeout)
        try run("CREATE SCHEMA IF NOT EXISTS \(target.quotedSchema)", through: pool, on: connection)
        try run(PortableTables.leases, through: pool, on: connection)
        let lease = ShapeLease(on: connection)
        while true {
            let isHeld = try pool.repeatingConflicts { try lease.take() }
            if let metadata = try StoreMetadata.read(connection, target.place) {
                if isHeld { lease.release() }
                return metadata
            }
            if isHeld { break }
            guard .now < end else {
                throw PostgreSQLError(.deadline, "another process makes the store, and does not get on with it")
            }
            usleep(50_000)
        }
        defer { lease.release() }
        wasMade = try !StoreMetadata.hasTable(connection)
        for statement in PortableTables.statements(PostgreSQLSchema(mapping) { _ in request.keyOrder }) {
            try run(statement, through: pool, on: connection)
            _ = try pool.repeatingConflicts { try lease.take() }
        }
        // Tables of others with these names stay as they are, and are refused here.
        if !wasMade { try HandMadeStore(mapping, on: connection, place: target.place).require() }
        var metadata = StoreMetadata(newFor: request, mapping)
        metadata.setPortable()
        let values: [PostgreSQLValue] = [
            .int8(StoreFormat.current), .text(metadata.uuid), .bytea(try metadata.archived()),
            request.modelCache().map { .bytea($0) } ?? .null(.bytea),
        ]
        try pool.repeatingConflicts {
            if !connection.isIdle { try connection.rollback() }
            try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
            try lease.require()
            try connection.query(
                "INSERT INTO strata_store (format, uuid, metadata, model) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                values
            )
            try connection.commit()
        }
        // Another process may have taken over, and have been faster.
        return try StoreMetadata.read(connection, target.place) ?? metadata
    }

    /// Runs a statement that may be run again, unless another process does the same at this moment.
    private static func run(_ sql: String, through pool: ConnectionPool, on connection: Connection) throws {
        try pool.repeatingConflicts {
            do { try connection.command(sql) } catch let error as PostgreSQLError
                where ["23505", "42P06", "42P07", "42710"].contains(error.sqlState) && !connection.isBroken
            {
                // The server has looked before the other process had finished: it is there now.
            }
        }
    }

    /// Prepares the connection for a portable store, shows others that the store is open, and begins a history if one is requested.
    ///
    /// - Returns: Whether a history is kept, and the form of the store.
    static func joinPortable(
        for request: PostgreSQLStoreRequest,
        at target: ConnectionTarget,
        _ lease: StoreLease,
        through pool: ConnectionPool,
        on connection: Connection
    ) throws -> (recordsHistory: Bool, form: ServerForm) {
        servePortable(connection, for: target, timeout: request.timeout)
        let records = try beginHistory(request, connection)
        if !request.isReadOnly { try lease.begin(on: connection) }
        return (records, .portable)
    }
}
