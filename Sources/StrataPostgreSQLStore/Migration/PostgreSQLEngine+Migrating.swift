import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The values that a store is migrated with.
package struct PostgreSQLMigrationRequest {
    package let url: URL
    /// The mapping from the old entities and properties to the new ones.
    package let migration: SchemaMigration
    /// The labels of the new version of the model.
    package let versionIdentifiers: [String]
    /// The copy of the new model for the store; `nil` for none.
    package let modelCache: Data?
    /// Whether rows and values without a place in the new version may be dropped.
    package let mayDropValues: Bool
    /// How many seconds others may keep the store locked.
    package let timeout: Double
    /// Called with the part of the work that is done, from 0 to 1; an error that it throws ends the migration.
    package let advance: (Double) throws -> Void
    /// Called with what is left for the transaction although it was planned before, as part of a sentence.
    package let note: (String) -> Void

    package init(
        url: URL,
        migration: SchemaMigration,
        versionIdentifiers: [String],
        modelCache: Data?,
        mayDropValues: Bool,
        timeout: Double,
        advance: @escaping (Double) throws -> Void,
        note: @escaping (String) -> Void = { _ in }
    ) {
        self.url = url
        self.migration = migration
        self.versionIdentifiers = versionIdentifiers
        self.modelCache = modelCache
        self.mayDropValues = mayDropValues
        self.timeout = timeout
        self.advance = advance
        self.note = note
    }
}

extension PostgreSQLEngine {
    /// Brings a store to another version of its model, in one transaction.
    ///
    /// The work that takes long on large tables is done before, while other processes read and save: see
    /// ``MigrationPreparation``. During the transaction they wait until it is done. Tables are locked before anything is changed. A wait
    /// for a table keeps all others from it, so each wait lasts for a second at most.
    ///
    /// Older sessions end at the commit. So no process reads or saves with the old model afterwards, because a new
    /// session reads the metadata first.
    ///
    /// - Parameter request: The store and the mapping of its model.
    /// - Returns: Whether it was migrated here; false if the store has another version than the expected one, because
    ///   another process was first.
    /// - Throws: `migration` (134110) with the reason. `persistentStoreTimeout` (134090), with the blocking session, if
    ///   others keep a table locked.
    @discardableResult
    package static func migrate(_ request: PostgreSQLMigrationRequest) throws -> Bool {
        let target: ConnectionTarget
        do { target = try ConnectionTarget(request.url) } catch {
            throw PostgreSQLBoundary.cocoaError(describing: error, while: .migrating, at: "")
        }
        return try PostgreSQLBoundary.run(.migrating, at: target.place) {
            // The second connection asks which session has a table that is waited for.
            let pool = OpenPostgreSQLStore.pool(target, size: 2, timeout: request.timeout)
            defer { pool.close() }
            let isPortable = try pool.withConnection {
                try StoreMetadata.read($0, target.place)?.isPortable == true
            }
            if isPortable {
                return try describingFailures(of: request, at: target) {
                    try PortableMigration.run(request, at: target, through: pool)
                }
            }
            return try pool.withConnection { connection in
                let preparation = try prepare(request, at: target, through: pool, on: connection)
                pool.explainWaits(of: connection, waiting: LockTurns.wait)
                do {
                    return try migrate(request, after: preparation, at: target, through: pool, on: connection)
                } catch {
                    // After a wait in vain the same migration is likely to come again, and uses what was prepared.
                    if (error as? PostgreSQLError)?.sqlState != "55P03" { preparation?.abandon() }
                    throw error
                }
            }
        }
    }

    /// How many seconds the server may be silent once it has the locks and works.
    static let workPatience = 86_400.0

    /// Removes the time limit of statements for a transaction.
    ///
    /// A limit of the role is meant for queries of programs, and not for work on whole tables.
    static let workSetting = "SET LOCAL statement_timeout = 0"

    private static func prepare(
        _ request: PostgreSQLMigrationRequest,
        at target: ConnectionTarget,
        through pool: ConnectionPool,
        on connection: Connection
    ) throws -> MigrationPreparation? {
        pool.explainWaits(of: connection, waiting: MigrationPreparation.wait)
        return try describingFailures(of: request, at: target) {
            try MigrationPreparation.make(request, at: target, on: connection)
        }
    }

    private static func migrate(
        _ request: PostgreSQLMigrationRequest,
        after preparation: MigrationPreparation?,
        at target: ConnectionTarget,
        through pool: ConnectionPool,
        on connection: Connection
    ) throws -> Bool {
        try describingFailures(of: request, at: target) {
            try LockTurns(connection, timeout: request.timeout).transaction {
                try attempt(request, after: preparation, at: target, through: pool, on: connection)
            }
        }
    }

    /// Runs a part of a migration, and describes its errors.
    private static func describingFailures<R>(
        of request: PostgreSQLMigrationRequest,
        at target: ConnectionTarget,
        _ body: () throws -> R
    ) throws -> R {
        do { return try body() } catch let error as PostgreSQLError
            where error.sqlState == "55P03" || ![.server, .rolledBack].contains(error.kind)
        {
            throw error
        } catch let error as CocoaError where [.migration, .migrationCancelled].contains(error.code) {
            throw error
        } catch let error as PostgreSQLError {
            throw MigrationErrors.failure(
                request.url,
                PostgreSQLBoundary.cocoaError(describing: error, while: .migrating, at: target.place),
                place: target.place
            )
        } catch {
            throw MigrationErrors.failure(request.url, error, place: target.place)
        }
    }

    /// Migrates in the transaction that is open.
    private static func attempt(
        _ request: PostgreSQLMigrationRequest,
        after preparation: MigrationPreparation?,
        at target: ConnectionTarget,
        through pool: ConnectionPool,
        on connection: Connection
    ) throws -> Bool {
        connection.patience = max(request.timeout, 1)
        try OpenPostgreSQLStore.lockShape(of: target, connection)
        guard let metadata = try StoreMetadata.read(connection, target.place) else {
            throw PostgreSQLBoundary.damaged(target.place, "it has no metadata.")
        }
        guard request.migration.starts(at: metadata.versionHashes) else {
            try connection.command("ROLLBACK")
            return false
        }
        try StoreFormat.bringUp(metadata, of: target, connection)
        let migration = try PostgreSQLMigration(
            request,
            at: target,
            from: metadata,
            on: connection,
            after: preparation
        )
        guard try migration.run() else {
            try connection.command("ROLLBACK")
            return false
        }
        // Their statements and numbers of entities belong to the old model.
        try StoreSessions.endOthers(of: target, connection)
        try ShapeCommit(on: connection, to: target, pool: pool).commit { connection in
            let found = try StoreMetadata.read(connection, target.place)
            return found?.versionHashes == request.migration.destinationHashes
        }
        return true
    }

    /// The copy of its model that a store keeps; `nil` if it has none.
    package static func cachedModel(at url: URL) throws -> Data? {
        try withConnection(to: url, .reading, timeout: 30) { connection, place in
            guard try StoreMetadata.read(connection, place) != nil else { return nil }
            let result = try connection.query("SELECT model FROM strata_store")
            return result.rowCount > 0 && !result[0].isNull(0) ? result[0].data(0) : nil
        }
    }
}
