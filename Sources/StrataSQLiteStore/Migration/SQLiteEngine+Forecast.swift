import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

extension SQLiteEngine {
    /// Finds out the effects of a migration without making it, in one read transaction.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - options: The options to open it with.
    ///   - migration: The targets of entities and properties.
    /// - Returns: The effects of the migration.
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) if the file does not have the source version, and
    ///   errors of the file.
    package static func forecast(
        at url: URL,
        options: SQLiteOptions,
        of migration: SchemaMigration
    ) throws -> MigrationForecast {
        try SQLiteBoundary.run(.reading, at: url) {
            try withFile(url, options: options, access: .readOnly) { database in
                try database.pool.read { connection in
                    let stored = try metadata(connection, url).versionHashes
                    guard migration.starts(at: stored) else {
                        throw CocoaError(.persistentStoreIncompatibleVersionHash)
                    }
                    return try MigrationForecast(of: migration, from: stored, on: connection, options: options)
                }
            }
        }
    }
}

extension MigrationForecast {
    fileprivate init(
        of migration: SchemaMigration,
        from stored: [String: Data],
        on connection: Connection,
        options: SQLiteOptions
    ) throws {
        let source = try SQLMapping(
            migration.source,
            configuration: migration.sourceConfiguration,
            catalog: SQLCatalog(connection),
            storedHashes: stored
        )
        let destination = try SQLMapping(migration.destination, configuration: migration.destinationConfiguration)
        let layout = MigrationLayout(migration, from: source, to: destination)
        var rows: [String: Int] = [:]
        var counts: [SQLName: Int] = [:]
        for table in source.tables {
            let statement = try connection.statement(SQL("SELECT Z_ENT, COUNT(*) FROM \(table.name) GROUP BY Z_ENT"))
            while try statement.step() {
                counts[table.name, default: 0] += Int(statement[1].int64)
                guard let entity = source.entity(storeNumber: statement[0].int64) else { continue }
                rows[entity.layout.name] = Int(statement[1].int64)
            }
        }
        var problems = try layout.checks.findings { try connection.firstInt64(SQL($0)) }
        var copied: Set<String> = []
        for table in layout.tables {
            guard let from = table.source else { continue }
            let alteration = try TableAlteration(
                table,
                columns: connection.columns(of: from.name),
                keepsLeftovers: options.defersCleanUp
            )
            if alteration == nil { copied.formUnion(from.entities.map(\.layout.name)) }
            problems += try Self.duplicates(in: table, for: destination, on: connection)
        }
        self.init(
            rows: rows,
            problems: problems,
            losses: try layout.losses.findings { try connection.firstInt64(SQL($0)) },
            copied: copied,
            steps: try SQLiteMigrationSteps(
                layout,
                from: source,
                to: destination,
                rows: counts,
                on: connection,
                options
            )
            .steps
        )
    }

    /// The constraints that rows would break.
    private static func duplicates(
        in table: TableMigration,
        for destination: SQLMapping,
        on connection: Connection
    ) throws -> [RowFinding] {
        guard let from = table.source else { return [] }
        let values = Dictionary(zip(table.destination.columns.map(\.name), table.values)) { first, _ in first }
        return try SQLiteSchema.indexes(destination).compactMap { index in
            guard index.table == table.destination.name, let constraint = index.constraint else { return nil }
            let parts = constraint.columns.compactMap { values[$0] }
            // New and empty values are never equal.
            guard parts.count == constraint.columns.count, parts.allSatisfy({ !$0.isNull }) else { return nil }
            let names = parts.indices.map { "v\($0)" }
            let select = zip(parts, names).map { "\($0.text) AS \($1)" }.joined(separator: ", ")
            let statement = try connection.statement(
                SQL(
                    """
                    SELECT COUNT(*), SUM(n) FROM (SELECT COUNT(*) AS n FROM (SELECT \(select) FROM \(from.name) AS t\(table.condition))
                    WHERE \(names.map { "\($0) NOT NULL" }.joined(separator: " AND ")) GROUP BY \(names.joined(separator: ", ")) HAVING COUNT(*) > 1)
                    """
                )
            )
            try statement.bind(parts.flatMap(\.bindings))
            guard try statement.step(), statement[0].int64 > 0 else { return nil }
            return RowFinding(
                entity: constraint.layout.name,
                property: constraint.attributes.count == 1 ? constraint.attributes[0] : nil,
                reason:
                    "\(statement[1].int64) objects share \(statement[0].int64) values of \(constraint.attributes.joined(separator: ", ")), which must be unique"
            )
        }
    }
}
