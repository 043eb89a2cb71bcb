import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLMigration {
    /// Drops the indexes that are no longer needed, or that belong to tables which are rewritten.
    func dropIndexes() throws {
        var stable: Set<SQLName> = []
        var rewritten: Set<SQLName> = []
        for table in layout.tables where table.source?.name == table.destination.name {
            guard let alteration = alteration(table) else { continue }
            stable.insert(table.destination.name)
            if !alteration.changes.isEmpty { rewritten.insert(table.destination.name) }
        }
        for join in layout.joins where join.kept?.source.name == join.destination.name {
            stable.insert(join.destination.name)
        }
        let wanted = Dictionary(PostgreSQLSchema.indexes(destination).map { ($0.name, $0) }) { first, _ in first }
        for index in PostgreSQLSchema.indexes(source) {
            // Unique values are checked when all are written.
            let isKept =
                stable.contains(index.table) && wanted[index.name]?.sql == index.sql
                && (index.constraint == nil || !rewritten.contains(index.table))
            if isKept {
                standing.insert(index.name)
            } else {
                try connection.command("DROP INDEX IF EXISTS \(index.name)")
            }
        }
        try dropIndexesOfOthers()
    }

    /// Drops indexes of expressions, of points, and of some rows only.
    ///
    /// The store's copy of its model does not contain them, so the old model does not know them. They are recognised by
    /// their names.
    private func dropIndexesOfOthers() throws {
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
        for name in found.rows.map({ naming.name($0.string(0)) }) where !standing.contains(name) {
            // If two indexes have the same name, then the second has a number at its end.
            let plain = name.raw.trimmingCharacters(in: .decimalDigits)
            guard plain.hasSuffix("_index"), starts.contains(where: name.raw.hasPrefix) else { continue }
            try connection.command("DROP INDEX \(name)")
        }
    }

    func makeIndexes() throws {
        for index in PostgreSQLSchema.indexes(destination) where !standing.contains(index.name) {
            // An index of that name belongs to another version of the model.
            try connection.command("DROP INDEX IF EXISTS \(index.name)")
            try make(index)
        }
    }

    private func make(_ index: PostgreSQLSchema.Index) throws {
        try connection.command("SAVEPOINT strata_index")
        do {
            try connection.command(index.sql)
        } catch let error as PostgreSQLError where error.isUniqueViolation {
            try connection.command("ROLLBACK TO SAVEPOINT strata_index")
            guard let constraint = index.constraint else { throw error }
            throw MigrationErrors.constraint(
                at: request.url,
                of: constraint.layout.name,
                on: constraint.attributes,
                groups: try duplicates(constraint, index.table),
                place: place
            )
        }
        try connection.command("RELEASE SAVEPOINT strata_index")
    }

    /// The most groups of objects that an error lists.
    private static let mostGroups = 100

    /// The objects that a constraint does not allow together, grouped by the values that they share.
    private func duplicates(_ constraint: SQLConstraint, _ table: SQLName) throws -> [[URL]] {
        let columns = constraint.columns.map(\.description)
        let found = try connection.query(
            """
            SELECT pg_catalog.array_agg(\(naming.key) ORDER BY \(naming.key)),
            pg_catalog.array_agg(\(naming.entity)::bigint ORDER BY \(naming.key))
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
