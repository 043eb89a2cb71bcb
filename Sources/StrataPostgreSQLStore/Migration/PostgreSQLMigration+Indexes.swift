import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLMigration {
    /// Drops the indexes that are no longer needed, or that belong to tables which are rewritten.
    ///
    /// Those that get other names give up their old ones here, because others may need them.
    func dropIndexes() throws {
        standing = try standingIndexes()
        let kept = standing.formerNames
        for index in PostgreSQLSchema.indexes(source) where !kept.contains(index.name) {
            try connection.command("DROP INDEX IF EXISTS \(index.name)")
        }
        try dropIndexesOfOthers()
        for (new, old) in standing.former.sorted(by: { $0.key.raw < $1.key.raw }) where new != old {
            let name = temporaryName()
            try connection.command("ALTER INDEX \(old) RENAME TO \(name)")
            renamedIndexes[new] = name
        }
    }

    /// The indexes that stay.
    func standingIndexes() throws -> StandingIndexes {
        let there = try indexNames()
        let old = PostgreSQLSchema.indexes(source).filter { there.contains($0.name) }
        return StandingIndexes(PostgreSQLSchema.indexes(destination), from: old, formerTables())
    }

    /// The names of all indexes that the store has; those that are not valid are left out.
    func indexNames() throws -> Set<SQLName> {
        let found = try connection.query(
            """
            SELECT c.relname::text FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
            WHERE i.indisvalid AND c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = pg_catalog.current_schema())
            """
        )
        return Set(found.rows.map { naming.name($0.string(0)) })
    }

    /// The tables that are changed in place, as they were before, by the names that they have in the new model.
    private func formerTables() -> [SQLName: FormerTable] {
        var tables: [SQLName: FormerTable] = [:]
        for table in layout.tables {
            guard let source = table.source, alteration(table) != nil else { continue }
            tables[table.destination.name] = formerTable(table, source, without: prepared[source.name]?.dropped ?? [])
        }
        for join in layout.joins {
            guard let kept = join.kept else { continue }
            let own = [join.destination.first, join.destination.second] + join.destination.orders
            var columns = Dictionary(own.map { ($0, $0) }) { first, _ in first }
            for (from, to) in kept.renamed { columns[to] = from }
            tables[join.destination.name] = FormerTable(name: kept.source.name, columns: columns, changed: [])
        }
        return tables
    }

    /// A table that is changed in place, as it was before.
    ///
    /// - Parameters:
    ///   - table: The changes of the table.
    ///   - source: The table before.
    ///   - dropped: The columns that are dropped in place.
    /// - Returns: The table.
    func formerTable(_ table: TableMigration, _ source: SQLTable, without dropped: Set<SQLName>) -> FormerTable {
        var columns = Dictionary([naming.key, naming.entity, naming.version].map { ($0, $0) }) { first, _ in first }
        var changed: Set<SQLName> = []
        for (column, value) in zip(table.destination.columns, table.values) {
            guard let base = value.base, !dropped.contains(base) else { continue }
            columns[column.name] = base
            if !value.isPlain { changed.insert(base) }
        }
        if dropped.contains(naming.entity) { columns[naming.entity] = nil }
        return FormerTable(name: source.name, columns: columns, changed: changed)
    }

    /// Drops indexes of expressions, of points, and of some rows only.
    ///
    /// The store's copy of its model does not contain them, so the old model does not know them. They are recognised by
    /// their names.
    private func dropIndexesOfOthers() throws {
        let kept = standing.formerNames
        let starts = source.entities.map { PostgreSQLName.folded($0.layout.name) + "_" }
        var tables = PostgreSQLArray(.text)
        for table in source.tables { tables.append(table.name.raw) }
        let found = try connection.query(
            """
            SELECT c.relname::text FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
            JOIN pg_catalog.pg_class AS t ON t.oid = i.indrelid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname = pg_catalog.current_schema() AND NOT i.indisunique AND (i.indpred IS NOT NULL OR i.indexprs IS NOT NULL)
            AND t.relname::text = ANY($1)
            """,
            [.array(tables)]
        )
        for name in found.rows.map({ naming.name($0.string(0)) }) where !kept.contains(name) {
            // If two indexes have the same name, then the second has a number at its end.
            let plain = name.raw.trimmingCharacters(in: .decimalDigits)
            guard plain.hasSuffix("_index"), starts.contains(where: name.raw.hasPrefix) else { continue }
            try connection.command("DROP INDEX \(name)")
        }
    }

    func makeIndexes() throws {
        let kept = standing.names.subtracting(renamedIndexes.keys)
        for index in PostgreSQLSchema.indexes(destination) where !kept.contains(index.name) {
            // An index of that name belongs to another version of the model.
            try connection.command("DROP INDEX IF EXISTS \(index.name)")
            if let name = renamedIndexes[index.name] ?? earlyIndex(index.name)?.name {
                try connection.command("ALTER INDEX \(name) RENAME TO \(index.name)")
            } else {
                try make(index)
            }
        }
    }

    /// The index that was made before the transaction under another name.
    func earlyIndex(_ name: SQLName) -> PreparedTable.Index? {
        prepared.values.lazy.flatMap(\.indexes).first { $0.final == name }
    }

    private func make(_ index: PostgreSQLSchema.Index) throws {
        try connection.command("SAVEPOINT strata_index")
        do {
            try connection.command(index.sql)
        } catch let error as PostgreSQLError where error.isUniqueViolation {
            try connection.command("ROLLBACK TO SAVEPOINT strata_index")
            guard let constraint = index.constraint else { throw error }
            throw try failure(of: constraint, in: index.table, columns: constraint.columns, entity: naming.entity)
                ?? error
        }
        try connection.command("RELEASE SAVEPOINT strata_index")
    }

    /// The error that names objects which a constraint does not allow together.
    ///
    /// - Parameters:
    ///   - constraint: The constraint.
    ///   - table: The present name of its table.
    ///   - columns: The present names of its columns.
    ///   - entity: The present name of the column with the numbers of entities in the new model.
    /// - Returns: The error; `nil` if there are no such objects.
    /// - Throws: ``PostgreSQLError``.
    func failure(
        of constraint: SQLConstraint,
        in table: SQLName,
        columns: [SQLName],
        entity: SQLName
    ) throws -> (any Error)? {
        let groups = try duplicates(columns, entity, table)
        guard !groups.isEmpty else { return nil }
        return MigrationErrors.constraint(
            at: request.url,
            of: constraint.layout.name,
            on: constraint.attributes,
            groups: groups,
            place: place
        )
    }

    /// The most groups of objects that an error lists.
    private static let mostGroups = 100

    /// The objects that have the same values in columns, grouped by these values.
    private func duplicates(_ columns: [SQLName], _ entity: SQLName, _ table: SQLName) throws -> [[URL]] {
        let columns = columns.map(\.description)
        let found = try connection.query(
            """
            SELECT pg_catalog.array_agg(\(naming.key) ORDER BY \(naming.key)),
            pg_catalog.array_agg(\(entity)::bigint ORDER BY \(naming.key))
            FROM \(table) WHERE \(columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))
            GROUP BY \(columns.joined(separator: ", ")) HAVING pg_catalog.count(*) > 1
            ORDER BY pg_catalog.min(\(naming.key)) LIMIT \(Self.mostGroups)
            """
        )
        return found.rows.map { row in
            objects(zip(row.int64s(0), row.int64s(1)).map { ($0, $1) }, in: metadata.uuid)
        }
    }
}
