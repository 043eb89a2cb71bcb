import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLEngine {
    /// Finds out the effects of a migration in place without making it, in one transaction that reads.
    ///
    /// Others read and save meanwhile, and other migrations wait.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - migration: The targets of entities and properties.
    ///   - timeout: How many seconds others may keep the store locked.
    /// - Returns: The effects of the migration.
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) if the store does not have the source version.
    ///   `migration` (134110) if objects of others prevent the migration. Errors of the database.
    package static func forecast(at url: URL, of migration: SchemaMigration, timeout: Double) throws
        -> MigrationForecast
    {
        try withConnection(to: url, .reading, timeout: timeout) { connection, place in
            _ = try existing(connection, place)
            OpenPostgreSQLStore.lockFirst(connection, for: try ConnectionTarget(url), timeout: timeout)
            try StoreMetadata.beginReading(connection)
            try connection.command(workSetting)
            let metadata = try existing(connection, place)
            guard migration.starts(at: metadata.versionHashes) else {
                throw CocoaError(.persistentStoreIncompatibleVersionHash)
            }
            connection.patience = max(timeout, workPatience)
            let request = PostgreSQLMigrationRequest(
                url: url,
                migration: migration,
                versionIdentifiers: [],
                modelCache: nil,
                mayDropValues: false,
                timeout: timeout,
                advance: { _ in }
            )
            let target = try ConnectionTarget(url)
            let form = try ServerForm.answer(ServerForm.ask(connection), connection)
            // Without that right the server refuses the steps before the transaction.
            let mayCreate = try connection.query(
                "SELECT pg_catalog.has_schema_privilege(pg_catalog.current_schema(), 'CREATE')"
            )
            let mayPrepare =
                !metadata.isPortable && !connection.isPooled && form == .oneNode
                && metadata.format == StoreFormat.current
                && mayCreate.firstInt64 != 0
            let forecast = try PostgreSQLMigration(
                request,
                at: target,
                from: metadata,
                on: connection,
                generation: metadata.isPortable ? metadata.generations.last + 1 : 0
            ).forecast(mayPrepare: mayPrepare)
            try connection.rollback()
            return forecast
        }
    }
}

extension PostgreSQLMigration {
    /// The effects of the migration, which is not made.
    fileprivate func forecast(mayPrepare: Bool) throws -> MigrationForecast {
        if mayPrepare { for table in try plannedTables() { prepared[table.table] = table } }
        if metadata.isPortable {
            try PortableBelongings(of: source, connection)
                .requireNoObstacles(successors, at: request.url, place: place)
        } else {
            _ = try belongingsWithoutObstacles()
        }
        var rows: [String: Int] = [:]
        for table in source.tables {
            let counts = try connection.query(
                "SELECT \(naming.entity)::bigint, pg_catalog.count(*) FROM \(table.name) GROUP BY 1"
            )
            for row in counts.rows {
                guard let entity = source.entity(storeNumber: row.int64(0)) else { continue }
                rows[entity.layout.name] = Int(row.int64(1))
            }
        }
        var problems = try layout.checks.findings(firstNumber)
        var copied: Set<String> = []
        for table in layout.tables {
            guard let from = table.source else { continue }
            if metadata.isPortable || alteration(table) == nil { copied.formUnion(from.entities.map(\.layout.name)) }
            problems += try duplicates(in: table, of: from)
        }
        return MigrationForecast(
            rows: rows,
            problems: problems,
            losses: try layout.losses.findings(firstNumber),
            copied: copied,
            steps: try metadata.isPortable ? portableSteps() : steps()
        )
    }

    /// The constraints that rows would break.
    private func duplicates(in table: TableMigration, of from: SQLTable) throws -> [RowFinding] {
        let values = Dictionary(
            zip(table.destination.columns, table.values).map { ($0.name, (value: $1, type: $0.type)) }
        ) { first, _ in first }
        let types = Dictionary(from.columns.map { ($0.name, $0.type) }) { first, _ in first }
        return try PostgreSQLSchema.indexes(destination).compactMap { index in
            guard index.table == table.destination.name, let constraint = index.constraint else { return nil }
            let parts = constraint.columns.compactMap { values[$0] }
            // New and empty values are never equal.
            guard parts.count == constraint.columns.count, parts.allSatisfy({ !$0.value.isNull }) else { return nil }
            var parameters: [PostgreSQLValue] = []
            let texts = parts.map { part in
                part.value.text(column: { Self.cast($0, types[$0], to: part.type) }) { Self.parameter($0, &parameters) }
            }
            let names = parts.indices.map { "v\($0)" }
            let select = zip(texts, names).map { "\($0) AS \($1)" }.joined(separator: ", ")
            let found = try connection.query(
                """
                SELECT pg_catalog.count(*), COALESCE(pg_catalog.sum(n), 0)::bigint FROM (SELECT pg_catalog.count(*) AS n
                FROM (SELECT \(select) FROM \(from.name) AS t\(table.condition)) AS r
                WHERE \(names.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))
                GROUP BY \(names.joined(separator: ", ")) HAVING pg_catalog.count(*) > 1) AS g
                """,
                parameters
            )
            guard found[0].int64(0) > 0 else { return nil }
            return RowFinding(
                entity: constraint.layout.name,
                property: constraint.attributes.count == 1 ? constraint.attributes[0] : nil,
                reason:
                    "\(found[0].int64(1)) objects share \(found[0].int64(0)) values of \(constraint.attributes.joined(separator: ", ")), which must be unique"
            )
        }
    }
}
