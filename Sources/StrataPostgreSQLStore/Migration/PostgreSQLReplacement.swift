import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// A new store that is made beside another one, in a separate schema, and replaces it in one transaction.
///
/// Until then the old store can be read, and writers wait. The new tables move into the schema of the old ones, so that
/// other objects there, and its privileges, stay.
///
/// It is used by one thread.
package final class PostgreSQLReplacement {
    /// Where the new store is made.
    package let url: URL
    private let target: ConnectionTarget
    private let working: ConnectionTarget
    /// The old store.
    private let source: SQLMapping
    private let timeout: Double
    /// The connections to the old store.
    private let pool: ConnectionPool
    /// The connection that keeps others from writing.
    private let connection: Connection
    /// Whether the old store has foreign keys, so that the new one gets them too.
    private var hasForeignKeys = false

    /// Keeps others from writing to a store, and removes what a killed replacement has left.
    ///
    /// The result is `nil` if the store has other hashes than expected, because another process was first.
    ///
    /// - Parameters:
    ///   - old: The store.
    ///   - schema: Its model.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    ///   - hashes: The version hashes that the store is expected to have.
    ///   - timeout: How many seconds others may keep the store locked.
    /// - Throws: `persistentStoreTimeout` (134090) if others keep the store locked, and errors of the database.
    package init?(
        of old: URL,
        schema: Schema,
        configuration: String?,
        hashes: [String: Data],
        timeout: Double
    ) throws {
        do {
            target = try ConnectionTarget(old)
            url = try Self.beside(old, target)
            working = try ConnectionTarget(url)
        } catch {
            throw PostgreSQLBoundary.cocoaError(describing: error, while: .migrating, at: "")
        }
        self.timeout = timeout
        source = try SQLMapping(schema, configuration: configuration, dialect: .postgresql)
        let pool = OpenPostgreSQLStore.pool(target, size: 1, timeout: timeout)
        self.pool = pool
        connection = try PostgreSQLBoundary.run(.migrating, at: target.place) { try pool.open() }
        let isExpected = try PostgreSQLBoundary.run(.migrating, at: target.place) {
            // This needs a separate transaction, because it locks tables that the copy reads.
            if let metadata = try StoreMetadata.read(connection, target.place), metadata.format < StoreFormat.current {
                try StoreFormat.bringUp(target, connection)
            }
            pool.explainWaits(of: connection, waiting: LockTurns.wait)
            return try lockOutWriters(hashes, old)
        }
        guard isExpected else { return nil }
        try PostgreSQLEngine.destroy(at: url, timeout: timeout)
    }

    /// Begins the transaction that keeps others from writing.
    ///
    /// - Returns: Whether the store has the expected hashes.
    /// - Throws: `migration` (134110) if an obstacle prevents new tables; ``PostgreSQLError``.
    private func lockOutWriters(_ hashes: [String: Data], _ old: URL) throws -> Bool {
        // Objects are made meanwhile, and that may take long.
        let settings = ["SET LOCAL idle_in_transaction_session_timeout = 0"]
        // Readers of the history need numbered transactions, and cannot number them during the replacement, because
        // that writes.
        let number = { [connection] in try HistoryQueries.number(connection) }
        let isExpected = try LockTurns(connection, timeout: timeout).transaction(settings, before: number) {
            try OpenPostgreSQLStore.lockShape(of: target, connection)
            let metadata = try StoreMetadata.read(connection, target.place)
            guard let metadata, source.schema.hashesByPresentRule(of: metadata.versionHashes) == hashes else {
                return false
            }
            try connection.command("LOCK TABLE \(oldTables) IN SHARE MODE")
            // The metadata is checked again, because another process may have written it during the wait for the
            // tables.
            let locked = try StoreMetadata.locked(connection, target.place)
            return source.schema.hashesByPresentRule(of: locked.versionHashes) == hashes
        }
        guard isExpected else {
            try connection.command("ROLLBACK")
            return false
        }
        hasForeignKeys = try !ForeignKeys.found(connection).isEmpty
        // Obstacles are reported before objects are made in vain.
        let columns = PostgreSQLSchema.columns(source)
        let belongings = try TableBelongings(of: oldNames, connection)
        try belongings.requireNoObstacles(
            toDropping: oldNames,
            replacedBy: [],
            keeping: columns,
            at: old,
            place: target.place
        )
        return true
    }

    /// The URL of the schema for the new store.
    static func beside(
        _ url: URL,
        _ target: ConnectionTarget,
        prefix: String = "strata_new_"
    ) throws(PostgreSQLError) -> URL {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw PostgreSQLError(.misuse, "the URL cannot be read")
        }
        let schema = PostgreSQLName.limited(prefix + target.schema)
        parts.queryItems =
            (parts.queryItems ?? []).filter { $0.name != "schema" } + [URLQueryItem(name: "schema", value: schema)]
        guard let url = parts.url else { throw PostgreSQLError(.misuse, "the URL cannot be read") }
        return url
    }

    /// The URL of the schema for a copy of a store that is migrated on trial.
    package static func trialURL(of url: URL) throws -> URL {
        try PostgreSQLBoundary.run(.migrating, at: "") {
            try beside(url, ConnectionTarget(url), prefix: "strata_trial_")
        }
    }

    /// The order of the keys in the old store, for tables that the new one has more.
    package var keyOrder: KeyOrder {
        get throws {
            try PostgreSQLBoundary.run(.migrating, at: target.place) { try KeyOrder.order(in: source, connection) }
        }
    }

    private var oldNames: [SQLName] { Self.names(source) }

    private var oldTables: String { oldNames.map(\.description).joined(separator: ", ") }

    private static func names(_ mapping: SQLMapping) -> [SQLName] {
        PostgreSQLSchema.contents(mapping).map { $0.table }
    }

    // MARK: - A copy

    /// Makes the new store as a copy of the old one, with its keys, its history and its UUID.
    package func copyRows() throws {
        try PostgreSQLBoundary.run(.migrating, at: target.place) {
            let pool = OpenPostgreSQLStore.pool(working, size: 1, timeout: timeout)
            defer { pool.close() }
            let orders = try KeyOrder.orders(in: source, connection)
            try pool.withConnection { connection in
                connection.patience = max(timeout, PostgreSQLEngine.workPatience)
                try connection.command(
                    "BEGIN; \(PostgreSQLEngine.workSetting); CREATE SCHEMA \(working.quotedSchema)"
                )
                try PostgreSQLSchema(source) { orders[$0.name] ?? .consecutive }.create(on: connection)
                for (table, columns) in PostgreSQLSchema.contents(source) {
                    try copy(table, columns: columns, to: connection)
                }
                for sequence in PostgreSQLSchema.sequences(source) { try setSequence(sequence, connection) }
                try connection.commit()
            }
        }
    }

    private func copy(_ table: SQLName, columns: [SQLName], to connection: Connection) throws {
        let list = columns.map(\.description).joined(separator: ", ")
        try connection.command("INSERT INTO \(table) (\(list)) SELECT \(list) FROM \(target.quotedSchema).\(table)")
    }

    /// Sets a sequence to the state of that of the old store.
    private func setSequence(_ name: SQLName, _ connection: Connection) throws {
        try connection.query(
            "SELECT pg_catalog.setval($1::text::regclass, s.last_value, s.is_called) FROM \(target.quotedSchema).\(name) AS s",
            [.text(name.description)]
        )
    }

    // MARK: - The end

    /// Replaces the old store by the new one, which must not be open any more.
    ///
    /// Sessions that have the old store open end.
    ///
    /// - Parameters:
    ///   - schema: The model of the new store.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    /// - Throws: `persistentStoreTimeout` (134090) if others keep a table of the old store locked, for instance by a
    ///   version that they are pinned to. `migration` (134110) if the old store has foreign keys, and rows of the new
    ///   one do not allow them.
    package func finish(_ schema: Schema, configuration: String?) throws {
        do {
            try PostgreSQLBoundary.run(.migrating, at: target.place) {
                try makeForeignKeys(schema, configuration)
                // Between the attempts others may use the tables.
                _ = try LockTurns(connection, timeout: timeout).savepoint {
                    try connection.command("LOCK TABLE \(oldTables) IN ACCESS EXCLUSIVE MODE")
                }
                connection.patience = max(timeout, PostgreSQLEngine.workPatience)
                let belongings = try TableBelongings(of: oldNames + PostgreSQLSchema.sequences(source), connection)
                try connection.command("DROP TABLE \(oldTables)")
                try PreparedParts.removeFunctions(connection)
                for table in source.tables {
                    try connection.command("DROP SEQUENCE \(PostgreSQLSchema.sequence(table))")
                }
                try moveTables()
                try connection.command("DROP SCHEMA \(working.quotedSchema)")
                try handOn(belongings, SQLMapping(schema, configuration: configuration, dialect: .postgresql))
                try StoreSessions.endOthers(of: target, connection)
                try ShapeCommit(on: connection, to: target, pool: pool).commit { [working] connection in
                    let left = try connection.query(
                        "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1",
                        [.text(working.schema)]
                    )
                    return left.rowCount == 0
                }
            }
        } catch {
            abandon()
            throw error
        }
    }

    /// Gives the new tables and sequences the belongings of the old ones with the same names.
    private func handOn(_ belongings: TableBelongings, _ mapping: SQLMapping) throws {
        let found = try connection.query(
            """
            SELECT c.relname::text, a.attname::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
            WHERE n.nspname = pg_catalog.current_schema() AND c.relkind IN ('r', 'p') AND a.attnum > 0
            """
        )
        let naming = mapping.dialect.naming
        let columns = Dictionary(grouping: found.rows) { $0.string(0) }
        for name in Self.names(mapping) {
            let own = (columns[name.raw] ?? []).map { naming.name($0.string(1)) }
            try belongings.handOn(to: .init(old: name, new: name, columns: own.map { ($0, $0) }))
            try belongings.makeTriggers(of: name)
        }
        for name in PostgreSQLSchema.sequences(mapping) {
            try belongings.handOn(to: .init(old: name, new: name, columns: []), isSequence: true)
        }
    }

    /// Gives the new store foreign keys if the old one has some, before other processes have to wait.
    private func makeForeignKeys(_ schema: Schema, _ configuration: String?) throws {
        guard hasForeignKeys else { return }
        let mapping = try SQLMapping(schema, configuration: configuration, dialect: .postgresql)
        let pool = OpenPostgreSQLStore.pool(working, size: 1, timeout: timeout)
        defer { pool.close() }
        try pool.withConnection { connection in
            connection.patience = max(timeout, PostgreSQLEngine.workPatience)
            try connection.command("BEGIN; \(PostgreSQLEngine.workSetting)")
            let violations = try ForeignKeys(mapping, connection).make()
            guard violations.isEmpty else { throw ForeignKeys.failure(at: url, dueTo: violations, place: target.place) }
            try connection.commit()
        }
    }

    private func moveTables() throws {
        // The sequence of a column moves with its table.
        let found = try connection.query(
            """
            SELECT c.relname::text, c.relkind = 'S' FROM pg_catalog.pg_class AS c
            JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname = $1 AND c.relkind IN ('r', 'S')
            AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'a' AND c.relkind = 'S')
            """,
            [.text(working.schema)]
        )
        for row in found.rows {
            let name = source.dialect.naming.name(row.string(0))
            let kind = row.int64(1) == 1 ? "SEQUENCE" : "TABLE"
            try connection.command("ALTER \(kind) \(working.quotedSchema).\(name) SET SCHEMA \(target.quotedSchema)")
        }
    }

    /// Removes the new store, and lets others write to the old one again.
    package func abandon() {
        if !connection.isBroken, !connection.isIdle { _ = try? connection.command("ROLLBACK") }
        _ = try? PostgreSQLEngine.destroy(at: url, timeout: timeout)
    }
}
